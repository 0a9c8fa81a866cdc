"""The statements of one block while a graft changes them."""

import libcst as cst

from graft import imports
from graft.statements import blank_lines
from graft.statements import bound_by_alias
from graft.statements import docstring_in
from graft.statements import import_in
from graft.statements import is_comment
from graft.statements import names
from graft.statements import role
from graft.statements import same_code
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
        self.upstream = statements
        self.statements = list(statements)
        self.origin = {}  # from a statement to the one of upstream it replaces
        self.prefix = prefix
        self.depth = depth
        self.is_branch = prefix.endswith(": ")  # of an `if`; else a class
        self.last = None  # where the graft's previous match stands

    def __iter__(self):
        return iter(self.statements)

    def __getitem__(self, index):
        return self.statements[index]

    def is_upstream(self, statement):
        """Whether a statement is upstream's, or was before it changed."""
        return statement in self.origin or statement in self.upstream

    def qualify(self, name, accessor=""):
        return self.prefix + name + (f".{accessor}" if accessor else "")

    def find(self, name):
        """Where the definition of a name stands that is in force at the end."""
        return self._last(lambda each: name in names(each))

    def find_like(self, definition):
        """Where the definition stands that a `def` or `class` is to replace.

        The last of its kind, rather than a wrapper of that; of a property, the
        same accessor.
        """
        name = definition.name.value
        accessor = role(definition, name)

        def is_accessor(each):
            return name in names(each) and role(each, name) == accessor

        index = self._last(
            lambda each: (
                isinstance(each, type(definition)) and is_accessor(each)
            )
        )
        return self._last(is_accessor) if index is None else index

    def _last(self, fits):
        for index in reversed(range(len(self.statements))):
            if fits(self.statements[index]):
                return index
        return None

    def marks_place(self, statement):
        """Whether this statement is here already; then what is new follows."""
        for index, old in enumerate(self.statements):
            if same_code(old, statement):
                self.last = index
                return True
        return False

    def replace(self, index, statement):
        old = self.statements[index]
        if isinstance(old, DEFINITION) == isinstance(statement, DEFINITION):
            self.origin[statement] = self.origin.get(old, old)
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
            del self.statements[index]
            self.keep_comments(statement, index)
            self.last = index - 1
        elif len(node.names) > 1:
            kept = [a for a in node.names if bound_by_alias(a) != name]
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            self.change(
                index,
                statement.with_changes(body=[node.with_changes(names=kept)]),
            )
        else:
            self.remove_import(index)
            if self.last is not None and self.last >= index:
                self.last -= 1

    def keep_comments(self, removed, index):
        """Keeps comments that stood above, but apart from, what is gone."""
        apart, _ = split_leading(removed.leading_lines)
        if index < len(self.statements) and any(map(is_comment, apart)):
            below = self.statements[index]
            own = list(below.leading_lines)[blank_lines(below) :]
            self.change(index, below.with_changes(leading_lines=apart + own))

    def remove_import(self, index):
        """Removes a whole import statement."""
        following = self.statements[index + 1 : index + 2]
        imports.remove(self.statements, index)
        if following:
            changed, self.statements[index] = self.statements[index], *following
            self.change(index, changed)

    def change(self, index, statement):
        """Puts a statement in the place of one that it was made from."""
        old = self.statements[index]
        if self.is_upstream(old):
            self.origin[statement] = self.origin.get(old, old)
        self.statements[index] = statement

    def imports_start(self):
        return 1 if docstring_in(self.statements) else 0

    def insert_import(self, statement):
        imports.insert(self.statements, self.imports_start(), statement)

    def filled(self):
        """The statements, with `pass` only where a body would be empty."""
        theirs = without_docstring(self.upstream)
        ours = without_docstring(self.statements)
        if len(theirs) == 1 and small(theirs[0], cst.Pass) and len(ours) > 1:
            return [each for each in self.statements if each is not theirs[0]]
        if self.depth and not self.statements:
            return [cst.SimpleStatementLine([cst.Pass()])]
        return self.statements

    def settled(self):
        """The statements, with the blank lines that the formatter asks for.

        Only where a statement has another one above it than upstream.
        """
        filled = self.filled()
        pairs = set(zip([None, *self.upstream], self.upstream))
        origins = [self.origin.get(each, each) for each in filled]
        return [
            statement
            if (above, origin) in pairs
            else self.spaced(statement, previous)
            for statement, origin, previous, above in zip(
                filled, origins, [None, *filled], [None, *origins]
            )
        ]

    def spaced(self, statement, previous):
        most = 1 if self.depth else 2
        near_definition = isinstance(statement, DEFINITION) or isinstance(
            previous, DEFINITION
        )
        if previous is None:
            wanted = 1 if near_definition and self.is_branch else 0
        elif near_definition:
            wanted = most
        else:
            wanted = min(blank_lines(statement), most)
            if docstring_in([previous]) or (
                import_in(previous) is not None and import_in(statement) is None
            ):
                wanted = max(wanted, 1)
        return with_blank_lines(statement, wanted)
