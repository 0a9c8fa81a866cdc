"""What benchmarks share that measure contenders in turn and show medians."""

import json
import statistics

from rich.filesize import decimal
from rich.progress import track


def measured(plan, repeats, console):
    """Measures everything a number of times, in turn.

    Args:
        plan: A list of `(key, work)`. A key says what is measured and last by
            whom; `work()` returns a dict of figures and one of versions.
        repeats: How many times, an integer.
        console: Where the progress shows, a `rich.console.Console`.

    Returns:
        For each key a dict of lists, and by whom the versions.
    """
    figures, versions = {}, {}
    for key, work in track(
        plan * repeats,
        "Measuring",
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ):
        result, versions[key[-1]] = work()
        for figure, value in result.items():
            values = figures.setdefault(key, {})
            values.setdefault(figure, []).append(value)
    return figures, versions


def spread(values, digits, scale=1):
    """The median with the smallest and the largest of values, as text."""
    if not values:
        return ""
    low, middle, high = min(values), statistics.median(values), max(values)
    numbers = [f"{value / scale:.{digits}f}" for value in (middle, low, high)]
    if len(values) == 1:
        return numbers[0]
    return "{} ({} to {})".format(*numbers)


def say(facts, console):
    """Prints what the machine is, and what each contender ran with.

    Args:
        facts: A dict, in which the versions of a contender are a dict too.
        console: A `rich.console.Console`.
    """
    alone = {name: f for name, f in facts.items() if not isinstance(f, dict)}
    alone["memory"] = decimal(alone["memory"])
    for by, told in {"machine": alone, **facts}.items():
        if isinstance(told, dict):
            told = ", ".join(f"{name} {fact}" for name, fact in told.items())
            console.print(f"{by}: {told}", highlight=False)


def write(path, figures, facts):
    """Writes all figures to a JSON file.

    Args:
        path: The path of the file.
        figures: As `measured` returns them.
        facts: A dict about the machine and the versions.
    """
    rows = [
        {"what": what, "by": by, **values}
        for (what, by), values in figures.items()
    ]
    text = json.dumps({"machine": facts, "rows": rows}, indent=1)
    path.write_text(text + "\n")
