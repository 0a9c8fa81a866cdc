"""Time and memory of building whole models.

    python benchmarks/build.py [--upstream PYTHON] [--repeats N] [--json FILE]

`PYTHON` is the path of a Python that has an unmodified Keras and JAX. Each run
is a process of its own, the contenders take turns, and a figure is the median
of the runs, with the smallest and the largest.
"""

import argparse
import functools
import itertools
import shutil
from pathlib import Path

import model_contenders
from measure import machine
from measure import measure
from measure import measure_processes
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from side_by_side import measured
from side_by_side import say
from side_by_side import spread
from side_by_side import write

# 500 MB of weights, so 1 GB of slots.
ADAM = "Adam's slots, 1007 MB"
ADAM_LAYERS = 30

LAYERS = 100
PROCESSES = (1, 4)

CASES = (
    ("efficientnet", False),
    ("resnet", False),
    ("gpt_12", False),
    ("gpt_24", False),
    ("gpt_24", True),
    (ADAM, True),
)


def run(model, sharded, python):
    """Seconds and bytes that building a model takes."""
    if model == ADAM:
        contender, key, model, tiny = (
            model_contenders.build_adam,
            "layers",
            ADAM_LAYERS,
            1,
        )
    else:
        contender, key, tiny = model_contenders.build, "model", "tiny"
    arguments = {key: model, "sharded": sharded}
    result = measure(contender, arguments, arguments | {key: tiny}, python)
    return {
        "seconds": result["seconds"][0],
        "growth": result["growth"],
    }, result["versions"]


def run_layers(processes, python):
    """Milliseconds for a layer, in the slowest of several processes."""
    results = measure_processes(
        model_contenders.dense_layers,
        {"layers": LAYERS},
        {"layers": 1},
        processes,
        python,
    )
    slowest = max(result["seconds"][0] for result in results)
    return {"layer": slowest * 1e3 / LAYERS}, results[0]["versions"]


def plan(upstream):
    """Yields for each row its name, the contender's, and how to measure it."""
    pythons = {"fork": None}
    if upstream:
        pythons["upstream"] = upstream
    for (model, sharded), name in itertools.product(CASES, pythons):
        row = f"{model}, {'8 devices' if sharded else '1 device'}"
        yield (row, name), functools.partial(run, model, sharded, pythons[name])
    for processes, name in itertools.product(PROCESSES, pythons):
        row = f"{LAYERS} x Dense(256), processes: {processes}"
        yield (
            (row, name),
            functools.partial(run_layers, processes, pythons[name]),
        )


def print_table(figures, console):
    table = Table(box=SIMPLE_HEAD)
    for column in ("what", "by", "seconds", "peak growth, MB", "ms a layer"):
        table.add_column(column, no_wrap=True)
    for (row, name), values in figures.items():
        table.add_row(
            row,
            name,
            spread(values.get("seconds"), 2),
            spread(values.get("growth"), 0, scale=1e6),
            spread(values.get("layer"), 2),
        )
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upstream", metavar="PYTHON")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.upstream and not shutil.which(options.upstream):
        parser.error(f"This is no Python that can be run: {options.upstream}")
    console = Console(width=120)
    work = list(plan(options.upstream))
    figures, versions = measured(work, options.repeats, console)
    print_table(figures, console)
    facts = machine() | versions
    say(facts, console)
    if options.json:
        write(options.json, figures, facts)


if __name__ == "__main__":
    main()
