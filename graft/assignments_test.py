"""Grafts that assign and remove."""

from graft.testing import UPSTREAM
from graft.testing import check
from graft.testing import hooks
from graft.testing import merged
from graft.testing import refused


def test_assignment_replaces():
    check("SIDES = 3\n", ("SIDES = 4", "SIDES = 3"))
    check("SIDES: int = 3\n", ("SIDES = 4", "SIDES: int = 3"))
    assert hooks("SIDES = 3\n") == {"SIDES": "replaces"}
    text = merged("last = None\n").text
    assert text.endswith("\n\nlast = None\n") and "def last" not in text


def test_assignment_from_itself_wraps():
    graft = "area = watched(area)\n"
    check(
        graft,
        ("width * height\n", f"width * height\n\n\n{graft}"),
    )
    check("SIDES += 1\n", ("SIDES = 4\n", "SIDES = 4\nSIDES += 1\n"))
    check(
        "class Circle:\n    area = watched(area)\n",
        (
            "radius**2\n",
            "radius**2\n\n    area = watched(area)\n",
        ),
    )
    assert hooks(graft) == {"area": "wraps"}


def test_wrappers_stand_in_order():
    text = merged("area = inner(area)\narea = outer(area)\n").text
    assert "\n\n\narea = inner(area)\narea = outer(area)\n\n\n" in text


def test_wrapping_an_import():
    check(
        "ops = watched(ops)\n",
        ("import ops\n", "import ops\n\nops = watched(ops)\n"),
    )
    check(
        "math = watched(math)\n",
        ("import ops\n", "import ops\n\nmath = watched(math)\n"),
    )


def test_wrapping_nothing():
    error = refused(
        "\nX = 1\nclass Circle:\n    volume = watched(volume)\n",
        "`Circle.volume`: upstream does not define here what this wraps",
    )
    assert error.line == 3


def test_assignments_together():
    upstream = "a = b = 1\nc = 2\n"
    check("a = b = 3\n", ("= 1", "= 3"), upstream=upstream)
    refused("a = 3\n", "defines `a` and `b`, the graft's", upstream=upstream)
    refused("b, c = 3\n", "must define the same names", upstream=upstream)
    refused("del a\n", "one of them cannot be removed", upstream=upstream)


def test_attributes_are_names_too():
    upstream = 'class A:\n    pass\n\n\nA.__doc__ = "x"\n'
    check('A.__doc__ = "y"\n', ('"x"', '"y"'), upstream=upstream)
    check(
        "A.__doc__ = A.__doc__.strip()\n",
        ('"x"\n', '"x"\nA.__doc__ = A.__doc__.strip()\n'),
        upstream=upstream,
    )


def test_removal():
    check(
        "del area, last\n",
        (
            UPSTREAM[
                UPSTREAM.index("# Where") : UPSTREAM.index('@ops.export("Ci')
            ],
            "",
        ),
        ("\n\n\ndef last():\n    pass\n", "\n"),
    )
    assert hooks("del area, math\n") == {"area": "removes", "math": "removes"}


def test_new_code_takes_the_place_of_what_is_removed():
    check(
        "del b\nc = 3\n",
        ("b = 2\n", "c = 3\n"),
        upstream="a = 1\nb = 2\nd = 4\n",
    )


def test_removal_of_all():
    check(
        "class A:\n    del x\n",
        ("x = 1", "pass"),
        upstream="class A:\n    x = 1\n",
    )


def test_removal_keeps_comments_that_stand_apart():
    check(
        "del b\n",
        ("# Of b.\ndef b():\n    pass\n\n\n", ""),
        upstream="""
            def a():
                pass


            # Section.

            # Of b.
            def b():
                pass


            def c():
                pass
            """,
    )


def test_removal_of_an_unknown_name():
    error = refused("SIDES = 3\n\ndel cube\n", "does not define here what this")
    assert (error.line, error.name) == (3, "cube")


def test_a_replacement_of_another_kind():
    check(
        "SIDES = 3\n\n\ndef ops():\n    pass\n",
        ("import math\n\nfrom keras.src import ops\n", "import math\n"),
        ("SIDES = 4\n", "SIDES = 3\n\n\ndef ops():\n    pass\n"),
    )


def test_the_graft_may_go_on_from_its_own_code():
    graft = "NEW = []\nNEW += [1]\nNEW = list(NEW)\n"
    assert merged(graft).text.endswith(f"\n\n{graft}")
    assert hooks(graft) == {}


def test_removal_of_the_first_in_a_block():
    check(
        "if a:\n    del x\n",
        ("    x = 1\n\n    y", "    y"),
        upstream="if a:\n    x = 1\n\n    y = 2\n",
    )
    check(
        "if a:\n    del x\n",
        ("    x = 1\n", ""),
        upstream="if a:\n    x = 1\n\n    def f():\n        pass\n",
    )
    check(
        "class A:\n    del x\n",
        ("    x = 1\n\n", ""),
        upstream="class A:\n    x = 1\n\n    def f():\n        pass\n",
    )
