"""The series of this repository, on the pinned upstream."""

import ast
import functools
import re
import subprocess
import sys

import pytest

from graft.__main__ import REPOSITORY
from graft.compose import plan
from graft.resolve import unresolved
from graft.series import Series
from graft.testing import fill
from graft.upstream import locate

# What only this repository knows of.
OUR_WORDS = re.compile(r"\b(graft\w*|compos(er?|ed|ing)\b|this fork)", re.I)

# As in upstream's `pyproject.toml`.
LINT = [
    "--isolated",
    "--line-length=80",
    "--select=E,F,I,S101",
    "--ignore=E722,E741,E731",
    "--config=lint.isort.force-single-line=true",
    "--config=lint.isort.known-first-party=['keras']",
    "--per-file-ignores=**/random.py:F401,**/__init__.py:F401",
]
FORMAT = ["--isolated", "--line-length=80", "--check"]


@functools.cache
def composition():
    return plan(locate(REPOSITORY), REPOSITORY, REPOSITORY / "build")


@functools.cache
def series():
    return Series.of(composition(), REPOSITORY)


@functools.cache
def commits():
    return series().on(composition().upstream)


def test_the_steps_together_are_the_composed_tree():
    whole = Series.of(composition(), REPOSITORY)
    whole.steps = [*whole.steps, whole.stays]
    tree = dict(composition().upstream)
    for commit in whole.on(tree, polish=lambda text, names: text):
        tree.update(commit.files)
    different = [
        path
        for path in tree.keys() | composition().files.keys()
        if tree.get(path) != composition().files.get(path)
    ]
    assert different == []


def test_decorators_mean_the_same_as_wraps():
    tree = dict(composition().upstream)
    for commit in commits():
        tree.update(commit.files)
    for path in series().grafts - series().stays.claims.keys():
        wrapped = ast.parse(composition().files[path])
        assert ast.dump(_Decorating().visit(wrapped)) == ast.dump(
            ast.parse(tree[path])
        ), path


class _Decorating(ast.NodeTransformer):
    """Makes a decorator of each call that wraps the function above it."""

    def generic_visit(self, node):
        super().generic_visit(node)
        for field in ("body", "orelse"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                setattr(node, field, self.decorated(statements))
        return node

    def decorated(self, statements):
        left = []
        for statement in statements:
            above = left[-1] if left else None
            if isinstance(above, ast.FunctionDef):
                name = above.name
                wrap = re.fullmatch(
                    rf"{name} = ([\w.]+)\({name}\)", ast.unparse(statement)
                )
                if wrap:
                    decorator = ast.parse(wrap.group(1), mode="eval").body
                    above.decorator_list.insert(0, decorator)
                    continue
            left.append(statement)
        return left


def test_imports_of_each_step_lead_somewhere():
    tree = dict(composition().upstream)
    for commit in commits():
        tree.update(commit.files)
        for path, content in commit.files.items():
            assert unresolved(content.decode(), tree) == [], commit.step.file


@pytest.mark.parametrize("command", [["check", *LINT], ["format", *FORMAT]])
def test_style_of_each_step(tmp_path, command):
    for number, commit in enumerate(commits()):
        fill(tmp_path / str(number), commit.files)
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *command, "--no-cache", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_words():
    before = composition().upstream
    for commit in commits():
        assert not OUR_WORDS.search(commit.message), commit.step.file
        for path, content in commit.files.items():
            theirs = set(before.get(path, b"").decode().splitlines())
            for line in content.decode().splitlines():
                ours = line not in theirs and OUR_WORDS.search(line)
                assert not ours, f"{path}: {line}"


def test_messages():
    for commit in commits():
        file, lines = commit.step.file, commit.message.splitlines()
        assert max(map(len, lines)) <= 75, file
        assert not lines[0].endswith("."), file
        for told in ("Why: ", "What: ", "What it costs: "):
            asked = told.rstrip()
            assert any(line.startswith(asked) for line in lines), (file, told)
