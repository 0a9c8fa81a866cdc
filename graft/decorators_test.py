"""Wraps written as decorators."""

import ast

import pytest

from graft.decorators import decorated
from graft.testing import dedent

TEXT = dedent("""
    import cache


    # What it does.
    @export("area")
    def area(width):
        return width


    # Twice is slow.
    area = cache.cached(area)
    area = cache.watched(
        area,
    )


    def last():
        pass


    last = cached(last)

    if has("nnx"):

        class Circle:
            @property
            def unit(self):
                return "m"

            unit = cached(unit)

            def area(self):
                pass

            area = cached(area)
    elif has('jax'):

        def late():
            pass

        late = cached(late)
    else:

        def never():
            pass

        never = cached(never)
""")
CLASS = 'if has("nnx"): Circle'


def check(names, *changes):
    expected = TEXT
    for old, new in changes:
        assert expected.count(old) == 1, old
        expected = expected.replace(old, new)
    assert decorated(TEXT, names) == expected
    ast.parse(expected)


def test_no_names():
    check([])
    check(["Circle.area", "other"])


def test_decorators_and_comments():
    check(
        ["area"],
        (
            '@export("area")\n',
            "# Twice is slow.\n@cache.watched\n@cache.cached\n"
            '@export("area")\n',
        ),
        (
            "\n\n# Twice is slow.\narea = cache.cached(area)\n"
            "area = cache.watched(\n    area,\n)\n",
            "",
        ),
    )


def test_function():
    check(
        ["last"],
        ("def last", "@cached\ndef last"),
        ("\n\nlast = cached(last)\n", ""),
    )


def test_method():
    text = decorated(TEXT, [f"{CLASS}.area", f"{CLASS}.unit"])
    assert "        @cached\n        @property\n        def unit" in text
    assert "        @cached\n        def area" in text
    assert "unit = " not in text and " area = " not in text


@pytest.mark.parametrize(
    "name", ["if has('jax'): late", 'else of if has("nnx"): never']
)
def test_branches(name):
    function = name.split()[-1]
    check(
        [name],
        (f"    def {function}", f"    @cached\n    def {function}"),
        (f"\n    {function} = cached({function})\n", ""),
    )


@pytest.mark.parametrize(
    "text",
    [
        "import f\n\nf = g(f)\n",
        "def f():\n    pass\n\n\nx = 1\nf = g(f)\n",
        "def f():\n    pass\n\n\nf = g(f, 1)\n",
        "def f():\n    pass\n\n\nf = g(f=f)\n",
        "def f():\n    pass\n\n\nf = f.g\n",
        "def f():\n    pass\n\n\nf = e = g(f)\n",
    ],
)
def test_what_is_no_decorator(text):
    assert decorated(text, ["f"]) == text
