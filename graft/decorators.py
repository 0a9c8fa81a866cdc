"""Wraps written as decorators.

A graft wraps upstream's `f` by `f = cached(f)`, since it does not restate `f`.
Whoever edits upstream's module writes `@cached` above it.
"""

import ast


def decorated(text, names):
    """Makes decorators of assignments that wrap the function above them.

    Args:
        text: The source of a module.
        names: The qualified names of the functions, as `graft.parts` has them,
            whose wraps are to change.

    Returns:
        The source. What wraps anything but a function right above it, or is no
        call with the function alone, stays.
    """
    found = _Wraps(text, set(names)).find(ast.parse(text).body, "")
    changed = text
    # From the last to the first, so that lines keep their numbers.
    for pair in sorted(found, key=lambda each: -each[1].lineno):
        changed = _changed(changed, *pair)
    # Another wrap of a function now follows it.
    return text if changed == text else decorated(changed, names)


class _Wraps:
    """Finds the wraps in a module that can be decorators.

    Args:
        text: The source of the module.
        names: The qualified names of the functions.
    """

    def __init__(self, text, names):
        self.text = text
        self.names = names

    def find(self, body, prefix):
        """Yields pairs: a function and the assignment that wraps it."""
        for above, statement in zip([None, *body], body):
            if isinstance(statement, ast.ClassDef):
                inner = f"{prefix}{statement.name}."
                yield from self.find(statement.body, inner)
            elif isinstance(statement, ast.If):
                for name, branch in self.branches(statement):
                    yield from self.find(branch, f"{prefix}{name}: ")
            elif isinstance(above, ast.FunctionDef):
                is_wanted = prefix + above.name in self.names
                if is_wanted and _decorator(statement, above.name):
                    yield above, statement

    def branches(self, statement):
        """The branches of an `if` block, named as in `graft.ifs`."""
        opening = self.condition(statement)
        yield f"if {opening}", statement.body
        while statement.orelse:
            (below, *more) = statement.orelse
            is_elif = isinstance(below, ast.If) and not more
            if not is_elif or below.col_offset != statement.col_offset:
                yield f"else of if {opening}", statement.orelse
                return
            statement = below
            yield f"if {self.condition(statement)}", statement.body

    def condition(self, statement):
        told = ast.get_source_segment(self.text, statement.test)
        return " ".join(told.split())


def _decorator(statement, name):
    """The code of `decorator` in `name = decorator(name)`, else `None`."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
        return None
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Name) or not isinstance(value, ast.Call):
        return None
    arguments = [ast.unparse(argument) for argument in value.args]
    if target.id != name or arguments != [name] or value.keywords:
        return None
    return ast.unparse(value.func)


def _changed(text, function, wrap):
    lines = text.split("\n")
    nodes = (function, *function.decorator_list)
    first = min(node.lineno for node in nodes) - 1
    end = function.end_lineno
    comments = [line for line in lines[end : wrap.lineno - 1] if line.strip()]
    indent = " " * function.col_offset
    above = [*comments, f"{indent}@{_decorator(wrap, function.name)}"]
    below = lines[wrap.end_lineno :]
    return "\n".join(lines[:first] + above + lines[first:end] + below)
