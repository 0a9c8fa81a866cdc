"""What remains of upstream's definition when a graft's takes its place."""

import libcst as cst

from graft import docstrings
from graft.errors import GraftError
from graft.statements import block
from graft.statements import code
from graft.statements import docstring_in
from graft.statements import split_leading
from graft.statements import with_statements
from graft.statements import without_docstring


def is_function_pair(old, new):
    return isinstance(old, cst.FunctionDef) and isinstance(new, cst.FunctionDef)


def is_class_pair(old, new):
    return isinstance(old, cst.ClassDef) and isinstance(new, cst.ClassDef)


def has_body(function):
    """Whether a function has more than a docstring."""
    return bool(without_docstring(block(function).body))


def merged_function(old, new):
    """A graft's function in the place of upstream's.

    Args:
        old: Upstream's function.
        new: The graft's, with a body or only a docstring.

    Returns:
        The function. Raises `GraftError` if the docstrings cannot be merged.
    """
    docstring = _merged_docstring(old, new, docstrings.parameters(new))
    if has_body(new):
        body = without_docstring(block(new).body)
    else:
        body = without_docstring(block(old).body)
        new = new.with_changes(body=block(old))
    merged = with_statements(new, docstring + body)
    return with_comments(old, merged.with_changes(**_decorators(old, new)))


def merged_class(old, new, body):
    """Upstream's class with a merged body.

    Args:
        old: Upstream's class.
        new: The graft's.
        body: The merged statements, with upstream's docstring.

    Returns:
        The class. Raises `GraftError` if the docstrings cannot be merged, or if
        the graft writes other bases than upstream.
    """
    if _bases(new) not in ("()", _bases(old)):
        raise GraftError(
            f"the bases of a class stay upstream's, {_bases(old)}. "
            f"Received: {_bases(new)}"
        )
    order = docstrings.class_parameters(body)
    docstring = _merged_docstring(old, new, order)
    merged = with_statements(old, docstring + without_docstring(body))
    return merged.with_changes(
        leading_lines=_comments(old, new), **_decorators(old, new)
    )


def with_comments(old, new):
    """A graft's definition below the comments of the one it replaces."""
    return new.with_changes(leading_lines=_comments(old, new))


def _comments(old, new):
    apart, theirs = split_leading(old.leading_lines)
    _, ours = split_leading(new.leading_lines)
    return apart + (ours or theirs)


def _decorators(old, new):
    source = new if new.decorators else old
    return {
        "decorators": source.decorators,
        "lines_after_decorators": source.lines_after_decorators,
    }


def _bases(node):
    bases = [code(base.value) for base in node.bases]
    bases += [f"{k.keyword.value}={code(k.value)}" for k in node.keywords]
    return f"({', '.join(bases)})"


def _merged_docstring(old, new, order):
    """The docstring of a definition, as a list of at most one statement."""
    theirs = docstring_in(block(old).body)
    ours = docstring_in(block(new).body)
    if theirs is None or ours is None:
        return [each for each in (ours, theirs) if each is not None]
    return [docstrings.merge_statement(theirs, ours, order)]
