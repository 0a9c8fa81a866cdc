"""Imports that a tree cannot satisfy."""

import ast
import functools

ROOT = "keras.src"


def unresolved(text, tree):
    """The imports of a module that lead nowhere.

    Only those from `keras.src` count. A module with an `import *`, or one that
    this Python cannot parse, is trusted to have what is imported from it.

    Args:
        text: The source of the module.
        tree: The content of each file, by path.

    Returns:
        A list of the imports, each as `from MODULE import NAME`.
    """
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.ImportFrom) or node.level:
            continue
        if f"{node.module}.".startswith(f"{ROOT}."):
            for alias in node.names:
                if not _is_there(node.module, alias.name, tree):
                    found.append(f"from {node.module} import {alias.name}")
    return found


def _is_there(module, name, tree):
    for full in (f"{module}.{name}", module):
        path = full.replace(".", "/")
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if file in tree:
                return full != module or _has(tree[file], name)
    return False


def _has(content, name):
    bound = _bound(content)
    return name == "*" or name in bound or "*" in bound


@functools.lru_cache(maxsize=512)
def _bound(content):
    """The names that a module binds, wherever but in its definitions."""
    try:
        found, pending = set(), [ast.parse(content)]
    except SyntaxError:  # Upstream's, for a newer Python.
        return {"*"}
    while pending:
        node = pending.pop()
        if isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        ):
            found.add(node.name)
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(
                (alias.asname or alias.name).split(".")[0]
                for alias in node.names
            )
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        pending.extend(ast.iter_child_nodes(node))
    return found
