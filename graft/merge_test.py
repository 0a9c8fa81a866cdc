"""Grafts of functions and classes, and what goes for all of them."""

from graft.merge import merge
from graft.testing import UPSTREAM
from graft.testing import check
from graft.testing import hooks
from graft.testing import merged
from graft.testing import refused


def test_nothing_to_merge():
    check("")
    check('"""A note to readers."""\n')
    check("# Only a comment.\n")
    assert hooks("") == {}


def test_function_keeps_decorators_comments_and_docstring():
    check(
        """
        def area(width, height=2.0, layout=None):
            return windows.area(width, height, layout)
        """,
        (
            "def area(width, height=1.0):",
            "def area(width, height=2.0, layout=None):",
        ),
        (
            "    return width * height\n",
            "    return windows.area(width, height, layout)\n",
        ),
    )


def test_function_with_own_decorators_comments_and_docstring():
    check(
        '''
        """A note."""

        # Our reason.
        @functools.cache
        def area(width):
            """Ours."""
            return width
        ''',
        (
            UPSTREAM[
                UPSTREAM.index("# Where") : UPSTREAM.index('@ops.export("Ci')
            ],
            "# Our reason.\n@functools.cache\ndef area(width):\n"
            '    """Ours."""\n    return width\n\n\n',
        ),
    )


def test_function_args_are_merged_in_the_order_of_the_signature():
    check(
        '''
        def area(width, scale, height=1.0):
            """Args:
                height: Changed, on
                    two lines.
                scale: Added.
            """
            return width * height * scale
        ''',
        (
            "def area(width, height=1.0):",
            "def area(width, scale, height=1.0):",
        ),
        (
            "        height: Its height.\n",
            "        scale: Added.\n"
            "        height: Changed, on\n            two lines.\n",
        ),
        (
            "return width * height\n",
            "return width * height * scale\n",
        ),
    )


def test_function_with_only_a_docstring_keeps_its_body():
    graft = '''
        def area(width, height=3.0):
            """Args:
                width: Changed.
            """
        '''
    check(
        graft,
        ("height=1.0", "height=3.0"),
        ("width: Its width.", "width: Changed."),
    )
    # Upstream may change the body, so only the signature is fingerprinted.
    other = merged(graft, UPSTREAM.replace("width * height\n", "0\n"))
    assert other.hooks == merged(graft).hooks
    other = merged(graft, UPSTREAM.replace("(width, h", "(w, h"))
    assert other.hooks != merged(graft).hooks


def test_docstring_with_more_than_args():
    refused(
        '''
        def area(width):
            """Args:
                width: Changed.

            Returns:
                More.
            """
        ''',
        "keras/src/shapes.py:1: `area`: a docstring that starts with `Args:`",
    )


def test_class_is_merged_by_method():
    check(
        '''
        class Circle:
            """Args:
                layout: Where it lies.
            """

            unit = "km"

            def __init__(self, layout, radius):
                super().__init__(layout)

            def area(self):
                return 3 * self.radius**2

            def diameter(self):
                return 2 * self.radius
        ''',
        (
            "        radius: Its radius.\n",
            "        layout: Where it lies.\n        radius: Its radius.\n",
        ),
        ('unit = "m"', 'unit = "km"'),
        ("def __init__(self, radius):", "def __init__(self, layout, radius):"),
        ("self.radius = radius", "super().__init__(layout)"),
        (
            "        # Euclid, book XII.\n        return math.pi * ",
            "        return 3 * ",
        ),
        (
            "self.radius**2\n",
            "self.radius**2\n\n    def diameter(self):\n"
            "        return 2 * self.radius\n",
        ),
    )


def test_class_with_own_docstring_decorators_and_comments():
    text = merged(
        '''
        pass


        # Ours.
        @final
        class Circle(Shape):
            """A ring."""
        '''
    ).text
    assert (
        '\n\n\n# Ours.\n@final\nclass Circle(Shape):\n    """A ring."""\n\n'
        '    unit = "m"\n'
    ) in text
    assert "A circle." not in text


def test_class_keeps_its_bases():
    refused(
        "class Circle(Shape, Round):\n    pass\n",
        "`Circle`: the bases of a class stay upstream's, (Shape). "
        "Received: (Shape, Round)",
    )
    refused(
        "class Circle(metaclass=abc.ABCMeta):\n    pass\n",
        "stay upstream's, (Shape). Received: (metaclass=abc.ABCMeta)",
    )
    check("class Circle(Shape):\n    pass\n")


def test_class_with_nothing_but_pass():
    check(
        "class Empty:\n    x = 1\n",
        ("    pass\n", "    x = 1\n"),
        upstream="class Empty:\n    pass\n",
    )
    check(
        "class Empty:\n    x = 1\n",
        (": pass\n", ":\n    x = 1\n"),
        upstream="class Empty: pass\n",
    )


def test_accessors_of_a_property():
    check(
        """
        class Circle:
            def label(self):
                return "getter"

            @label.setter
            def label(self, value):
                print("setter")
        """,
        ("return self._label\n", 'return "getter"\n'),
        ("self._label = value\n", 'print("setter")\n'),
    )
    assert hooks("class Circle:\n    del label\n") == {
        "Circle": "extends",
        "Circle.label": "removes",
        "Circle.label.setter": "removes",
    }


def test_each_of_several_removals_is_hooked():
    upstream = "import math\nimport os\nfrom re import escape, split, sub\n"
    graft = "del math\ndel os\ndel escape\ndel sub\n"
    all_of_them = merge(upstream, graft, "a.py")
    assert all_of_them.text == "from re import split\n"
    assert set(all_of_them.hooks) == {"math", "os", "escape", "sub"}
    # What upstream says, not what the removals before left of it.
    assert all_of_them.hooks["escape"] == all_of_them.hooks["sub"]
    one = merge(upstream, "del os\n", "a.py")
    assert one.hooks["os"] == all_of_them.hooks["os"]


def test_new_code_follows_the_previous_match():
    check(
        """
        FIRST = SIDES

        def area(width):
            return width

        # About the helper.
        def helper():
            pass
        X = 1
        """,
        ("    pass\n", "    pass\n\n\nFIRST = SIDES\n"),
        ("def area(width, height=1.0)", "def area(width)"),
        (
            "    return width * height\n",
            "    return width\n\n\n# About the helper.\ndef helper():\n"
            "    pass\n\n\nX = 1\n",
        ),
        upstream=UPSTREAM.replace("def last():\n    pass", "last = {'pass': 1}")
        + "\n\ndef final():\n    pass\n",
    )


def test_a_statement_that_is_there_marks_the_place():
    check(
        "register( 'a' )\nregister('c')\n",
        ('("a")\n', "(\"a\")\nregister('c')\n"),
        upstream='register("a")\nregister("b")\n',
    )


def test_merging_again_changes_nothing():
    graft = """
        import abc

        SIDES = 3

        def area(width):
            return width

        area = watched(area)

        class Circle:
            area = watched(area)
        """
    once = merged(graft).text
    assert merged(graft, once).text == once


def test_comments_of_the_graft_file():
    text = merged(
        "# The file.\n\n# The helper.\ndef helper():\n    pass\n"
    ).text
    assert text.endswith("\n\n\n# The helper.\ndef helper():\n    pass\n")
    assert "The file" not in text


def test_syntax_error():
    error = refused(
        "def area(width):\n    return (width\n", "'(' was never closed"
    )
    assert (error.line, error.name) == (2, "area")


def test_fingerprints_are_of_the_code():
    def print_of(old, new):
        upstream = UPSTREAM.replace(old, new)
        assert upstream != UPSTREAM
        return merged("def area():\n    return 0\n", upstream).hooks

    same = merged("def area():\n    return 0\n").hooks
    assert print_of("The area of", "The surface of") == same
    assert print_of("# Where the", "# Why the") == same
    assert (
        print_of("return width *", "# Product.\n\n    return width *") == same
    )
    assert print_of("width * height\n", "height * width\n") != same
    assert print_of('("area")', '("size")') != same


def test_a_wrap_depends_on_the_body_whatever_came_before():
    def print_of(graft, name, upstream=UPSTREAM):
        return merged(graft, upstream).hooks[name]

    changed = UPSTREAM.replace("width * height", "height * width")
    changed = changed.replace("self.radius**2", "self.radius * 2")
    for graft, name in (
        ('def area(width, height=1.0):\n    "Ours."\n', "area"),
        ("class Circle:\n    x = 1\n", "Circle"),
    ):
        opening = print_of(graft, name)
        assert opening[0] in ("extends", "redeclares")
        assert print_of(graft, name, changed) == opening
        wrapped = f"{graft}{name} = watched({name})\n"
        assert print_of(wrapped, name)[0] == "wraps"
        assert print_of(wrapped, name, changed) != print_of(wrapped, name)


def test_upstream_text_that_is_not_mentioned_stays():
    upstream = (
        "def a():\n  return  1 ;\n\n\n@d\n\nclass B :\n  x=1\n  # end\n"
        "# tail\n\n\ndef c(): pass\n"
    )
    check("y = 1\n", ("pass\n", "pass\n\n\ny = 1\n"), upstream=upstream)
