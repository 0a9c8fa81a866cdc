"""Merging into upstream's own modules."""

import ast
import functools
import subprocess
import sys

import hypothesis
import hypothesis.strategies as st
import libcst as cst
import pytest

from graft import imports
from graft.__main__ import REPOSITORY
from graft.errors import GraftError
from graft.merge import merge
from graft.statements import docstring_in
from graft.testing import UPSTREAM
from graft.upstream import locate

MODULES = [
    "__init__.py",
    "random/__init__.py",
    "src/backend/__init__.py",
    "src/backend/common/variables.py",
    "src/backend/common/variables_test.py",
    "src/backend/jax/core.py",
    "src/initializers/random_initializers.py",
    "src/layers/layer.py",
    "src/layers/preprocessing/image_preprocessing/random_crop.py",
    "src/ops/core_test.py",
    "src/random/random.py",
]


@functools.cache
def upstream_modules():
    """The source of each of upstream's modules, by path."""
    folder = locate(REPOSITORY) / "keras"
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode()
        for path in sorted(folder.rglob("*.py"))
    }


@pytest.mark.parametrize("path", MODULES)
def test_a_module_as_its_own_graft_changes_nothing(path):
    text = upstream_modules()[path]
    assert merge(text, text, path).text == text


@pytest.mark.parametrize("path", MODULES)
def test_an_import_finds_its_place(path):
    text = upstream_modules()[path]
    module = cst.parse_module(text)
    start = 1 if docstring_in(module.body) else 0
    for index in range(start, imports.import_run(module.body, start)):
        (single,) = imports.single_imports(module.body[index])
        statements = list(module.body)
        imports.remove(statements, index)
        imports.insert(statements, start, single)
        assert module.with_changes(body=statements).code == text


@hypothesis.settings(max_examples=40, deadline=None)
@hypothesis.given(st.data())
def test_any_part_of_a_module_is_in_it_already(data):
    path = data.draw(st.sampled_from(list(upstream_modules())))
    text = upstream_modules()[path]
    statements = ast.parse(text).body
    hypothesis.assume(statements)
    chosen = data.draw(st.lists(st.sampled_from(statements), max_size=5))
    lines = text.split("\n")
    parts = []
    for node in chosen:
        marks = [node, *getattr(node, "decorator_list", [])]
        first = min(each.lineno for each in marks)
        parts.append("\n".join(lines[first - 1 : node.end_lineno]))
    assert merge(text, '"""A note."""\n' + "\n".join(parts), path).text == text


PARTS = [
    "import abc",
    "from keras.src import tree",
    "SIDES = 3",
    "AREA: int = 5",
    "# Why.\nSIDES = SIDES + 1",
    "def area(width):\n    return width",
    "@cached\ndef area(width):\n    return width",
    "# A new one.\ndef volume():\n    pass",
    "area = watched(area)",
    "last = watched(last)",
    "class Sphere(Circle):\n    pass",
    'class Circle:\n    unit = "km"',
    "class Circle:\n    unit: str\n    x = 1",
    "class Circle:\n    def volume(self):\n        pass",
    "class Circle:\n    del unit",
    "class Circle:\n    area = watched(area)",
    "class Circle:\n    def area(self):\n        pass\n\n    x = 1",
    "del area",
    "del math",
    "del ops",
    "del SIDES",
    "del last",
    'if ops.backend() == "numpy":\n    del CIRCLES',
    'if ops.backend() == "numpy":\n    X = 1\n    import abc',
    'if ops.backend() == "numpy":\n\n    def new():\n        pass',
    "if other():\n    X = 1",
    'register("x")',
]


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=4))
def test_the_result_is_formatted(parts):
    graft = formatted('"""A note."""\n\n' + "\n\n\n".join(parts) + "\n")
    try:
        text = merge(UPSTREAM, graft, "shapes.py").text
    except GraftError:
        hypothesis.reject()
    assert text == formatted(text)


@functools.cache
def formatted(text):
    return subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--line-length=80", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_upstream_example_is_formatted():
    assert formatted(UPSTREAM) == UPSTREAM
