"""What the commands print."""

import difflib


def diff(composition, stat):
    """The lines of the unified diff from upstream to a composition."""
    counts = []
    for path, content in sorted(composition.files.items()):
        before = composition.upstream.get(path)
        if content == before:
            continue
        lines = _file_diff(path, before, content)
        if not stat:
            yield from lines
            continue
        added = sum(line[0] == "+" for line in lines[2:])
        counts.append((path, added, sum(line[0] == "-" for line in lines[2:])))
    if counts:
        yield from _stat(counts)


def _file_diff(path, before, after):
    old, new = "/dev/null" if before is None else f"a/{path}", f"b/{path}"
    try:
        sides = [_lines(before or b""), _lines(after)]
    except UnicodeDecodeError:
        return [f"Binary files {old} and {new} differ\n"]
    # An empty file has no lines that differ, and is there all the same.
    return list(difflib.unified_diff(*sides, old, new)) or [
        f"--- {old}\n",
        f"+++ {new}\n",
    ]


def _lines(content):
    lines = content.decode().splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n\\ No newline at end of file\n"
    return lines


def _stat(counts):
    width = max(len(path) for path, _, _ in counts)
    for path, added, removed in counts:
        yield f"{path:{width}}  +{added} -{removed}\n"
    total = f"{len(counts)} files"
    added = sum(added for _, added, _ in counts)
    removed = sum(removed for _, _, removed in counts)
    yield f"{total:{width}}  +{added} -{removed}\n"


def lock_changes(review, version):
    """The lines that say what a lock for this version would change."""
    lines = []
    if review.version != version:
        lines.append(f"upstream: {review.version}, now {version}")
    for sign, names in (
        ("changed", review.changed),
        ("gone", review.gone),
        ("new", review.unlisted),
        ("no longer hooked", review.stale),
    ):
        lines += [f"{sign}: {name}" for name in names]
    return lines


def status(composition, review):
    """Prints a table of grafts and new modules, and what is amiss."""
    # Only here: a build composes without it.
    from rich.console import Console
    from rich.table import Table

    title = f"grafts on keras {composition.version}"
    table = Table(title=title)
    table.add_column("file and definition", overflow="fold")
    table.add_column("how")
    for path in sorted([*composition.new, *composition.hooks]):
        table.add_row(path, "new" if path in composition.new else "graft")
        for name, (how, _) in composition.hooks.get(path, {}).items():
            table.add_row(f"  {name}", how)
    # Names of definitions have brackets, which are no markup.
    console = Console(markup=False, highlight=False)
    console.print(table)
    lines = [f"conflict: {error}" for error in composition.errors]
    for line in lock_changes(review, composition.version):
        lines.append(f"graft.lock: {line}")
    for line in lines:
        console.print(line, soft_wrap=True)


def conflicts(found):
    """Prints what does not fit a checkout."""
    print("Nothing was done. To be reviewed:")
    for error, _, _ in found.found:
        print(f"  {error}")
    print(
        "Change the grafts to fit, or leave these out with --skip-conflicts "
        "and make them by hand."
    )


def series(branch, made, left_out):
    """Prints the commits of a new branch, and what is not in them."""
    for commit, change in made:
        print(f"{commit[:10]} {change.step.title} ({len(change.files)} files)")
    print(f"These are on the new branch `{branch}`.")
    if left_out:
        print("Left out, to be made by hand:")
        for error in left_out:
            print(f"  {error}")
