"""Docstrings whose `Args:` a graft adds to."""

import re

import libcst as cst

from graft.errors import GraftError
from graft.statements import small

ENTRY = re.compile(r"(\*{0,2}\w[\w, *]*?)\s*(\(.*?\))?\s*:(\s|$)")
# The sections before which Keras has `Args:`.
LATER = re.compile(
    r"(Returns|Yields|Raises|Call arguments|Input shape|Output shape|Usage|"
    r"Examples?|References?)\b.*:"
)
QUOTED = re.compile(r"""([a-zA-Z]*)(\"\"\"|'''|"|')(.*)\2$""", re.DOTALL)


def parameters(function):
    """The names of a function's parameters, in order."""
    params = function.params
    found = [*params.posonly_params, *params.params]
    if isinstance(params.star_arg, cst.Param):
        found.append(params.star_arg)
    found += params.kwonly_params
    if params.star_kwarg is not None:
        found.append(params.star_kwarg)
    return [param.name.value for param in found]


def class_parameters(statements):
    """The parameters that the docstring of a class with this body documents."""
    for statement in statements:
        if isinstance(statement, cst.FunctionDef):
            if statement.name.value == "__init__":
                return parameters(statement)
    return []


def merge_statement(theirs, ours, order):
    """Merges docstring statements; see `merge`."""
    strings = [small(each, cst.Expr).value for each in (theirs, ours)]
    if not all(isinstance(each, cst.SimpleString) for each in strings):
        return ours
    prefix, quotes, old = QUOTED.match(strings[0].value).groups()
    new = QUOTED.match(strings[1].value).group(3)
    if not new.lstrip().startswith("Args:"):
        return ours
    text = merge(old, new, order)
    if "\n" in text and len(quotes) == 1:
        quotes *= 3
    value = strings[0].with_changes(value=f"{prefix}{quotes}{text}{quotes}")
    return theirs.with_changes(body=[cst.Expr(value)])


def merge(upstream, graft, order):
    """Adds the entries of a graft's `Args:` to those of upstream's docstring.

    Args:
        upstream: Upstream's docstring, as it stands in the source.
        graft: The graft's, which starts with `Args:`.
        order: The names of the parameters, in the order of the signature.

    Returns:
        The merged docstring.

    Raises:
        GraftError: The graft's docstring has more than entries of `Args:`.
    """
    lines = upstream.split("\n")
    _, *own = graft.strip(" \n").split("\n")
    margin = _margin(lines[1:]) or _margin(own)[4:]
    added = _graft_entries(own)
    start, end = _section(lines, margin)
    if start is None:
        lines, start = _with_section(lines, margin)
        end = start
    entries = _entries(lines[start:end])
    for names, text in added:
        text = [margin + line if line else "" for line in text]
        _put(entries, names, text, order)
    body = [line for _, text in entries for line in text]
    return "\n".join(lines[:start] + body + lines[end:])


def _indent(line):
    return len(line) - len(line.lstrip())


def _margin(lines):
    """What the lines of a docstring are indented by."""
    filled = [_indent(line) for line in lines if line.strip()]
    if filled:
        return " " * min(filled)
    return lines[-1] if lines else ""


def _graft_entries(lines):
    """The entries of a graft's `Args:`, indented as if the margin were 0."""
    cut = len(_margin(lines))
    lines = ["    " + line[cut:] if line.strip() else "" for line in lines]
    heads = [line for line in lines if _indent(line) == 4]
    fits = [bool(ENTRY.match(line[4:])) for line in heads]
    if not heads or lines[0] != heads[0] or not all(fits):
        raise GraftError(
            "a docstring that starts with `Args:` consists of its entries"
        )
    return _entries(lines)


def _entries(lines):
    """Divides the lines of `Args:`: (the names, their lines) for each entry.

    Where the first lines are no entry, they count as one without names.
    """
    entries = []
    column = _indent(next((line for line in lines if line.strip()), ""))
    for line in lines:
        match = ENTRY.match(line[column:]) if _indent(line) == column else None
        if match is not None:
            entries.append((re.findall(r"\w+", match.group(1)), [line]))
        elif entries:
            entries[-1][1].append(line)
        else:
            entries.append(([], [line]))
    return entries


def _section(lines, margin):
    """The lines of `Args:`: where they start and end, or `(None, None)`."""
    starts = [i for i, line in enumerate(lines) if line.strip() == "Args:"]
    if not starts:
        return None, None
    start = end = starts[0] + 1
    for number in range(start, len(lines)):
        if lines[number].strip():
            if _indent(lines[number]) <= len(margin):
                break
            end = number + 1
    return start, end


def _with_section(lines, margin):
    """Adds an empty `Args:` to a docstring: (the lines, where it starts)."""
    for number, line in enumerate(lines):
        if number and line.startswith(margin):
            if LATER.match(line[len(margin) :]):
                head, tail = lines[:number], ["", *lines[number:]]
                return head + [margin + "Args:"] + tail, number + 1
    while len(lines) > 1 and not lines[-1].strip():
        lines = lines[:-1]
    return [*lines, "", margin + "Args:", margin], len(lines) + 2


def _put(entries, names, text, order):
    """Puts an entry in the place of its like, or where the signature has it."""
    for number, (there, _) in enumerate(entries):
        if there == names:
            entries[number] = (names, text)
            return
    index = len(entries)
    if names[0] in order:
        rank = order.index(names[0])
        before = set(order[:rank])
        after = set(order[rank + 1 :])
        places = [i + 1 for i, (n, _) in enumerate(entries) if before & set(n)]
        later = [i for i, (n, _) in enumerate(entries) if after & set(n)]
        index = max(places) if places else min(later, default=index)
    entries.insert(index, (names, text))
