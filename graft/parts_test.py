"""Dividing grafts and new modules."""

import pytest

from graft.errors import GraftError
from graft.merge import merge
from graft.parts import WHOLE
from graft.parts import Part
from graft.parts import line_of
from graft.parts import parts
from graft.parts import subset
from graft.testing import UPSTREAM
from graft.testing import dedent

GRAFT = dedent('''
    """Grafts: circles are drawn elsewhere."""

    import abc

    from keras.src import drawing
    from keras.src import shaping

    SIDES = drawing.SIDES


    class Circle:
        """A circle."""

        area = shaping.watched(area)

        def __init__(self, radius):
            self.radius = abc.of(radius)

        # Whoever sets a label.
        @label.setter
        def label(self, value):
            self._label = value


    area = drawing.cached(area)

    if ops.backend() == "numpy":

        def draw(shape):
            return drawing.draw(shape)
    else:
        CIRCLES = 3

    del last
''')
NAMES = [
    "SIDES",
    "wraps Circle.area",
    "Circle.__init__",
    "Circle.label.setter",
    "wraps area",
    'if ops.backend() == "numpy": draw',
    'else of if ops.backend() == "numpy": CIRCLES',
    "del last",
]


def chosen(*names, text=GRAFT, is_graft=True):
    found = parts(text, is_graft)
    wanted = [part for part in found if any(map(part.is_in, names))]
    return subset(text, is_graft, wanted)


def test_names():
    assert [part.name for part in parts(GRAFT, True)] == NAMES


def test_names_in_a_new_module():
    text = "X = 1\nX += 1\n\n\nclass E(Exception):\n    pass\n\n\nprint(X)\n"
    names = [part.name for part in parts(text, False)]
    assert names == ["X", "extends X", "E"]
    assert [part.how for part in parts("X = 1\nX += 1\n", True)] == [
        "",
        "wraps ",
    ]


def test_names_in_imports_only():
    assert parts("import abc\n", True) == (Part(WHOLE),)
    assert subset("import abc\n", True, [Part(WHOLE)]) == "import abc\n"


def test_part_is_in():
    (part,) = parts("class C:\n    del f\n", True)
    assert part == Part("C.f", "del ")
    assert part.is_in("C") and part.is_in("del C.f")
    assert not part.is_in("C.f") and not part.is_in("D")


@pytest.mark.parametrize(
    "name, line", [("SIDES", 8), ("Circle", 14), ("area", 25), ("last", 34)]
)
def test_line_of(name, line):
    assert line_of(GRAFT, True, name) == line
    assert line_of(GRAFT, True, "nothing") is None


def test_all_parts():
    assert subset(GRAFT, True, parts(GRAFT, True)) is GRAFT


def test_one_assignment():
    assert chosen("SIDES") == dedent('''
        """Grafts: circles are drawn elsewhere."""

        from keras.src import drawing

        SIDES = drawing.SIDES
    ''')


def test_one_method():
    assert chosen("Circle.__init__") == dedent('''
        """Grafts: circles are drawn elsewhere."""

        import abc


        class Circle:
            """A circle."""

            def __init__(self, radius):
                self.radius = abc.of(radius)
    ''')


def test_comments_stay_with_their_part():
    text = chosen("Circle.label.setter")
    assert "\n    # Whoever sets a label.\n    @label.setter\n" in text


def test_one_branch():
    assert chosen('else of if ops.backend() == "numpy"').endswith(
        'if ops.backend() == "numpy":\n    pass\nelse:\n    CIRCLES = 3\n'
    )
    text = chosen('if ops.backend() == "numpy"')
    assert "draw(shape)" in text and "else:" not in text


def test_a_branch_below_others():
    text = dedent("""
        if a():
            X = 1
        elif b():
            X = 2
        else:
            X = 3
    """)
    last = "else of if a()"
    assert chosen(last, text=text, is_graft=False) == dedent("""
        if a():
            pass
        elif b():
            pass
        else:
            X = 3
    """)


def test_removal():
    assert chosen("del last").endswith('elsewhere."""\n\ndel last\n')


def test_statements_that_define_nothing():
    text = dedent("""
        import os

        import jax

        if os.sep == "/":
            import abc

        jax.init()
        X = 1
        Y = abc.Y
    """)
    assert chosen("X", text=text) == text.replace("Y = abc.Y\n", "")


@pytest.mark.parametrize("name", NAMES)
def test_each_part_merges(name):
    wanted = [part for part in parts(GRAFT, True) if part.name == name]
    merged = merge(UPSTREAM, subset(GRAFT, True, wanted), "shapes.py")
    whole = merge(UPSTREAM, GRAFT, "shapes.py")
    assert merged.text not in (UPSTREAM, whole.text)
    assert merged.hooks.items() <= whole.hooks.items()


def test_what_is_left_out_is_not_merged():
    text = GRAFT.replace("del last", "del nothing")
    with pytest.raises(GraftError):
        merge(UPSTREAM, text, "shapes.py")
    merge(UPSTREAM, chosen(*NAMES[:-1], text=text), "shapes.py")
