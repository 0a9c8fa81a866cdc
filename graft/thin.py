"""Spares the parser what a graft does not mention.

libcst takes a second for upstream's longest modules, and a graft touches little
of them. So every definition at the top of a module that the graft does not
mention is replaced by one line before parsing, and comes back afterwards.
"""

import ast
import re

STAND_IN = re.compile(r"^def _untouched_(\d+)_\(\):\n    pass$", re.MULTILINE)


def cut(text, mentioned):
    """Replaces the definitions that are not mentioned by stand-ins.

    Args:
        text: The source of a module.
        mentioned: The names of the definitions to leave in place.

    Returns:
        The short source, and the list of what was cut out.
    """
    lines = text.split("\n")
    short, removed, copied = [], [], 0
    for node in ast.parse(text).body:
        if not isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        ):
            continue
        if node.name in mentioned:
            continue
        first = min([node, *node.decorator_list], key=lambda n: n.lineno)
        short += lines[copied : first.lineno - 1]
        short += [f"def _untouched_{len(removed)}_():", "    pass"]
        removed.append("\n".join(lines[first.lineno - 1 : node.end_lineno]))
        copied = node.end_lineno
    return "\n".join(short + lines[copied:]), removed


def restore(text, removed):
    """Puts back what `cut` took out."""
    return STAND_IN.sub(lambda match: removed[int(match.group(1))], text)
