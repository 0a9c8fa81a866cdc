"""What a statement defines, and the parts of it that merging exchanges.

Everything here works on libcst nodes, which carry their own whitespace and
comments: what is not exchanged keeps its text.
"""

import ast
import functools

import libcst as cst

BLANK = cst.EmptyLine(indent=False)


def code(node):
    """The source text of a node, without what stands above it."""
    return cst.Module([]).code_for_node(node)


@functools.lru_cache(maxsize=4096)
def _normalized(text, mode):
    return ast.dump(ast.parse(text, mode=mode))


def same_code(one, other):
    """Whether two statements say the same, whatever their layout."""
    return type(one) is type(other) and (
        _normalized(code(one), "exec") == _normalized(code(other), "exec")
    )


def same_expression(one, other):
    one, other = (f"({code(node)}\n)" for node in (one, other))
    return _normalized(one, "eval") == _normalized(other, "eval")


def small(statement, kind):
    """The one small statement of this kind that a line consists of, if so."""
    if isinstance(statement, cst.SimpleStatementLine):
        if len(statement.body) == 1 and isinstance(statement.body[0], kind):
            return statement.body[0]
    return None


def import_in(statement):
    return small(statement, (cst.Import, cst.ImportFrom))


def bound_by_alias(alias):
    if alias.asname is not None:
        return code(alias.asname.name).strip()
    return code(alias.name).split(".")[0]


def targets(statement):
    """The code of each target that an assignment assigns to, else `()`."""
    node = small(statement, (cst.Assign, cst.AnnAssign, cst.AugAssign))
    if node is None:
        return ()
    if not isinstance(node, cst.Assign):
        return (code(node.target),)
    found = []
    for target in (each.target for each in node.targets):
        if isinstance(target, (cst.Tuple, cst.List)):
            found += [code(element.value) for element in target.elements]
        else:
            found.append(code(target))
    return tuple(found)


def refers_to(statement, name):
    """Whether the value that is assigned is made from `name` itself."""
    node = small(statement, (cst.Assign, cst.AnnAssign, cst.AugAssign))
    if isinstance(node, cst.AugAssign):
        return True
    if node.value is None:
        return False
    tree = ast.parse(f"({code(node.value)}\n)", mode="eval")
    return any(
        isinstance(part, (ast.Name, ast.Attribute))
        and ast.unparse(part) == name
        for part in ast.walk(tree)
    )


def names(statement):
    """The names that a statement binds in the block that it stands in."""
    if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
        return (statement.name.value,)
    imported = import_in(statement)
    if imported is not None:
        if isinstance(imported.names, cst.ImportStar):
            return ()
        return tuple(bound_by_alias(alias) for alias in imported.names)
    return targets(statement)


def removed_names(statement):
    """The names after a `del`, else `[]`."""
    node = small(statement, cst.Del)
    if node is None:
        return []
    if isinstance(node.target, cst.Tuple):
        return [code(element.value) for element in node.target.elements]
    return [code(node.target)]


def nested_statements(statement):
    """The statements inside `if`, `try` and the like, but not in a `def`."""
    if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
        return
    for child in statement.children:
        if isinstance(child, cst.BaseSuite):
            for inner in child.body:
                yield inner
                yield from nested_statements(inner)
        elif isinstance(child, (cst.Else, cst.If, cst.Finally)) or isinstance(
            child, (cst.ExceptHandler, cst.ExceptStarHandler)
        ):
            yield from nested_statements(child)


def role(statement, name):
    """Which accessor of a property a `def` is: "", "setter", "deleter"..."""
    for decorator in getattr(statement, "decorators", ()):
        node = decorator.decorator
        if isinstance(node, cst.Attribute) and code(node.value) == name:
            return node.attr.value
    return ""


def block(node):
    """The body of a definition or an `if`, as an indented block."""
    if isinstance(node.body, cst.IndentedBlock):
        return node.body
    return cst.IndentedBlock([cst.SimpleStatementLine(node.body.body)])


def with_statements(node, statements):
    return node.with_changes(
        body=block(node).with_changes(body=list(statements))
    )


def docstring_in(statements):
    """The statement that is the docstring of a body, if it has one."""
    if statements:
        node = small(statements[0], cst.Expr)
        if node is not None and isinstance(
            node.value, (cst.SimpleString, cst.ConcatenatedString)
        ):
            return statements[0]
    return None


def without_docstring(statements):
    return list(statements[1 if docstring_in(statements) else 0 :])


def is_comment(line):
    return line.comment is not None


def split_leading(lines):
    """The lines above a statement: (not its own, its own comments)."""
    lines = list(lines)
    cut = len(lines)
    while cut and is_comment(lines[cut - 1]):
        cut -= 1
    return lines[:cut], lines[cut:]


def blank_lines(statement):
    """How many blank lines stand above a statement and its comments."""
    count = 0
    for line in statement.leading_lines:
        if is_comment(line):
            break
        count += 1
    return count


def with_blank_lines(statement, count):
    lines = list(statement.leading_lines)[blank_lines(statement) :]
    return statement.with_changes(leading_lines=[BLANK] * count + lines)
