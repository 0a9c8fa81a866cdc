"""Runs test modules in several processes at a time, and says how it goes."""

import concurrent.futures
import threading

from rich.progress import MofNCompleteColumn
from rich.progress import Progress
from rich.progress import TimeElapsedColumn

from suite import compare
from suite import plan
from suite import processes


def run(side, modules, only=None, *, jobs, console):
    """Tests modules of one side; those that are finished do not run again.

    Args:
        side: The `Side` to test.
        modules: Paths of test modules.
        only: The ids of the tests to run. Defaults to all.
        jobs: How many processes test at a time.
        console: The `rich.console.Console` to say it to.
    """
    left = [m for m in modules if not processes.is_finished(side, m)]
    done = len(modules) - len(left)
    if done:
        console.print(f"{side.name}: {done} of {len(modules)} are done")
    stop = threading.Event()
    progress = Progress(
        *Progress.get_default_columns()[:2],
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    with progress, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        bar = progress.add_task(side.name, total=len(modules), completed=done)
        runs = {
            pool.submit(processes.run, side, group, only, stop): group
            for group in plan.batches(left, side.tree)
        }
        try:
            for run in concurrent.futures.as_completed(runs):
                run.result()
                for module in runs[run]:
                    done += 1
                    progress.advance(bar)
                    say(side, module, f"{done}/{len(modules)}", console)
        except BaseException:
            # Without this the pool waits for all that it was given.
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def say(side, module, done, console):
    """Prints how a module went, and how many are done."""
    records = compare.outcomes_of(side, [module]).values()
    counts = [
        f"{sum(record['outcome'] == outcome for record in records)} {outcome}"
        for outcome in ("passed", "failed", "skipped")
    ]
    seconds = sum(record["seconds"] for record in records)
    console.print(
        f"{side.name} {done}: {module}: {', '.join(counts)}, {seconds:.0f} s",
        soft_wrap=True,
    )
