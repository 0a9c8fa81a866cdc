"""Sources that cannot be read, told with the place that is at fault."""

import ast
import re

from graft.errors import GraftError


def checked_source(content, file):
    """The source of a module, from its bytes; a `GraftError` if it is none."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise GraftError("this is not UTF-8", file, line) from None
    check_syntax(text, file)
    return text


def check_syntax(text, file):
    """Raises a `GraftError` that says where a module has a syntax error."""
    try:
        ast.parse(text)
    except SyntaxError as error:
        above = "\n".join(text.split("\n")[: error.lineno])
        inside = re.findall(r"^\s*(?:async )?(?:def|class) (\w+)", above, re.M)
        raise GraftError(
            f"syntax error: {error.msg}",
            file,
            error.lineno,
            inside[-1] if inside else None,
        ) from None
