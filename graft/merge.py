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
- A statement that upstream has word for word, apart from definitions, only
  marks the place for what follows.
- Anything else is new. It goes after what the graft named last in that block,
  or to the end of the block.

The graft's own docstring and the comment at its top are for its readers alone.
"""

import contextlib
import dataclasses

import libcst as cst
from libcst.metadata import MetadataWrapper
from libcst.metadata import PositionProvider

from graft import definitions
from graft import imports
from graft import thin
from graft.blocks import Block
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
from graft.statements import removed_names
from graft.statements import role
from graft.statements import small
from graft.statements import split_leading
from graft.statements import targets
from graft.statements import with_statements
from graft.statements import without_docstring
from graft.syntax import parsed

# What leaves the body to upstream.
OPENING = ("extends", "redeclares")


@dataclasses.dataclass
class Merged:
    """A merged module.

    Args:
        text: The source of the module.
        hooks: The upstream definitions that the graft depends on: from the
            qualified name to `(how, fingerprint)`, where `how` is "replaces",
            "redeclares", "wraps", "removes" or "extends".
    """

    text: str
    hooks: dict


def merge(upstream, graft, file):
    """Sets the definitions of a graft into an upstream module.

    Args:
        upstream: The source of the upstream module.
        graft: The source of the graft.
        file: Its path in the repository, for messages.

    Returns:
        A `Merged`.

    Raises:
        GraftError: One of them cannot be parsed, or the graft does not fit.
    """
    parsed(graft, file)
    wrapper = MetadataWrapper(cst.parse_module(graft), unsafe_skip_copy=True)
    merger = _Merger(file, wrapper.resolve(PositionProvider))
    ours = _opened(wrapper.module)
    thinned, cut = thin.cut(upstream, ours, file)
    module = cst.parse_module(thinned)
    merged = merger.merge_block(module.body, ours, "", 0)
    if not module.body and merged:
        module = module.with_changes(has_trailing_newline=True)
    text = module.with_changes(body=merged).code
    return Merged(thin.restore(text, cut), merger.hooks)


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
    """The merge of one file.

    Args:
        file: The path of the graft.
        positions: Where its statements stand.
    """

    def __init__(self, file, positions):
        self.file = file
        self.positions = positions
        self.hooks = {}

    def error(self, message, statement, name=None):
        position = self.positions.get(statement)
        line = position.start.line if position else None
        return GraftError(message, self.file, line, name)

    @contextlib.contextmanager
    def at(self, statement, name=None):
        """Adds the place to errors that do not tell theirs."""
        try:
            yield
        except GraftError as error:
            if error.file is not None:
                raise
            raise self.error(error.message, statement, name) from None

    def merge_block(self, upstream, graft, prefix, depth):
        """Merges the statements of a module, a class or an `if` branch.

        Args:
            upstream: Upstream's statements.
            graft: The graft's statements.
            prefix: What qualifies a name that is defined here.
            depth: How many blocks stand around this one.

        Returns:
            The merged statements.
        """
        merged = Block(upstream, prefix, depth)
        for statement in graft:
            if import_in(statement) is None:
                self.merge_statement(merged, statement)
        # Last, so that `del` can make room for another import of that name.
        for statement in graft:
            if import_in(statement) is not None:
                self.merge_import(merged, statement)
        return merged.settled()

    def merge_statement(self, merged, statement):
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
            self.merge_definition(merged, statement)
        elif isinstance(statement, cst.If):
            self.merge_if(merged, statement)
        elif small(statement, cst.Del):
            self.merge_removal(merged, statement)
        elif small(statement, cst.Pass):
            pass
        elif merged.marks_place(statement):
            pass
        elif targets(statement):
            self.merge_assignment(merged, statement)
        else:
            self.add(merged, statement)

    def merge_definition(self, merged, new):
        name = new.name.value
        index = merged.find_like(new)
        if index is None:
            self.add(merged, new)
            return
        old = merged[index]
        qualified = merged.qualify(name, role(new, name))
        with self.at(new, qualified):
            if definitions.is_class_pair(old, new):
                self.hook(merged, "extends", qualified, old)
                inner = without_docstring(block(new).body)
                body = self.merge_block(
                    block(old).body, inner, f"{qualified}.", merged.depth + 1
                )
                merged.replace(index, definitions.merged_class(old, new, body))
            elif definitions.is_function_pair(old, new):
                has_body = definitions.has_body(new)
                how = "replaces" if has_body else "redeclares"
                self.hook(merged, how, qualified, old)
                merged.replace(index, definitions.merged_function(old, new))
            else:
                self.replace(merged, index, new, qualified)

    def merge_assignment(self, merged, new):
        name = targets(new)[0]
        wraps = refers_to(new, name)
        found = [merged.find(each) for each in targets(new)]
        index = max((each for each in found if each is not None), default=None)
        qualified = merged.qualify(name)
        if index is not None and wraps:
            self.hook(merged, "wraps", qualified, merged[index])
            merged.follow(index, new)
        elif index is not None:
            self.replace(merged, index, new, qualified)
        elif wraps:
            raise self.error(
                "upstream does not define here what this wraps", new, qualified
            )
        else:
            self.add(merged, new)

    def replace(self, merged, index, new, qualified):
        """Replaces a definition by one of another kind, or an assignment."""
        old = merged[index]
        self.hook(merged, "replaces", qualified, old)
        if import_in(old) is not None:
            merged.remove_name(index, names(new)[0])
            merged.add(new)
        elif set(names(old)) == set(names(new)):
            merged.replace(index, definitions.with_comments(old, new))
        else:
            raise self.error(
                f"upstream's statement defines {_told(names(old))}, the "
                f"graft's {_told(names(new))}: they must define the same names",
                new,
                qualified,
            )

    def merge_if(self, merged, new):
        with self.at(new):
            found = find_chain(merged, new)
        if found is None:
            self.add(merged, new)
            return
        index, pairs = found
        nodes = branches(merged[index])
        for place, branch in pairs:
            if place is None:
                nodes.append(branch)
                continue
            old = nodes[place]
            qualified = merged.qualify(condition_name(nodes, old))
            self.hook(merged, "extends", qualified, merged[index], old)
            body = self.merge_block(
                block(old).body,
                block(branch).body,
                f"{qualified}: ",
                merged.depth + 1,
            )
            nodes[place] = with_statements(old, body)
        merged.replace(index, chain(nodes))

    def merge_removal(self, merged, statement):
        for name in removed_names(statement):
            index = merged.find(name)
            if index is None:
                raise self.error(
                    "upstream does not define here what this removes",
                    statement,
                    merged.qualify(name),
                )
            while index is not None:
                old = merged[index]
                qualified = merged.qualify(name, role(old, name))
                self.hook(merged, "removes", qualified, old)
                if import_in(old) is None and len(names(old)) > 1:
                    raise self.error(
                        f"upstream's statement defines {_told(names(old))}, so "
                        "one of them cannot be removed",
                        statement,
                        qualified,
                    )
                merged.remove_name(index, name)
                index = merged.find(name)

    def merge_import(self, merged, statement):
        for single in imports.single_imports(statement):
            ((name, source),) = imports.bindings(single)
            known, stars = imports.all_bindings(merged)
            if source in stars or source in known.get(name, ()):
                continue
            if name in known or merged.find(name) is not None:
                raise self.error(
                    "upstream means something else by this name; `del` that "
                    "first to replace it",
                    statement,
                    merged.qualify(name),
                )
            merged.insert_import(single)

    def add(self, merged, new):
        """Adds new code, unless it was meant to change a nested definition."""
        inner = list(nested_statements(new))
        added = {name for each in (new, *inner) for name in names(each)}
        for statement in merged:
            for each in nested_statements(statement):
                for name in added.intersection(names(each)):
                    opening = code(statement).strip().split("\n")[0]
                    raise self.error(
                        f"upstream defines this inside `{opening}`; so should "
                        "the graft",
                        new,
                        merged.qualify(name),
                    )
        for each in inner:
            for name in (*names(each), *removed_names(each)):
                index = merged.find(name)
                if index is not None:
                    qualified = merged.qualify(name)
                    self.hook(merged, "wraps", qualified, merged[index])
        merged.add(new)

    def hook(self, merged, how, qualified, old, branch=None):
        """Records that a graft depends on a statement, if it is upstream's."""
        if not merged.is_upstream(old):
            return
        before, _ = self.hooks.get(qualified, (None, None))
        # What comes later may depend on the body too.
        if before is None or (before in OPENING and how not in OPENING):
            taken = header_fingerprint if how in OPENING else fingerprint
            origin = branch or merged.origin.get(old, old)
            self.hooks[qualified] = (how, taken(origin))


def _told(found):
    return " and ".join(f"`{name}`" for name in found)
