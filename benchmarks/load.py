"""Memory and time of getting values into sharded variables, and bytes read.

    python benchmarks/load.py [--upstream PYTHON] [--repeats N] [--json FILE]

`PYTHON` is the path of a Python that has an unmodified Keras, JAX and h5py,
to be measured side by side. It is measured for the smallest size only, as it
needs 40 times the size and would use up most machines with the others. Each
process of each run is a fresh one, the contenders take turns, and a figure is
the median of the runs for the process that needs the most, with the smallest
and the largest. `again` is the second time in the same process.
"""

import argparse
import functools
import itertools
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from load_process import WARM_UP
from load_process import write_weights
from measure import machine
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from side_by_side import measured
from side_by_side import say
from side_by_side import spread
from side_by_side import write

ROWS = ("model", None)
COLUMNS = (None, "model")
SMALL = (16_000, 4096)
LARGE = (64_000, 4096)
SQUARE = (4096, 4096)


def tasks():
    """Yields each task and whether upstream can do it too."""
    for work, axes in itertools.product(["assign", "load"], [ROWS, COLUMNS]):
        task = {"work": work, "axes": axes, "processes": 4, "devices": 1}
        task["layers"] = 1
        yield task | {"shape": SMALL}, True
        yield task | {"shape": LARGE}, False
    task = {"work": "load", "axes": COLUMNS, "processes": 1, "devices": 8}
    yield task | {"shape": SQUARE, "layers": 16}, True


def described(task):
    """A task as text: the work, the size, the shards and who has them."""
    size = decimal(4 * task["layers"] * math.prod(task["shape"]))
    shards = "rows" if task["axes"] == ROWS else "columns"
    where = f"{task['processes']} processes"
    if task["devices"] > 1:
        where = f"{task['devices']} devices"
    return f"{task['work']} {size}, {shards}, {where}"


def plan(upstream, folder):
    """Yields for each row its name, the contender's, and how to measure it."""
    for task, is_for_upstream in tasks():
        for by, python in (("fork", None), ("upstream", upstream)):
            if by == "fork" or (upstream and is_for_upstream):
                work = functools.partial(run, task | {"folder": folder}, python)
                yield (described(task), by), work


def run(task, python):
    """Runs the processes of a task side by side.

    Returns:
        The figures of the process that needs the most: the growth and what it
        read, over its shards, and seconds. Then the versions.
    """
    with socket.socket() as free:
        free.bind(("localhost", 0))
        coordinator = f"localhost:{free.getsockname()[1]}"
    environment = dict(os.environ)
    if python:
        environment.pop("PYTHONPATH", None)
    script = Path(__file__).with_name("load_process.py")
    processes = []
    for process in range(task["processes"]):
        task = task | {"process": process, "coordinator": coordinator}
        processes.append(
            subprocess.Popen(
                [python or sys.executable, script, json.dumps(task)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        outputs = [process.communicate(timeout=600) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, (_, error) in zip(processes, outputs):
        if process.returncode:
            raise RuntimeError(
                f"A process ended with status {process.returncode}. "
                f"Received: task={task}, python={python}:\n{error[-4000:]}"
            )
    results = [json.loads(out.splitlines()[-1]) for out, _ in outputs]
    figures = {
        "growth": max(each["growth"] / each["shards"] for each in results),
        "read": max(each["read"] / each["shards"] for each in results),
        "seconds": max(each["seconds"] for each in results),
        "again": max(each["again"] for each in results),
    }
    return figures, results[0]["versions"]


def print_table(figures, console):
    table = Table(box=SIMPLE_HEAD)
    for heading in ("what", "by"):
        table.add_column(heading, no_wrap=True)
    for heading in ("growth / shards", "read / shards", "seconds", "again"):
        table.add_column(heading, justify="right", no_wrap=True)
    for (what, by), values in figures.items():
        digits = {"growth": 3, "read": 3, "seconds": 2, "again": 2}
        if what.startswith("assign"):  # Nothing is read.
            values = values | {"read": []}
        cells = [spread(values[name], count) for name, count in digits.items()]
        table.add_row(what, by, *cells)
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upstream", metavar="PYTHON")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.upstream and not shutil.which(options.upstream):
        parser.error(
            "--upstream must be the path of a Python. "
            f"Received: {options.upstream}"
        )
    console = Console(width=160)
    with tempfile.TemporaryDirectory() as folder:
        for shape, layers in [(SMALL, 1), (LARGE, 1), (SQUARE, 16)]:
            write_weights(folder, shape, layers)
        write_weights(folder, WARM_UP, 1)
        work = list(plan(options.upstream, folder))
        figures, versions = measured(work, options.repeats, console)
    print_table(figures, console)
    facts = machine() | versions
    say(facts, console)
    if options.json:
        write(options.json, figures, facts)


if __name__ == "__main__":
    main()
