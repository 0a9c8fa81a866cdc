"""Sources that cannot be read, told with the place that is at fault."""

import ast
import re

from graft.errors import GraftError

DEFINITION = re.compile(r"\s*(?:async )?(?:def|class) (\w+)")


def decoded(content, file):
    """The text of a module, from its bytes; a `GraftError` if it is none."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise GraftError("this is not UTF-8", file, line) from None


def parsed(text, file):
    """The syntax tree of a module; a `GraftError` where it has an error."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise GraftError(
            f"syntax error: {error.msg}",
            file,
            error.lineno,
            _around(text, error.lineno),
        ) from None


def _around(text, line):
    """The qualified name of what a line defines or is inside of, or `None`."""
    lines = [each for each in text.split("\n")[:line] if each.strip()]
    found, limit = [], None
    for distance, each in enumerate(reversed(lines)):
        indent = len(each) - len(each.lstrip())
        match = DEFINITION.match(each)
        if distance == 0:
            is_around, limit = True, indent
        elif distance == 1 and each.endswith(":"):
            is_around = True  # And its block, which should follow, does not.
        else:
            is_around = indent < limit
        if match and is_around:
            found.append(match[1])
            limit = indent
    return ".".join(reversed(found)) or None
