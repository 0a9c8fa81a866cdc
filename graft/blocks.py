"""The statements of one block while a graft changes them."""

import libcst as cst

from graft import imports
from graft.statements import blank_lines
from graft.statements import bound_by_alias
from graft.statements import docstring_in
from graft.statements import import_in
from graft.statements import names
from graft.statements import role
from graft.statements import small
from graft.statements import split_leading
from graft.statements import with_blank_lines
from graft.statements import without_docstring

DEFINITION = (cst.FunctionDef, cst.ClassDef)


class Block:
    """The statements of a module, a class or a branch.

    Args:
        statements: Upstream's statements.
        prefix: What qualifies a name that is defined here.
        depth: How many blocks stand around this one.
    """

    def __init__(self, statements, prefix, depth):
        self.statements = list(statements)
        self.prefix = prefix
        self.depth = depth
        self.last = None  # where the graft's previous match stands

    def __iter__(self):
        return iter(self.statements)

    def __getitem__(self, index):
        return self.statements[index]

    def qualify(self, name, accessor=""):
        return self.prefix + name + (f".{accessor}" if accessor else "")

    def find(self, name, accessor=None):
        """Where the definition of a name stands that is in force at the end.

        With an accessor ("", "setter", ...), only a `def` of that kind counts.
        """
        for index in reversed(range(len(self.statements))):
            statement = self.statements[index]
            if name not in names(statement):
                continue
            if accessor is None or accessor == role(statement, name):
                return index
        return None

    def replace(self, index, statement):
        self.statements[index] = statement
        self.last = index

    def add(self, statement):
        """Adds a statement after the previous match, or to the end."""
        index = len(self.statements) if self.last is None else self.last + 1
        self.statements.insert(index, statement)
        self.last = index

    def follow(self, index, statement):
        """Adds a statement that changes the one at `index`, below it."""
        start = self.imports_start()
        end = imports.import_run(self.statements, start)
        index = end if start <= index < end else index + 1
        self.statements.insert(index, statement)
        self.last = index

    def remove_name(self, index, name):
        """Removes what binds a name; the next addition takes its place."""
        statement = self.statements[index]
        node = import_in(statement)
        if node is None:
            apart, _ = split_leading(statement.leading_lines)
            self.statements.pop(index)
            if any(line.comment for line in apart) and index < len(
                self.statements
            ):
                self.statements[index] = _under(apart, self.statements[index])
            self.last = index - 1
        elif len(node.names) > 1:
            kept = [a for a in node.names if bound_by_alias(a) != name]
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            self.statements[index] = statement.with_changes(
                body=[node.with_changes(names=kept)]
            )
        else:
            imports.remove(self.statements, index)
            if self.last is not None and self.last >= index:
                self.last -= 1

    def imports_start(self):
        return 1 if docstring_in(self.statements) else 0

    def insert_import(self, statement):
        imports.insert(self.statements, self.imports_start(), statement)


def _under(lines, statement):
    """A statement below the comments that stood above its predecessor."""
    _, own = split_leading(statement.leading_lines)
    return statement.with_changes(leading_lines=[*lines, *own])


def settle_spacing(upstream, block):
    """Gives what changed the blank lines that upstream's formatter asks for.

    Args:
        upstream: Upstream's statements.
        block: The `Block` that they became.

    Returns:
        The statements; `upstream` itself where nothing changed.
    """
    statements = block.statements
    if len(statements) == len(upstream) and all(
        one is other for one, other in zip(statements, upstream)
    ):
        return upstream
    kept = set(zip([None, *map(id, upstream)], map(id, upstream)))
    settled = []
    previous = None
    filled = [each for each in statements if not small(each, cst.Pass)]
    if not without_docstring(filled):
        filled = filled + [cst.SimpleStatementLine([cst.Pass()])]
    for statement in filled:
        pair = (None if previous is None else id(previous), id(statement))
        if pair not in kept:
            settled.append(_spaced(statement, previous, block.depth))
        else:
            settled.append(statement)
        previous = statement
    return settled


def _spaced(statement, previous, depth):
    room = 1 if depth else 2
    if previous is None:
        wanted = 0
    elif isinstance(statement, DEFINITION) or isinstance(previous, DEFINITION):
        wanted = room
    else:
        present = blank_lines(statement)
        least = 0
        if docstring_in([previous]):
            least = 1
        elif import_in(previous) is not None and import_in(statement) is None:
            least = 1
        wanted = min(max(present, least), room)
    return with_blank_lines(statement, wanted)
