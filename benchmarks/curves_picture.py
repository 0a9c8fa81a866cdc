"""Draws the picture of what `curves.py` measured.

python benchmarks/curves_picture.py curves.json curves.svg
"""

import json
import statistics
import sys
from pathlib import Path

from matplotlib import pyplot
from matplotlib import ticker

MIB = 2**20
# Colours that the colour-blind can tell apart (Okabe and Ito), ours the
# strongest; the markers differ too.
STYLES = {
    "upstream, layout": ("#E69F00", "v"),
    "upstream": ("#D55E00", "s"),
    "Flax NNX": ("#CC79A7", "D"),
    "jax.jit": ("#009E73", "^"),
    "PyTorch": ("#777777", "P"),
    "this fork": ("#0072B2", "o"),
}


def curve(rows, name, x, y):
    """The medians of a contender's figure, ordered by where they belong."""
    points = [
        (row[x], statistics.median(row[y])) for row in rows if row["by"] == name
    ]
    return zip(*sorted(points))


def draw_curves(axis, rows, x, y, scale):
    """Draws a curve for each contender that there is, ours on top."""
    for name, (color, marker) in STYLES.items():
        if not any(row["by"] == name for row in rows):
            continue
        places, values = curve(rows, name, x, y)
        is_ours = name == "this fork"
        axis.plot(
            [place / (MIB if x == "bytes" else 1) for place in places],
            [value / scale for value in values],
            color=color,
            marker=marker,
            markersize=5,
            linewidth=3 if is_ours else 1.5,
            zorder=4 if is_ours else 3,
            label=name,
        )


def draw_least(axis, places, values):
    axis.plot(
        places,
        values,
        color="black",
        linestyle=":",
        linewidth=1.5,
        zorder=5,
        label="the weights alone",
    )


def draw(source, target):
    """Draws what a JSON file has into a picture.

    Args:
        source: The path of what `curves.py` wrote.
        target: The path of the picture; its suffix says of which kind.
    """
    rows = json.loads(Path(source).read_text())["rows"]
    by_size = [row for row in rows if row["devices"] > 1]
    by_processes = [row for row in rows if row["devices"] == 1]
    pyplot.rcParams["font.size"] = 10
    pyplot.rcParams["axes.titlesize"] = 11
    figure, (memory, parts, time) = pyplot.subplots(
        1, 3, figsize=(9.5, 3.8), layout="constrained"
    )
    draw_sizes(memory, time, by_size)
    draw_processes(parts, by_processes)
    for axis in (memory, parts, time):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(color="#dddddd", linewidth=0.7)
        axis.set_axisbelow(True)
    handles, labels = memory.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=len(labels),
        frameon=False,
        columnspacing=1.5,
        handletextpad=0.5,
    )
    figure.savefig(target, metadata={"Date": None}, dpi=100)


def draw_sizes(memory, time, rows):
    largest = max(row["bytes"] for row in rows) / MIB
    draw_curves(memory, rows, "bytes", "growth", MIB)
    draw_least(memory, [0, largest], [0, largest])
    memory.set_title("Peak memory, 8 devices")
    memory.set_ylabel("MiB")
    draw_curves(time, rows, "bytes", "seconds", 1)
    time.set_title("Time, 8 devices")
    time.set_ylabel("seconds")
    for axis, key, scale in ((memory, "growth", MIB), (time, "seconds", 1)):
        # The steepest leaves the picture, so that the others can be seen.
        others = [
            statistics.median(row[key])
            for row in rows
            if row["by"] != "upstream, layout"
        ]
        axis.set_ylim(0, 1.1 * max(others) / scale)
        axis.yaxis.set_major_locator(ticker.MaxNLocator(5))
        axis.set_xlim(0, 1.04 * largest)
        axis.set_xticks([largest * quarter / 4 for quarter in range(5)])
        axis.xaxis.set_major_formatter(ticker.FormatStrFormatter("%.0f"))
        axis.set_xlabel("size of the model, MiB")


def draw_processes(axis, rows):
    counts = sorted({row["processes"] for row in rows})
    size = rows[0]["bytes"] / MIB
    draw_curves(axis, rows, "processes", "growth", MIB)
    draw_least(axis, counts, [size / count for count in counts])
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_locator(ticker.FixedLocator(counts))
    axis.xaxis.set_major_formatter(ticker.ScalarFormatter())
    axis.set_yscale("log", base=2)
    axis.yaxis.set_major_formatter(ticker.ScalarFormatter())
    axis.set_title("Peak memory of a process")
    axis.set_xlabel(f"processes that share {size:.0f} MiB")
    axis.set_ylabel("MiB")


if __name__ == "__main__":
    draw(*sys.argv[1:])
