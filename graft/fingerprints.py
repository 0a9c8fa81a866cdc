"""Fingerprints of upstream's definitions.

A fingerprint is over the code of a definition alone: without docstring, blank
lines, lines of comment and the spaces in and around lines. Documentation that
upstream improves flows into the fork; only code that a graft relies on is worth
a review.
"""

import hashlib

import libcst as cst

from graft.ifs import branches
from graft.ifs import condition_name
from graft.statements import block
from graft.statements import code
from graft.statements import names
from graft.statements import role
from graft.statements import with_statements
from graft.statements import without_docstring


def _hashed(text):
    lines = ("".join(line.split()) for line in text.splitlines())
    told = "\n".join(line for line in lines if not line.startswith("#"))
    return hashlib.sha256(told.replace("\n", "").encode()).hexdigest()[:16]


def fingerprint(statement):
    """The fingerprint of a definition."""
    if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
        rest = without_docstring(block(statement).body)
        statement = with_statements(
            statement, rest or [cst.SimpleStatementLine([cst.Pass()])]
        )
    return _hashed(code(statement.with_changes(leading_lines=[])))


def header_fingerprint(statement):
    """The fingerprint of what a definition says before its body."""
    changes = {"body": cst.SimpleStatementSuite([cst.Pass()])}
    if isinstance(statement, cst.If):
        changes["orelse"] = None
    return _hashed(code(statement.with_changes(leading_lines=[], **changes)))


def find_fingerprints(text, name):
    """The fingerprints of the definitions of this qualified name in a module.

    Args:
        text: The source of the module.
        name: The qualified name, as a `graft.lock` has it.

    Returns:
        A list: empty if there is no such definition; of a class or an `if`
        block both fingerprints, since it may be replaced or extended.
    """
    found = []
    _find(cst.parse_module(text).body, "", name, found)
    return found


def _find(statements, prefix, name, found):
    for statement in statements:
        if isinstance(statement, cst.If):
            nodes = branches(statement)
            for node in nodes:
                inner = prefix + condition_name(nodes, node)
                if inner == name:
                    found.append(header_fingerprint(node))
                elif name.startswith(inner):
                    _find(block(node).body, f"{inner}: ", name, found)
        for bound in names(statement):
            accessor = role(statement, bound)
            inner = prefix + bound + (f".{accessor}" if accessor else "")
            if inner == name:
                found.append(fingerprint(statement))
                if isinstance(statement, (cst.ClassDef, cst.FunctionDef)):
                    found.append(header_fingerprint(statement))
            elif isinstance(statement, cst.ClassDef):
                if name.startswith(f"{inner}."):
                    _find(block(statement).body, f"{inner}.", name, found)
