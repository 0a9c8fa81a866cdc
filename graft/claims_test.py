"""Which change belongs to which step."""

import pytest

from graft import claims
from graft.errors import GraftError
from graft.testing import dedent
from graft.testing import fill

SOURCES = {
    "keras/src/a.py": dedent("""
        import math

        f = cached(f)


        class C:
            def g(self):
                return math.pi

            del h
    """),
    "keras/src/b.py": "X = 1\nX += 2\n",
}
THEIRS = {"keras/src/a.py": b""}
FIRST = """\
title = "First"
description = "Why."

[changes]
"keras/src/a.py" = ["C.g"]
"keras/src/b.py" = ["X"]
"""
SECOND = """\
title = "Second"

[changes]
"keras/src/a.py" = "*"
"keras/src/b.py" = "*"
"""


def read(folder, **steps):
    steps = {"first": FIRST, "second": SECOND, **steps}
    files = {f"series/{name}.toml": text for name, text in steps.items()}
    fill(folder, {name: text for name, text in files.items() if text})
    return claims.read(folder, SOURCES, THEIRS)


def refused(folder, *told, **steps):
    with pytest.raises(GraftError) as caught:
        read(folder, **steps)
    assert str(caught.value) == "\n".join(told)


def names(step):
    return {
        path: [part.name for part in found]
        for path, found in step.parts.items()
    }


def test_division(tmp_path):
    (first, second), stays = read(tmp_path)
    assert (first.title, first.description) == ("First", "Why.")
    assert names(first) == {"keras/src/a.py": ["C.g"], "keras/src/b.py": ["X"]}
    assert names(second) == {
        "keras/src/a.py": ["wraps f", "del C.h"],
        "keras/src/b.py": ["extends X"],
    }
    assert stays.parts == {}


def test_what_stays(tmp_path):
    stays = '[changes]\n"keras/src/b.py" = ["X"]\n'
    first = FIRST.replace('"keras/src/b.py" = ["X"]', "")
    (_, second), stays = read(tmp_path, first=first, stays=stays)
    assert names(stays) == {"keras/src/b.py": ["X"]}
    assert names(second)["keras/src/b.py"] == ["extends X"]


def test_class(tmp_path):
    (first, second), _ = read(tmp_path, first=FIRST.replace("C.g", "C"))
    assert names(first)["keras/src/a.py"] == ["C.g", "del C.h"]
    assert names(second)["keras/src/a.py"] == ["wraps f"]


def test_change_in_no_step(tmp_path):
    refused(
        tmp_path,
        "keras/src/a.py:3: `wraps f`: no step of the series has this change",
        "keras/src/a.py:10: `del C.h`: no step of the series has this change",
        "keras/src/b.py:2: `extends X`: no step of the series has this change",
        second="",
    )


def test_file_in_no_step(tmp_path):
    refused(
        tmp_path,
        "keras/src/b.py: no step of the series has this file",
        first=FIRST.replace('"keras/src/b.py" = ["X"]', ""),
        second=SECOND.replace('"keras/src/b.py" = "*"', ""),
    )


def test_change_in_two_steps(tmp_path):
    told = "several steps have this change: series/first.toml and series/second"
    refused(
        tmp_path,
        f"keras/src/a.py:7: `C.g`: {told}.toml",
        second=SECOND.replace('"*"', '["C", "wraps f"]', 1),
    )


def test_rest_in_two_steps(tmp_path):
    told = "several steps have this change: series/second.toml and series/third"
    refused(
        tmp_path,
        f"keras/src/b.py:2: `extends X`: {told}.toml",
        third='title = "Third"\n\n[changes]\n"keras/src/b.py" = "*"\n',
    )


def test_unknown_changes(tmp_path):
    refused(
        tmp_path,
        "series/first.toml: `C.e`: keras/src/a.py has no such change",
        "series/first.toml: keras/src/c.py: there is no such change",
        first=FIRST.replace("C.g", "C.e") + '"keras/src/c.py" = "*"\n',
    )


@pytest.mark.parametrize(
    "text, told",
    [
        ("title = ", "series/first.toml: this is no TOML: Invalid value"),
        ("[changes]\n", "series/first.toml: a step needs a `title`"),
        ("titel = 1\n", "Received: titel=1"),
        ('requires = "x"\n', "Received: requires=x"),
        ('title = "x"\n[replaces]\n"a.yml" = "b"\n', "Received: a.yml=b"),
        ('title = "x"\n[replaces.a]\n"b" = 3\n', "Received: a={'b': 3}"),
        ('title = "x"\n[changes]\n"a.py" = 3\n', "Received: a.py=3"),
        ('title = "x"\n[changes]\n"a.py" = "f"\n', "Received: a.py=f"),
    ],
)
def test_steps_that_cannot_be_read(tmp_path, text, told):
    with pytest.raises(GraftError) as caught:
        read(tmp_path, first=text)
    assert told in str(caught.value)


def test_no_steps(tmp_path):
    refused(
        tmp_path,
        "series: there is no step, such as 01-layouts.toml",
        first="",
        second="",
    )
