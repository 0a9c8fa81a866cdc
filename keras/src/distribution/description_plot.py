"""Pictures of where the variables of a model are."""

import collections
import os
import re

from keras.src.utils import summary_utils

_ROW_INCHES = 0.25
_BAR_INCHES = 6


def plot_description(
    description,
    to_file="description.png",
    show_dtype=False,
    show_rules=True,
    dpi=200,
):
    """Draws what each device holds, by variable and in all, to a file.

    Each variable has a bar as long as what it takes on each device that has a
    part of it. Those that differ only in the numbers in their paths, such as
    the layers of a stack, share one. A second chart has the totals of each
    device, and of devices that hold the same only one. Variables of one rule
    have one color in both, those without a rule are gray.

    Args:
        description: What `keras.distribution.describe` returns, of which this
            is the method `plot`.
        to_file: The name of the image file. Its extension says of what kind
            it is, such as `.png`, `.svg` or `.pdf`.
        show_dtype: Whether to show the dtype of each variable.
        show_rules: Whether to show the rule that each variable has its layout
            from, and the rules that match no variable.
        dpi: The dots per inch of the image.

    Returns:
        A Jupyter notebook Image object if IPython is installed and the image
        is a PNG. This enables in-line display in notebooks.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If `to_file` has no extension or matplotlib writes no such
            files.

    Example:

    >>> dense = keras.layers.Dense(8)
    >>> dense.build((None, 4))
    >>> description = keras.distribution.describe(
    ...     dense, print_fn=lambda text: None
    ... )
    >>> image = description.plot("dense.png")
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "You must install matplotlib (`pip install matplotlib`) to draw "
            "what devices hold."
        ) from error
    to_file = os.fspath(to_file)
    kind = os.path.splitext(to_file)[1].lower().lstrip(".")
    kinds = Figure().canvas.get_supported_filetypes()
    if kind not in kinds:
        raise ValueError(
            "`to_file` must end in the extension of an image file, one of "
            f"{sorted(kinds)}. Received: to_file={to_file}"
        )

    rows, devices = _rows(description), _devices(description)
    heights = [len(rows) + 1, len(devices) + 1]
    figure = Figure((_BAR_INCHES, _ROW_INCHES * (sum(heights) + 4)))
    upper, lower = figure.subplots(2, height_ratios=heights)
    colors = _colors(description.variables)
    _draw_variables(upper, rows, colors, show_dtype, show_rules)
    _draw_devices(lower, devices, colors)
    if show_rules and description.unused_rules:
        text = ["Rules that match no variable:", *description.unused_rules]
        lower.set_xlabel("\n  ".join(text), loc="left", parse_math=False)
    figure.savefig(to_file, dpi=dpi, bbox_inches="tight")
    if kind == "png":
        try:
            from IPython import display
        except ImportError:
            return None
        return display.Image(filename=to_file)


def _rows(description):
    """Lists of the variables that share a bar."""
    alike = collections.defaultdict(list)
    for each in description.variables:
        path = _pattern(each.path)
        key = (path, each.shape, each.dtype, each.axes, each.rule, each.devices)
        alike[key].append(each)
    return list(alike.values())


def _pattern(path):
    """A path without the numbers that tell layers of a stack apart."""
    return re.sub(r"\d+", "*", path)


def _devices(description):
    """Pairs of the devices that hold the same, and its bytes by rule."""
    held = {
        device: collections.Counter() for device in description.device_bytes
    }
    for variable in description.variables:
        for device in variable.devices:
            held[device][variable.rule] += variable.shard_bytes
    same = collections.defaultdict(list)
    for device, by_rule in held.items():
        same[tuple(by_rule.items())].append(device)
    return [(devices, dict(by_rule)) for by_rule, devices in same.items()]


def _colors(variables):
    rules = dict.fromkeys(each.rule for each in variables)
    colors = {rule: f"C{i}" for i, rule in enumerate(filter(None, rules))}
    return {**colors, None: "0.7"}


def _draw_variables(axes, rows, colors, show_dtype, show_rules):
    table = [("variable", "shape", "dtype", "layout", "rule")]
    for variables in rows:
        one = variables[0]
        path = one.path
        if len(variables) > 1:
            path = f"{len(variables)} x {_pattern(path)}"
        table.append(
            (path, str(one.shape), one.dtype, str(one.axes), one.rule or "")
        )
    shown = [True, True, show_dtype, True, show_rules]
    columns = [column for column, show in zip(zip(*table), shown) if show]
    widths = [max(map(len, column)) for column in columns]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths))
        for cells in zip(*columns)
    ]
    sizes = [sum(each.shard_bytes for each in variables) for variables in rows]
    bars = axes.barh(
        range(1, len(lines)),
        sizes,
        color=[colors[variables[0].rule] for variables in rows],
    )
    axes.bar_label(bars, [_readable(size) for size in sizes], padding=3)
    axes.text(0, 0, "on each of its devices", va="center")
    _label(axes, lines)


def _draw_devices(axes, devices, colors):
    lines = ["in all, on each of these devices"]
    for row, (names, by_rule) in enumerate(devices, 1):
        start = 0
        for rule, size in by_rule.items():
            bars = axes.barh([row], [size], left=start, color=colors[rule])
            start += size
        axes.bar_label(bars, [_readable(start)], padding=3)
        lines.append(
            names[0]
            if len(names) == 1
            else f"{names[0]} to {names[-1]} ({len(names)} devices)"
        )
    _label(axes, lines)


def _label(axes, lines):
    """Writes a line beside each row, the first of which is the heading."""
    axes.set_yticks(
        range(len(lines)), lines, family="monospace", parse_math=False
    )
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.tick_params(left=False)
    axes.set_xticks([])
    axes.spines[:].set_visible(False)


def _readable(size):
    return summary_utils.readable_memory_size(size)
