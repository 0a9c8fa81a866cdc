"""What the commands print."""

import difflib


def diff(composition, stat):
    """The lines of the unified diff from upstream to a composition."""
    counts = []
    for path, content in sorted(composition.files.items()):
        before = composition.upstream.get(path, b"")
        if content == before:
            continue
        lines = list(
            difflib.unified_diff(
                before.decode().splitlines(keepends=True),
                content.decode().splitlines(keepends=True),
                f"a/{path}" if path in composition.upstream else "/dev/null",
                f"b/{path}",
            )
        )
        if not stat:
            yield from lines
            continue
        added = sum(line[0] == "+" for line in lines[2:])
        counts.append((path, added, sum(line[0] == "-" for line in lines[2:])))
    if counts:
        yield from _stat(counts)


def _stat(counts):
    width = max(len(path) for path, _, _ in counts)
    for path, added, removed in counts:
        yield f"{path:{width}}  +{added} -{removed}\n"
    total = f"{len(counts)} files"
    added = sum(added for _, added, _ in counts)
    removed = sum(removed for _, _, removed in counts)
    yield f"{total:{width}}  +{added} -{removed}\n"


def lock_changes(review):
    """The lines that say what a new lock differs in from the old."""
    lines = []
    for sign, names in (
        ("changed", review.changed),
        ("gone", review.gone),
        ("new", review.unlisted),
        ("no longer hooked", review.stale),
    ):
        lines += [f"{sign}: {name}" for name in names]
    return lines


def status(composition, review):
    """Prints a table of grafts and new modules, and what is wrong."""
    from rich.console import Console
    from rich.table import Table

    table = Table(
        "file", "hooks", "definition", title=f"keras {composition.version}"
    )
    for path, hooks in composition.hooks.items():
        shown = path
        for name, (how, _) in hooks.items():
            table.add_row(shown, how, name)
            shown = ""
        if not hooks:
            table.add_row(path, "adds", "")
    for path in composition.new:
        table.add_row(path, "new", "")
    console = Console()
    console.print(table)
    for error in composition.errors:
        console.print(f"conflict: {error}", markup=False)
    for line in lock_changes(review):
        console.print(f"graft.lock: {line}", markup=False)
