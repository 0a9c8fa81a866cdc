"""Time, memory and compiled programs of building whole models.

    python benchmarks/build.py [--upstream PYTHON] [--repeats N] [--json FILE]

`PYTHON` is the path of a Python that has an unmodified Keras and JAX. Each run
is a process of its own, the contenders take turns, and a figure is the median
of the runs, with the smallest and the largest.
"""

import argparse
import itertools
import json
import shutil
import statistics
from pathlib import Path

import model_contenders
from measure import machine
from measure import measure
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

# 500 MB of weights, so 1 GB of slots.
ADAM = "Adam's slots, 1007 MB"
ADAM_LAYERS = 30

CASES = (
    ("efficientnet", False),
    ("resnet", False),
    ("gpt_12", False),
    ("gpt_24", False),
    ("gpt_24", True),
    (ADAM, True),
)


def run(case, python):
    model, sharded = case
    contender, key, tiny = model_contenders.build, "model", "tiny"
    if model == ADAM:
        contender, key, model, tiny = (
            model_contenders.build_adam,
            "layers",
            ADAM_LAYERS,
            1,
        )
    arguments = {key: model, "sharded": sharded}
    warm_up = arguments | {key: tiny}
    result = measure(contender, arguments, warm_up, python)
    return {
        "seconds": result["seconds"][0],
        "growth": result["growth"],
    }, result["versions"]


def spread(values, scale, digits):
    low, middle, high = min(values), statistics.median(values), max(values)
    numbers = [f"{value / scale:.{digits}f}" for value in (middle, low, high)]
    return "{} ({} to {})".format(*numbers)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upstream", metavar="PYTHON")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.upstream and not shutil.which(options.upstream):
        parser.error(f"This is no Python that can be run: {options.upstream}")
    console = Console()
    contenders = [("fork", None)]
    if options.upstream:
        contenders.append(("upstream", options.upstream))
    work = list(itertools.product(CASES, contenders))
    figures, versions = {}, {}
    for case, (name, python) in track(
        work * options.repeats,
        "Measuring",
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ):
        result, versions[name] = run(case, python)
        for key, value in result.items():
            values = figures.setdefault((case, name), {})
            values.setdefault(key, []).append(value)
    table = Table(box=SIMPLE_HEAD)
    for column in ("model", "devices", "by", "seconds", "peak growth, MB"):
        table.add_column(column)
    for ((model, sharded), name), values in figures.items():
        table.add_row(
            model,
            "8" if sharded else "1",
            name,
            spread(values["seconds"], 1, 2),
            spread(values["growth"], 1e6, 0),
        )
    console.print(table)
    facts = machine() | versions
    console.print(", ".join(f"{key} {fact}" for key, fact in facts.items()))
    if options.json:
        rows = [
            {"model": model, "sharded": sharded, "by": name, **values}
            for ((model, sharded), name), values in figures.items()
        ]
        text = json.dumps({"machine": facts, "rows": rows}, indent=1)
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
