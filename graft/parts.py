"""The parts that a graft or a new module can be divided into.

A part is one statement, named after what it defines or changes, as in
`graft.lock`: `f`, `C.method` or `if COND: f`. What a graft removes is `del f`,
what it wraps is `wraps f`, and what a new module adds to is `extends f`.
Imports are no parts: they come with the first part that uses them. Neither are
statements that define nothing: they come with any part of their block.
"""

import ast
import dataclasses
import functools

import libcst as cst
from libcst.metadata import MetadataWrapper
from libcst.metadata import PositionProvider

from graft import imports
from graft.blocks import Block
from graft.ifs import branches
from graft.ifs import chain
from graft.ifs import condition_name
from graft.statements import block
from graft.statements import import_in
from graft.statements import refers_to
from graft.statements import removed_names
from graft.statements import role
from graft.statements import small
from graft.statements import targets
from graft.statements import with_statements

# What a module without any parts is: nothing but imports, say.
WHOLE = "the whole file"


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a module.

    Args:
        target: The qualified name of what it defines or changes.
        how: "wraps ", "del " or "extends " if that is what it does, else "".
    """

    target: str
    how: str = ""

    @property
    def name(self):
        return self.how + self.target

    def is_in(self, name):
        """Whether `name` is this part, or a class or a block around it."""
        inside = (f"{name}.", f"{name}: ")
        return name == self.name or self.target.startswith(inside)

    def concerns(self, name):
        """Whether it changes the definition `name`, or one inside that."""
        return name == self.target or self.is_in(name)


@functools.lru_cache(maxsize=512)
def parts(text, is_graft):
    """The parts of a module, in their order.

    Args:
        text: The source of the module.
        is_graft: Whether upstream has a module for it to be set into.

    Returns:
        A tuple of `Part`s, of which some can be equal.
    """
    found = _walk(cst.parse_module(text).body, "", is_graft)
    return tuple(part for part, _ in found) or (Part(WHOLE),)


def line_of(text, is_graft, name):
    """The line on which what a name stands for begins; `None` for none."""
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    positions = wrapper.resolve(PositionProvider)
    for part, statement in _walk(wrapper.module.body, "", is_graft):
        if part.concerns(name):
            return positions[statement].start.line
    return None


def subset(text, is_graft, wanted):
    """The module that consists of some of the parts of a module.

    Args:
        text: The source of the module.
        is_graft: Whether upstream has a module for it to be set into.
        wanted: The `Part`s.

    Returns:
        The source of the smaller module; `text` itself if all are wanted.
    """
    if set(parts(text, is_graft)) <= set(wanted):
        return text
    module = cst.parse_module(text)
    draft = _Selection(wanted, is_graft).module(module)
    unused = _used(text) - _used(draft)
    return _Selection(wanted, is_graft, unused).module(module)


def _walk(statements, prefix, is_graft):
    """Yields each part in a block with its statement."""
    for statement in statements:
        if isinstance(statement, cst.ClassDef):
            name = prefix + statement.name.value
            inner = list(_walk(block(statement).body, f"{name}.", is_graft))
            yield from inner or [(Part(name), statement)]
        elif isinstance(statement, cst.If):
            for inner, branch in _branches(statement, prefix):
                yield from _walk(block(branch).body, inner, is_graft)
        else:
            part = _part(statement, prefix, is_graft)
            if part is not None:
                yield part, statement


def _branches(statement, prefix):
    nodes = branches(statement)
    return [(f"{prefix}{condition_name(nodes, n)}: ", n) for n in nodes]


def _part(statement, prefix, is_graft):
    """The part that a statement is, where it holds no others."""
    if isinstance(statement, cst.FunctionDef):
        name = statement.name.value
        accessor = role(statement, name)
        return Part(prefix + name + (f".{accessor}" if accessor else ""))
    removed = removed_names(statement)
    if removed:
        return Part(prefix + ", ".join(removed), "del ")
    assigned = targets(statement)
    if not assigned:
        return None
    how = ""
    if is_graft and refers_to(statement, assigned[0]):
        how = "wraps "
    elif small(statement, cst.AugAssign):
        how = "extends "
    return Part(prefix + ", ".join(assigned), how)


def _used(text):
    """The names that the statements of a module use."""
    return {node.id for node in ast.walk(ast.parse(text)) if _is_name(node)}


def _is_name(node):
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)


class _Selection:
    """Takes the wanted parts out of a module.

    Args:
        wanted: The `Part`s.
        is_graft: Whether the module is a graft.
        unused: The names whose imports are to be left out.
    """

    def __init__(self, wanted, is_graft, unused=()):
        self.wanted = set(wanted)
        self.is_graft = is_graft
        self.unused = unused

    def module(self, module):
        return module.with_changes(body=self.body(module.body, "", 0)).code

    def has_wanted(self, statements, prefix):
        found = _walk(statements, prefix, self.is_graft)
        return any(part in self.wanted for part, _ in found)

    def body(self, statements, prefix, depth):
        """What is left of a block that has at least one wanted part."""
        left = Block(statements, prefix, depth)
        left.statements = []
        for statement in statements:
            kept = self.reduced(statement, prefix, depth)
            if kept is not None:
                left.origin[kept] = statement
                left.statements.append(kept)
        for index in reversed(range(len(left.statements))):
            node = left.statements[index]
            if import_in(node) is not None and self.is_unused(node):
                left.remove_import(index)
        return left.settled()

    def is_unused(self, statement):
        bound = [name for name, _ in imports.bindings(statement)]
        return all(name.split(".")[0] in self.unused for name in bound)

    def reduced(self, statement, prefix, depth):
        """What is left of a statement, or `None`."""
        if not self.has_parts(statement, prefix):
            return statement
        if not self.has_wanted([statement], prefix):
            return None
        if isinstance(statement, cst.ClassDef):
            inner = f"{prefix}{statement.name.value}."
            if not list(_walk(block(statement).body, inner, self.is_graft)):
                return statement
            body = self.body(block(statement).body, inner, depth + 1)
            return with_statements(statement, body)
        if isinstance(statement, cst.If):
            return self.branches(statement, prefix, depth)
        return statement

    def has_parts(self, statement, prefix):
        return bool(list(_walk([statement], prefix, self.is_graft)))

    def branches(self, statement, prefix, depth):
        kept, end = [], 0
        for inner, branch in _branches(statement, prefix):
            body = block(branch).body
            if self.has_wanted(body, inner):
                left = self.body(body, inner, depth + 1)
                end = len(kept) + 1
            else:  # What follows depends on its condition.
                left = [cst.SimpleStatementLine([cst.Pass()])]
            kept.append(with_statements(branch, left))
        return chain(kept[:end])
