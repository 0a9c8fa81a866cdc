"""Memory and time of making one variable with each kind of initializer.

    python benchmarks/variables.py [--upstream PYTHON] [--repeats N]
        [--json FILE]

`PYTHON` is the path of a Python that has an unmodified Keras and JAX. Each run
is a process of its own, the contenders take turns, and a figure is the median
of the runs, with the smallest and the largest. The variable has 67 MB for
`Orthogonal`, which factorizes all of it, and 268 MB for the others.
"""

import argparse
import functools
import itertools
import math
import shutil
from pathlib import Path

import variable_contenders
from measure import machine
from measure import measure
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from side_by_side import measured
from side_by_side import say
from side_by_side import spread
from side_by_side import write

SHAPE = (16_384, 4096)
SQUARE = (4096, 4096)
# More elements than `initialization.SMALL`, so that it goes the same way.
WARM_UP = (512, 4096)
# As in `variable_contenders.initializers`.
NAMES = (
    "Zeros",
    "Ones",
    "Constant of a number",
    "Constant of a row",
    "Identity",
    "GlorotUniform",
    "TruncatedNormal",
    "Orthogonal",
    "own, by keras.random",
    "own, by jax.random",
)


def run(initializer, python):
    shape = SQUARE if initializer == "Orthogonal" else SHAPE
    result = measure(
        variable_contenders.variable,
        {"initializer": initializer, "shape": shape},
        {"initializer": initializer, "shape": WARM_UP},
        python,
    )
    return {
        "peak": result["growth"] / (4 * math.prod(shape)),
        "seconds": result["seconds"][0],
    }, result["versions"]


def plan(upstream):
    """Yields for each row its name, the contender's, and how to measure it."""
    pythons = {"fork": None}
    if upstream:
        pythons["upstream"] = upstream
    for name, by in itertools.product(NAMES, pythons):
        if (name, by) == ("Orthogonal", "upstream"):
            continue  # It was not done after ten minutes.
        yield (name, by), functools.partial(run, name, pythons[by])


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
    table = Table(box=SIMPLE_HEAD)
    for column in ("initializer", "by", "peak / variable", "seconds"):
        table.add_column(column, no_wrap=True)
    for (name, by), values in figures.items():
        peak, seconds = spread(values["peak"], 3), spread(values["seconds"], 2)
        table.add_row(name, by, peak, seconds)
    console.print(table)
    facts = machine() | versions
    say(facts, console)
    if options.json:
        write(options.json, figures, facts)


if __name__ == "__main__":
    main()
