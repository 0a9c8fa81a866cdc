"""Where an import belongs, by the order that upstream's linter asks for.

That is isort's with one import a line: the future, the standard library, third
parties, Keras, relative imports; in each section `import a` before `from a
import b`; then by module and by member, constants before classes before the
rest.
"""

import re
import sys

import libcst as cst

from graft.statements import blank_lines
from graft.statements import bound_by_alias
from graft.statements import code
from graft.statements import import_in
from graft.statements import nested_statements
from graft.statements import with_blank_lines

# Upstream's tests import their `conftest.py` too.
FIRST_PARTY = ("keras", "conftest")


def single_imports(statement):
    """One statement for each name that an import statement imports."""
    node = import_in(statement)
    if isinstance(node.names, cst.ImportStar) or len(node.names) == 1:
        return [statement.with_changes(leading_lines=[])]
    plain = {"lpar": None, "rpar": None}
    if isinstance(node, cst.Import):
        plain = {}
    return [
        cst.SimpleStatementLine(
            [
                node.with_changes(
                    names=[alias.with_changes(comma=cst.MaybeSentinel.DEFAULT)],
                    **plain,
                )
            ]
        )
        for alias in node.names
    ]


def module_of(node, alias):
    if isinstance(node, cst.Import):
        return code(alias.name)
    dots = "." * len(node.relative)
    return dots + (code(node.module) if node.module else "")


def bindings(statement):
    """What an import binds: (name, (where from, what)) for each name."""
    node = import_in(statement)
    if isinstance(node.names, cst.ImportStar):
        return [("*", (module_of(node, None), "*"))]
    found = []
    for alias in node.names:
        module = module_of(node, alias)
        if isinstance(node, cst.ImportFrom):
            found.append((bound_by_alias(alias), (module, code(alias.name))))
        elif alias.asname is not None:
            found.append((bound_by_alias(alias), (module, None)))
        else:  # `import a.b` binds `a`, but makes more than `import a` does
            found.append((module, (module, None)))
    return found


def all_bindings(statements):
    """What imports bind, in `if` and `try` blocks too: (by name, by `*`)."""
    found = {}
    stars = []
    for statement in statements:
        for each in (statement, *nested_statements(statement)):
            if import_in(each) is None:
                continue
            for name, source in bindings(each):
                if name == "*":
                    stars.append(source)
                else:
                    found.setdefault(name, []).append(source)
    return found, stars


def _section(module):
    root = module.split(".")[0]
    if module.startswith("."):
        return 4
    if root == "__future__":
        return 0
    if root in sys.stdlib_module_names:
        return 1
    return 3 if root in FIRST_PARTY else 2


def _natural(text):
    parts = re.split(r"(\d+)", text)
    return [(int(p), p) if p.isdigit() else (-1, p) for p in parts if p]


def _member_type(name):
    if name == "*":
        return 0
    if len(name) > 1 and name.isupper():
        return 1
    return 2 if name[:1].isupper() else 3


def sort_key(statement):
    node = import_in(statement)
    alias = None if isinstance(node.names, cst.ImportStar) else node.names[0]
    module = module_of(node, alias)
    is_from = isinstance(node, cst.ImportFrom)
    dots = len(module) - len(module.lstrip("."))
    key = (_section(module), is_from, -dots)
    key += (_natural(module.lower()), _natural(module))
    if is_from:
        member = code(alias.name) if alias else "*"
        key += (_member_type(member), _natural(member.lower()))
        key += (_natural(member),)
    if alias is not None and alias.asname is not None:
        key += (bound_by_alias(alias),)
    return key


def import_run(statements, start):
    """The end of the run of imports at the top of a block."""
    end = start
    while end < len(statements) and import_in(statements[end]) is not None:
        end += 1
    return end


def insert(statements, start, statement):
    """Sorts an import into the run of imports that begins at `start`."""
    key = sort_key(statement)
    index = start
    end = import_run(statements, start)
    for i in range(start, end):
        if sort_key(statements[i]) < key:
            index = i + 1
    previous = statements[index - 1] if index > start else None
    following = statements[index] if index < end else None
    opens = previous is None or sort_key(previous)[0] != key[0]
    if previous is not None and opens:
        statement = with_blank_lines(statement, 1)
    if following is not None:
        same = sort_key(following)[0] == key[0]
        if previous is None:
            above = blank_lines(following)
            statement = with_blank_lines(statement, above)
        if opens:
            statements[index] = with_blank_lines(following, 0 if same else 1)
    statements.insert(index, statement)
    return index


def remove(statements, index):
    """Removes a whole import; the next one then opens the section."""
    removed = statements.pop(index)
    if index < len(statements) and import_in(statements[index]) is not None:
        following = statements[index]
        above = max(blank_lines(removed), blank_lines(following))
        if index == 0:
            above = 0
        statements[index] = with_blank_lines(following, above)
