"""Memory and time of getting values into sharded variables, and bytes read.

    python benchmarks/load.py [--upstream PYTHON] [--repeats N] [--json FILE]

`PYTHON` is the path of a Python that has an unmodified Keras, JAX and h5py,
to be measured side by side. It is measured for the smallest size only, as it
needs 38 times the size and would use up most machines with the others. Each
process of each run is a fresh one, and each figure is the median of the runs,
for the process that needs the most.
"""

import argparse
import itertools
import json
import math
import os
import shutil
import socket
import statistics
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

ROWS = ("model", None)
COLUMNS = (None, "model")
SMALL = (16_000, 4096)
LARGE = (64_000, 4096)
SQUARE = (4096, 4096)


def cases(upstream):
    """Yields what is measured: the task, and the Python or `None` for ours."""
    for work, axes in itertools.product(["assign", "load"], [ROWS, COLUMNS]):
        task = {"work": work, "axes": axes, "processes": 4, "devices": 1}
        task["layers"] = 1
        yield task | {"shape": SMALL}, None
        if upstream:
            yield task | {"shape": SMALL}, upstream
        yield task | {"shape": LARGE}, None
    task = {"work": "load", "axes": COLUMNS, "processes": 1, "devices": 8}
    task |= {"shape": SQUARE, "layers": 16}
    yield task, None
    if upstream:
        yield task, upstream


def run(task, python):
    """Runs the processes of a task side by side and returns their results."""
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
    return [json.loads(out.splitlines()[-1]) for out, _ in outputs]


def measured(task, python, repeats):
    runs = [run(task, python) for _ in range(repeats)]

    def median(figure):
        return statistics.median(max(map(figure, each)) for each in runs)

    return task | {
        "keras": runs[0][0]["versions"]["keras"],
        "is_upstream": bool(python),
        "seconds": median(lambda result: result["seconds"]),
        "growth": median(lambda r: r["growth"] / r["shards"]),
        "read": median(lambda r: r["read"] / r["shards"]),
    }


def add_row(table, result):
    size = 4 * result["layers"] * math.prod(result["shape"])
    has_file = result["work"] == "load"
    table.add_row(
        result["work"],
        "rows" if result["axes"] == ROWS else "columns",
        decimal(size),
        _processes(result),
        result["keras"],
        f"{result['growth']:.3f}",
        f"{result['read']:.3f}" if has_file else "",
        f"{result['seconds']:.3f}",
    )


def _processes(result):
    count, devices = result["processes"], result["devices"]
    return str(count) if devices == 1 else f"{count}, {devices} devices"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upstream", metavar="PYTHON")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    if options.upstream and not shutil.which(options.upstream):
        parser.error(
            "--upstream must be the path of a Python. "
            f"Received: {options.upstream}"
        )
    table = Table(box=SIMPLE_HEAD)
    for heading in ("work", "shards", "size", "processes", "keras"):
        table.add_column(heading, no_wrap=True)
    for heading in ("growth", "read", "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for shape, layers in [(SMALL, 1), (LARGE, 1), (SQUARE, 16)]:
            write_weights(folder, shape, layers)
        write_weights(folder, WARM_UP, 1)
        for task, python in cases(options.upstream):
            task["folder"] = folder
            result = measured(task, python, options.repeats)
            del result["folder"]
            add_row(table, result)
            results.append(result)
    console = Console(width=100)
    console.print("Growth and bytes read, over the shards of a process:")
    console.print(table)
    facts = machine()
    if options.json:
        report = {"machine": facts, "results": results}
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
    facts["memory"] = decimal(facts["memory"])
    console.print(", ".join(f"{name} {fact}" for name, fact in facts.items()))


if __name__ == "__main__":
    main()
