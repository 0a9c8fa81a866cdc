"""Spares the parser what a graft does not mention.

libcst takes a second for upstream's longest modules, and a graft touches little
of them. So every function and class that the graft does not mention is replaced
by two lines before parsing, and comes back afterwards. Of a class that the
graft merges into, that goes for each method.
"""

import ast
import re

import libcst as cst

from graft.statements import block
from graft.statements import names
from graft.statements import nested_statements
from graft.statements import removed_names
from graft.syntax import parsed

STAND_IN = re.compile(
    r"^ *def _untouched_(\d+)_\(\):\n +pass$",
    re.MULTILINE,
)
DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def cut(text, graft, file):
    """Replaces the definitions that are not mentioned by stand-ins.

    Args:
        text: The source of an upstream module.
        graft: The statements that may mention them.
        file: The path of the module.

    Returns:
        The short source, and the list of what was cut out.

    Raises:
        GraftError: This Python cannot parse the module.
    """
    lines = text.split("\n")
    short, removed, copied = [], [], 0
    for node in _untouched(parsed(text, f"upstream's {file}").body, graft):
        first = min(each.lineno for each in (node, *node.decorator_list))
        indent = " " * node.col_offset
        short += lines[copied : first - 1]
        short += [
            f"{indent}def _untouched_{len(removed)}_():",
            f"{indent}    pass",
        ]
        removed.append("\n".join(lines[first - 1 : node.end_lineno]))
        copied = node.end_lineno
    return "\n".join(short + lines[copied:]), removed


def restore(text, removed):
    """Puts back what `cut` took out."""
    return STAND_IN.sub(lambda match: removed[int(match.group(1))], text)


def _untouched(body, graft):
    """The definitions in a body that a graft's statements do not mention."""
    classes, mentioned = {}, {"__init__"}  # which documents its class
    for statement in graft:
        if isinstance(statement, cst.ClassDef):
            inner = classes.setdefault(statement.name.value, [])
            inner.extend(block(statement).body)
            continue
        for each in (statement, *nested_statements(statement)):
            mentioned.update(names(each), removed_names(each))
    for node in body:
        if not isinstance(node, DEFINITION) or node.name in mentioned:
            continue
        if node.name not in classes:
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _untouched(node.body, classes[node.name])
