"""Memory and time of large random draws, side by side.

    python benchmarks/draws.py [--upstream PYTHON] [--torch PYTHON]
        [--repeats N] [--only TEXT] [--output FOLDER]

The paths are of Pythons that have an unmodified Keras with JAX, and PyTorch.
Each run is a process of its own; the contenders take turns, and a figure is
the median of the runs, with the smallest and the largest. With an output
folder, it writes `draws.json` and, if Matplotlib is there, `draws.svg`.
"""

import argparse
import functools
import itertools
import math
import shutil
import statistics
from pathlib import Path

import draw_contenders
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

SHAPE = (128_000, 1024)  # 131 M elements
SMALL = (1024, 16)
ROWS, COLUMNS = ("model", None), (None, "model")
OPS = ("normal", "uniform", "truncated_normal")
BYTES = {"float32": 4, "bfloat16": 2}
PROCESSES = 4
# Around `initialization.SMALL` and `draws.LARGE`.
LINE = (2**18, 2**20, 2**22, 2**24)
REPEATED = (10, 10**3, 2**13, 2**14, 2**16, 10**6)


def large_draws(options):
    """Yields a name, a contender, its arguments and its Python."""
    for op, dtype, axes in itertools.product(OPS, BYTES, (ROWS, COLUMNS)):
        what = {"op": op, "dtype": dtype, "axes": axes}
        yield "fork", draw_contenders.fork, what, None
        yield "jax.jit", draw_contenders.jax_jit, what, None
        if options.upstream:
            python = options.upstream
            yield "upstream", draw_contenders.upstream_variable, what, python
            if (op, dtype, axes) == ("normal", "float32", ROWS):
                # One is enough, for it needs 31 times the array.
                contender = draw_contenders.upstream_layout
                yield "upstream, layout", contender, what, python
        if axes == COLUMNS:
            continue
        what = what | {"axes": None}
        if options.torch and (op != "truncated_normal" or dtype == "float32"):
            yield (
                "torch.nn.init",
                draw_contenders.torch_init,
                what,
                options.torch,
            )
        if dtype == "float32" and op != "truncated_normal":
            yield "numpy", draw_contenders.numpy_generator, what, None
    bits = {"axes": ROWS, "op": "bits", "dtype": "float32"}
    yield "raw bits", draw_contenders.raw_bits, bits, None


def run_large(contender, what, python):
    arguments = dict(what)
    if contender is draw_contenders.raw_bits:
        arguments = {"axes": what["axes"]}
    result = measure(
        contender,
        arguments | {"shape": SHAPE},
        arguments | {"shape": SMALL},
        python,
    )
    size = math.prod(SHAPE) * BYTES[what["dtype"]]
    first, second = result["seconds"]
    peak = result["growth"] / size
    return {"peak": peak, "first": first, "second": second}, result["versions"]


def run_processes(axes):
    """Draws in several processes of one device; the worst peak over a shard."""
    arguments = {"op": "normal", "dtype": "float32", "axes": axes}
    results = measure_processes(
        draw_contenders.fork,
        arguments | {"shape": SHAPE},
        arguments | {"shape": SMALL},
        PROCESSES,
    )
    shard = math.prod(SHAPE) * 4 / PROCESSES
    return {
        "peak": max(result["growth"] for result in results) / shard,
        "second": max(result["seconds"][1] for result in results),
    }, results[0]["versions"]


def run_many_shapes(axes, python):
    arguments = {"count": 60, "sizes": (2**19, 2**20), "axes": axes}
    warm_up = arguments | {"count": 1, "sizes": (2**13, 2**14)}
    result = measure(draw_contenders.many_shapes, arguments, warm_up, python)
    return {"first": result["seconds"][0]}, result["versions"]


def run_either_way(size, small):
    """Draws variables of eight shapes, all on the host or all by programs."""
    arguments = {"count": 8, "axes": ROWS, "small": small}
    result = measure(
        draw_contenders.many_shapes,
        arguments | {"sizes": (size, size + 2**16)},
        arguments | {"count": 1, "sizes": (2**13, 2**14)},
    )
    return {"first": result["seconds"][0]}, result["versions"]


def run_repeated(op, size, python):
    times = max(3, min(300, 3 * 10**6 // size))
    arguments = {"op": op, "size": size, "times": times}
    result = measure(draw_contenders.repeated, arguments, arguments, python)
    best = min(result["seconds"])
    return {"microseconds": best / times * 1e6}, result["versions"]


def plan(options):
    """Yields for each figure its name and how to measure it."""
    pythons = [("fork", None)]
    if options.upstream:
        pythons.append(("upstream", options.upstream))
    for name, contender, what, python in large_draws(options):
        axes = what["axes"] and "rows" if what["axes"] != COLUMNS else "columns"
        row = f"{what['op']} {what['dtype']} {axes or 'unsharded'}"
        work = functools.partial(run_large, contender, what, python)
        yield (row, name), work
    for axes, name in ((ROWS, "rows"), (COLUMNS, "columns")):
        row = f"normal float32 {name}, {PROCESSES} processes"
        yield (row, "fork"), functools.partial(run_processes, axes)
    for (name, python), axes in itertools.product(pythons, (None, ROWS)):
        row = f"60 shapes{', in a layout' if axes else ''}"
        work = functools.partial(run_many_shapes, axes, python)
        yield (row, name), work
    ways = {"cut on the host": 2**62, "a program each": 0}
    for size, (name, small) in itertools.product(LINE, ways.items()):
        row = f"8 shapes from {size} elements"
        yield (row, name), functools.partial(run_either_way, size, small)
    for size, (name, python) in itertools.product(REPEATED, pythons):
        row = f"normal again, {size} elements"
        work = functools.partial(run_repeated, "normal", size, python)
        yield (row, name), work


def print_table(figures, console):
    table = Table(box=SIMPLE_HEAD)
    for column in ("what", "by", "peak / array", "seconds", "again", "us"):
        table.add_column(
            column,
            justify="left" if column in "whatby" else "right",
            no_wrap=True,
        )
    for (row, name), values in figures.items():
        cells = [
            spread(values.get(figure), digits)
            for figure, digits in (
                ("peak", 3),
                ("first", 2),
                ("second", 2),
                ("microseconds", 0),
            )
        ]
        table.add_row(row, name, *cells)
    console.print(table)


def draw_picture(figures, path):
    """Draws the memory and the time of one kind of draw, if possible."""
    try:
        from matplotlib import pyplot
    except ImportError:
        return
    chosen = {
        name: values
        for (row, name), values in figures.items()
        if row.startswith("normal float32")
        and "peak" in values
        and "processes" not in row
        and "columns" not in row
    }
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3), layout="constrained")
    for axis, key, label in zip(
        axes,
        ("peak", "second"),
        ("peak memory / array", "seconds, second call"),
    ):
        medians = [statistics.median(v[key]) for v in chosen.values()]
        axis.barh(list(chosen), medians)
        axis.set_xlabel(label)
        axis.invert_yaxis()
    figure.suptitle("131 M float32 normal numbers in rows on 8 devices")
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upstream", metavar="PYTHON")
    parser.add_argument("--torch", metavar="PYTHON")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="rows whose name has it"
    )
    parser.add_argument("--output", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    for python in (options.upstream, options.torch):
        if python and not shutil.which(python):
            parser.error(f"This is no Python that can be run: {python}")
    console = Console(width=160)
    work = [each for each in plan(options) if options.only in each[0][0]]
    figures, versions = measured(work, options.repeats, console)
    print_table(figures, console)
    facts = machine() | versions
    say(facts, console)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        write(options.output / "draws.json", figures, facts)
        draw_picture(figures, options.output / "draws.svg")


if __name__ == "__main__":
    main()
