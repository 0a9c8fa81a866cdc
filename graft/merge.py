"""Merges one graft into one upstream module, text to text.

Statement by statement, the graft says what changes:

- `import` adds what upstream does not import yet.
- `def` replaces the function of that name. Upstream's decorators, leading
  comments and docstring stay, unless the graft writes its own. A docstring that
  starts with `Args:` adds or replaces these entries. A `def` whose body is
  nothing but a docstring changes signature and docstring; the body stays.
- `class` is merged by these rules; its bases stay.
- `NAME = ...` replaces the definition of that name, or follows it when the
  value is made from the name itself (it then wraps it).
- `if` merges into the block that has the same condition.
- `del` removes a definition.
- A statement that upstream has word for word marks the place for what follows.
- Anything else is new. It goes after what the graft named last in that block,
  or to the end of the block.

The graft's own docstring and the comment at its top are for its readers alone.
"""

import dataclasses

import libcst as cst
from libcst.metadata import MetadataWrapper
from libcst.metadata import PositionProvider

from graft import docstrings
from graft import imports
from graft.blocks import Block
from graft.blocks import settle_spacing
from graft.errors import GraftError
from graft.fingerprints import fingerprint
from graft.fingerprints import header_fingerprint
from graft.ifs import branches
from graft.ifs import chain
from graft.ifs import condition_name
from graft.ifs import find_chain
from graft.statements import block
from graft.statements import code
from graft.statements import docstring_in
from graft.statements import import_in
from graft.statements import names
from graft.statements import nested_statements
from graft.statements import refers_to
from graft.statements import role
from graft.statements import same_code
from graft.statements import small
from graft.statements import split_leading
from graft.statements import targets
from graft.statements import with_statements
from graft.statements import without_docstring


@dataclasses.dataclass
class Merged:
    """A merged module.

    Args:
        text: The source of the module.
        hooks: The upstream definitions that the graft depends on: from the
            qualified name to `(how, fingerprint)`, where `how` is "replaces",
            "wraps", "removes" or "extends".
    """

    text: str
    hooks: dict


def parse(text, file):
    try:
        return cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        raise GraftError(
            f"syntax error: {error.message}", file, error.raw_line
        ) from None


def merge(upstream, graft, file):
    """Sets the definitions of a graft into an upstream module.

    Args:
        upstream: The source of the upstream module.
        graft: The source of the graft.
        file: Its path in the repository, for messages.

    Returns:
        A `Merged`.

    Raises:
        GraftError: The graft cannot be parsed, or does not fit.
    """
    wrapper = MetadataWrapper(parse(graft, file), unsafe_skip_copy=True)
    merger = _Merger(file, wrapper.resolve(PositionProvider))
    upstream_module = parse(upstream, f"upstream's {file}")
    graft_module = wrapper.module
    statements = merger.merge_block(
        upstream_module.body, _opened(graft_module), "", 0
    )
    if statements is not upstream_module.body:
        upstream_module = upstream_module.with_changes(body=statements)
    return Merged(upstream_module.code, merger.hooks)


def _opened(module):
    """A graft's statements, without what only introduces the file.

    The parser counts every comment above the first statement as the module's;
    one that stands apart from the first block belongs to the statement.
    """
    statements = list(module.body)
    if docstring_in(statements):
        return statements[1:]
    rest, own = split_leading(module.header)
    if statements and own and any(line.comment is None for line in rest):
        statements[0] = statements[0].with_changes(leading_lines=own)
    return statements


class _Merger:
    """The merge of one file: where it stands, and what it hooked."""

    def __init__(self, file, positions):
        self.file = file
        self.positions = positions
        self.hooks = {}

    def error(self, message, statement, name=None):
        position = self.positions.get(statement)
        line = position.start.line if position else None
        return GraftError(message, self.file, line, name)

    def hook(self, how, name, print_of):
        self.hooks.setdefault(name, (how, print_of))

    def merge_block(self, upstream, graft, prefix, depth):
        """Merges the statements of a module, a class or an `if` branch.

        Args:
            upstream: Upstream's statements.
            graft: The graft's statements.
            prefix: What qualifies a name that is defined here.
            depth: How many blocks stand around this one.

        Returns:
            The merged statements; `upstream` itself where nothing changed.
        """
        merged = Block(upstream, prefix, depth)
        later = []
        for statement in graft:
            if import_in(statement) is not None:
                # Last, so that `del` can make room for another of that name.
                later.append(statement)
            else:
                self.merge_statement(merged, statement)
        for statement in later:
            self.merge_import(merged, statement)
        return settle_spacing(upstream, merged)

    def merge_statement(self, merged, statement):
        if isinstance(statement, cst.FunctionDef):
            self.merge_definition(merged, statement)
        elif isinstance(statement, cst.ClassDef):
            self.merge_definition(merged, statement)
        elif isinstance(statement, cst.If):
            self.merge_if(merged, statement)
        elif targets(statement):
            self.merge_assignment(merged, statement)
        elif small(statement, cst.Del):
            self.merge_removal(merged, statement)
        else:
            self.merge_other(merged, statement)

    def merge_definition(self, merged, new):
        name = new.name.value
        accessor = role(new, name)
        index = merged.find(name, accessor)
        if index is None:
            self.add(merged, new)
            return
        old = merged[index]
        qualified = merged.qualify(name, accessor)
        if isinstance(old, cst.ClassDef) and isinstance(new, cst.ClassDef):
            self.hook("extends", qualified, header_fingerprint(old))
            merged.replace(index, self.merged_class(old, new, merged))
        elif import_in(old) is not None:
            self.hook("replaces", qualified, fingerprint(old))
            merged.remove_name(index, name)
            merged.add(new)
        elif isinstance(old, cst.FunctionDef) and isinstance(
            new, cst.FunctionDef
        ):
            merged.replace(index, self.merged_function(old, new, qualified))
        else:
            self.hook("replaces", qualified, fingerprint(old))
            merged.replace(index, _with_comments(old, new))

    def merged_function(self, old, new, qualified):
        body = without_docstring(block(new).body)
        if body:
            self.hook("replaces", qualified, fingerprint(old))
        else:
            self.hook("replaces", qualified, header_fingerprint(old))
            body = without_docstring(block(old).body)
            new = new.with_changes(
                body=block(old).with_changes(body=block(new).body)
            )
        docstring = self.merged_docstring(old, new, docstrings.parameters(new))
        merged = with_statements(new, docstring + body)
        return _with_comments(old, _with_decorators(old, merged))

    def merged_class(self, old, new, merged):
        qualified = merged.qualify(new.name.value)
        if new.bases and _bases(old) != _bases(new):
            raise self.error(
                f"the bases of a class stay upstream's: {_bases(old)}. "
                f"Received: {_bases(new)}",
                new,
                qualified,
            )
        body = self.merge_block(
            block(old).body,
            [
                statement
                for statement in without_docstring(block(new).body)
                if small(statement, cst.Pass) is None
            ],
            f"{qualified}.",
            merged.depth + 1,
        )
        order = docstrings.class_parameters(body)
        docstring = self.merged_docstring(old, new, order)
        body = docstring + without_docstring(body)
        result = _with_decorators(old, new)
        result = old.with_changes(
            decorators=result.decorators,
            lines_after_decorators=result.lines_after_decorators,
            body=block(old).with_changes(body=body),
        )
        _, comments = split_leading(new.leading_lines)
        if not comments:
            return result
        apart, _ = split_leading(old.leading_lines)
        return result.with_changes(leading_lines=apart + comments)

    def merged_docstring(self, old, new, order):
        """The docstring of a definition, as a list of at most one statement."""
        theirs = docstring_in(block(old).body)
        ours = docstring_in(block(new).body)
        if ours is None or theirs is None:
            return [each for each in (ours, theirs) if each is not None]
        try:
            return [docstrings.merge_statement(theirs, ours, order)]
        except ValueError as error:
            raise self.error(str(error), new, new.name.value) from None

    def merge_assignment(self, merged, new):
        assigned = targets(new)
        found = {name: merged.find(name) for name in assigned}
        indices = set(found.values())
        if len(indices) > 1 or (
            indices != {None}
            and names(merged[min(indices)]) != assigned
            and targets(merged[min(indices)])
        ):
            raise self.error(
                "upstream assigns these names in other statements; assign "
                "each on its own",
                new,
                ", ".join(assigned),
            )
        (index,) = indices
        name = assigned[0]
        qualified = merged.qualify(name)
        wraps = refers_to(new, name)
        if index is None:
            if wraps:
                raise self.error("upstream has nothing here to wrap", new, name)
            self.add(merged, new)
            return
        old = merged[index]
        self.hook("wraps" if wraps else "replaces", qualified, fingerprint(old))
        if wraps:
            merged.follow(index, new)
        elif import_in(old) is not None:
            merged.remove_name(index, name)
            merged.add(new)
        else:
            merged.replace(index, _with_comments(old, new))

    def merge_if(self, merged, new):
        try:
            found = find_chain(merged, new)
        except ValueError as error:
            raise self.error(str(error), new) from None
        if found is None:
            self.add(merged, new)
            return
        index, pairs = found
        old = branches(merged[index])
        for place, branch in pairs:
            name = merged.prefix + condition_name(old, branch)
            if place is None:
                old.append(branch)
                continue
            if isinstance(branch, cst.If):
                self.hook("extends", name, header_fingerprint(old[place]))
            body = self.merge_block(
                block(old[place]).body,
                block(branch).body,
                f"{name}: ",
                merged.depth + 1,
            )
            old[place] = with_statements(old[place], body)
        merged.replace(index, chain(old))

    def merge_removal(self, merged, statement):
        target = small(statement, cst.Del).target
        if isinstance(target, cst.Tuple):
            removed = [code(element.value) for element in target.elements]
        else:
            removed = [code(target)]
        for name in removed:
            index = merged.find(name)
            if index is None:
                raise self.error(
                    "upstream does not define this here", statement, name
                )
            while index is not None:
                old = merged[index]
                qualified = merged.qualify(name, role(old, name))
                self.hook("removes", qualified, fingerprint(old))
                merged.remove_name(index, name)
                index = merged.find(name)

    def merge_other(self, merged, statement):
        for index, old in enumerate(merged):
            if same_code(old, statement):
                merged.last = index
                return
        self.add(merged, statement)

    def merge_import(self, merged, statement):
        for single in imports.single_imports(statement):
            known, stars = imports.all_bindings(merged)
            ((name, source),) = imports.bindings(single)
            if source in stars or known.get(name) == source:
                continue
            index = merged.find(name)
            if name in known or index is not None:
                raise self.error(
                    "upstream defines another thing by this name; `del` it "
                    "first to replace it",
                    statement,
                    name,
                )
            merged.insert_import(single)

    def add(self, merged, new):
        """Adds new code, unless it would shadow what it was meant to change."""
        inner = [new, *nested_statements(new)]
        added = {name for each in inner for name in names(each)}
        for statement in merged:
            for each in nested_statements(statement):
                for name in added.intersection(names(each)):
                    raise self.error(
                        f"upstream defines this in the block `"
                        f"{code(statement).strip().splitlines()[0]}`; write "
                        "that block around it, or the whole block word for "
                        "word",
                        new,
                        name,
                    )
        merged.add(new)


def _with_decorators(old, new):
    if new.decorators:
        return new
    return new.with_changes(
        decorators=old.decorators,
        lines_after_decorators=old.lines_after_decorators,
    )


def _with_comments(old, new):
    """Puts a definition in the place of another, under the comments there."""
    apart, comments = split_leading(old.leading_lines)
    _, own = split_leading(new.leading_lines)
    return new.with_changes(leading_lines=apart + (own or comments))


def _bases(node):
    return f"({', '.join(code(base.value) for base in node.bases)})"
