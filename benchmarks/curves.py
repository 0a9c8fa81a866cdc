"""Memory and time of making a model, against its size and against devices.

    python benchmarks/curves.py [--upstream PYTHON] [--flax PYTHON]
        [--torch PYTHON] [--repeats N] [--sizes MIB...] [--processes N...]
        [--output FOLDER]

The model is the same decoder for each contender, made in shards: of several
sizes on eight simulated devices of one process, and of one size on as many
processes of one device each. The paths are of Pythons that have an unmodified
Keras with JAX, Flax with JAX, and PyTorch. Each process of each run is a
fresh one; the contenders take turns, and a figure is the median of the runs,
with the smallest and the largest. With an output folder, it writes
`curves.json` and, if Matplotlib is there, `curves.svg`.

PyTorch has no simulated devices. Where the others use eight, it uses eight
processes, and the memory is the sum of theirs.
"""

import argparse
import functools
import math
import shutil
from pathlib import Path

import curve_contenders
from measure import machine
from measure import measure_processes
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from side_by_side import measured
from side_by_side import say
from side_by_side import spread
from side_by_side import write

DEVICES = 8
SIZES = (64, 256, 512, 1024)
PROCESSES = (1, 2, 4, 8)
# The size, in MiB, where the number of processes varies.
FIXED = 512
WARM_UP = 1

LAYOUT = "upstream, layout"
# A run that needs more is left out: most machines would end it.
MOST_BYTES = 14e9
# How often what makes an array holds it, at most. Upstream's initializers with
# a layout make a full copy on each of eight devices, and as much scratch.
COPIES, COPIES_WITH_LAYOUT = 4, 31


def contenders(options):
    """Returns for each name a contender and its Python."""
    made = {"this fork": (curve_contenders.keras_model, None)}
    if options.upstream:
        python = options.upstream
        made["upstream"] = (curve_contenders.keras_model, python)
        made[LAYOUT] = (curve_contenders.upstream_layout, python)
    made["jax.jit"] = (curve_contenders.jax_jit, options.upstream)
    if options.flax:
        made["Flax NNX"] = (curve_contenders.flax_nnx, options.flax)
    if options.torch:
        made["PyTorch"] = (curve_contenders.torch_dtensor, options.torch)
    return made


def size_of(mebibytes):
    """Returns the bytes of the model, and of its largest array."""
    shapes = [
        shape for shape, _ in curve_contenders.weights(mebibytes).values()
    ]
    sizes = [4 * math.prod(shape) for shape in shapes]
    return sum(sizes), max(sizes)


def fits(name, mebibytes):
    """Whether a contender's run needs no more memory than we may use."""
    total, largest = size_of(mebibytes)
    copies = COPIES_WITH_LAYOUT if name == LAYOUT else COPIES
    return total + copies * largest <= MOST_BYTES


def run(contender, mebibytes, devices, processes, python):
    """Bytes that making the model takes, and seconds in the slowest process.

    On several devices, the bytes are those of all devices together; on one,
    those of the process that needs the most.
    """
    several = processes
    if devices > 1 and contender is curve_contenders.torch_dtensor:
        several = devices
    arguments = {"mebibytes": mebibytes, "devices": devices}
    results = measure_processes(
        contender,
        arguments,
        arguments | {"mebibytes": WARM_UP},
        several,
        python,
    )
    growths = [result["growth"] for result in results]
    return {
        "growth": sum(growths) if devices > 1 else max(growths),
        "seconds": max(result["seconds"][0] for result in results),
    }, results[0]["versions"]


def plan(options):
    """Yields for each figure its case, the contender's name, and the work.

    A case is the size in MiB, the devices of a process, and the processes.
    """
    cases = [(size, DEVICES, 1) for size in options.sizes]
    cases += [(FIXED, 1, processes) for processes in options.processes]
    for case in cases:
        for name, (contender, python) in contenders(options).items():
            if fits(name, case[0]):
                work = functools.partial(run, contender, *case, python)
                yield (case, name), work


def described(figures):
    """The same figures as rows, which say what they are of.

    Args:
        figures: As `side_by_side.measured` returns them for our `plan`.

    Returns:
        A dict of the same kind, with text for each case.
    """
    made = {}
    for ((size, devices, processes), name), values in figures.items():
        where = f"processes: {processes}"
        if devices > 1:
            where = f"{devices} devices"
        facts = {"devices": devices, "processes": processes}
        facts["bytes"] = size_of(size)[0]
        made[f"{size} MiB, {where}", name] = facts | values
    return made


def print_table(rows, console):
    table = Table(box=SIMPLE_HEAD)
    for column in ("what", "by", "peak growth, MiB", "/ own part", "seconds"):
        table.add_column(
            column,
            justify="left" if column in "whatby" else "right",
            no_wrap=True,
        )
    for (what, name), values in rows.items():
        table.add_row(
            what,
            name,
            spread(values["growth"], 0, scale=2**20),
            spread(values["growth"], 2, values["bytes"] / values["processes"]),
            spread(values["seconds"], 2),
        )
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    pythons = ("upstream", "flax", "torch")
    for name in pythons:
        parser.add_argument(f"--{name}", metavar="PYTHON")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--sizes", type=int, nargs="+", metavar="MIB", default=SIZES
    )
    parser.add_argument(
        "--processes", type=int, nargs="+", metavar="N", default=PROCESSES
    )
    parser.add_argument("--output", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    for python in filter(None, (getattr(options, name) for name in pythons)):
        if not shutil.which(python):
            parser.error(f"This is no Python that can be run: {python}")
    console = Console(width=160)
    figures, versions = measured(list(plan(options)), options.repeats, console)
    rows = described(figures)
    print_table(rows, console)
    facts = machine() | versions
    say(facts, console)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        path = options.output / "curves.json"
        write(path, rows, facts)
        try:
            import curves_picture
        except ImportError:  # Matplotlib is not there.
            return
        curves_picture.draw(path, path.with_suffix(".svg"))


if __name__ == "__main__":
    main()
