"""`if` blocks: an `if`, its `elif`s and its `else` as a list of branches."""

import libcst as cst

from graft.errors import GraftError
from graft.statements import block
from graft.statements import code
from graft.statements import names
from graft.statements import nested_statements
from graft.statements import same_expression


def branches(statement):
    """The `If` and `Else` nodes of an `if` block, from the top."""
    found = [statement]
    while getattr(found[-1], "orelse", None) is not None:
        found.append(found[-1].orelse)
    return found


def chain(nodes):
    """Puts branches together again."""
    below = None
    for node in reversed(nodes):
        if isinstance(node, cst.If):
            node = node.with_changes(orelse=below)
        below = node
    return below


def condition_name(nodes, branch):
    """What a branch is called in the name of a definition inside it."""
    if isinstance(branch, cst.If):
        return f"if {' '.join(code(branch.test).split())}"
    return f"else of if {' '.join(code(nodes[0].test).split())}"


def _place(nodes, branch):
    for place, node in enumerate(nodes):
        if type(node) is not type(branch):
            continue
        if isinstance(node, cst.Else):
            return place
        if same_expression(node.test, branch.test):
            return place
    return None


def _bound(branch):
    inner = block(branch).body
    return {
        name
        for statement in inner
        for each in (statement, *nested_statements(statement))
        for name in names(each)
    }


def find_chain(statements, new):
    """Finds the `if` block that a graft's `if` block merges into.

    Args:
        statements: The statements to search.
        new: The graft's block.

    Returns:
        `None`, or the index of the block and a pair for each of the graft's
        branches: (which of upstream's branches, or `None` for a new `else`,
        the graft's branch).

    Raises:
        GraftError: Several blocks fit, or one branch fits and another does not.
    """
    wanted = branches(new)
    found = []
    for index, statement in enumerate(statements):
        if isinstance(statement, cst.If):
            nodes = branches(statement)
            places = [_place(nodes, branch) for branch in wanted]
            if places[0] is not None:
                found.append((index, list(zip(places, wanted))))
    if len(found) > 1:
        bound = set().union(*map(_bound, wanted))
        found = [
            (index, pairs)
            for index, pairs in found
            if bound & set().union(*map(_bound, branches(statements[index])))
        ]
        if len(found) != 1:
            raise GraftError(
                "upstream has several blocks with this condition; name a "
                "definition that only one of them has"
            )
    if not found:
        return None
    for place, branch in found[0][1]:
        if place is None and isinstance(branch, cst.If):
            raise GraftError(
                "upstream's `if` block has no branch for the condition `"
                f"{code(branch.test)}`"
            )
    return found[0]
