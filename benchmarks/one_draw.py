"""Peak memory and time of one large draw in shards on eight devices.

    python benchmarks/one_draw.py [--upstream PYTHON]

`PYTHON` is the path of a Python that has an unmodified Keras and JAX, to be
measured side by side. Each row is a process of its own.
"""

import argparse
import math
import shutil

import contenders
from measure import machine
from measure import measure
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.filesize import decimal
from rich.progress import track
from rich.table import Table

SHAPE = (128_000, 2048)
WARM_UP = (1024, 16)


def rows(upstream):
    """Yields who is measured: a name, a contender and its Python."""
    layer = "Embedding in ModelParallel"
    yield "RandomNormal with layout", contenders.keras_initializer, None
    yield layer, contenders.keras_embedding, None
    if upstream:
        yield layer, contenders.keras_embedding, upstream


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upstream", metavar="PYTHON")
    options = parser.parse_args()
    if options.upstream and not shutil.which(options.upstream):
        parser.error(
            "--upstream must be the path of a Python. "
            f"Received: {options.upstream}"
        )
    console = Console()
    size = math.prod(SHAPE) * 4  # float32

    console.print(
        f"float32 {SHAPE}, {decimal(size)}, in layout {contenders.AXES} on "
        "8 simulated devices"
    )
    table = Table(box=SIMPLE_HEAD)
    table.add_column("drawn by")
    table.add_column("keras")
    table.add_column("peak growth\n/ array", justify="right")
    table.add_column("seconds", justify="right")
    table.add_column("again", justify="right")
    for what, contender, python in track(
        list(rows(options.upstream)),
        "Measuring",
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ):
        arguments, warm_up = {"shape": SHAPE}, {"shape": WARM_UP}
        result = measure(contender, arguments, warm_up, python)
        first, second = result["seconds"]
        table.add_row(
            what,
            result["versions"]["keras"],
            f"{result['growth'] / size:.3f}",
            f"{first:.2f}",
            f"{second:.2f}",
        )
    console.print(table)
    facts = machine()
    facts["memory"] = decimal(facts["memory"])
    facts |= result["versions"]
    del facts["keras"]
    console.print(", ".join(f"{name} {fact}" for name, fact in facts.items()))


if __name__ == "__main__":
    main()
