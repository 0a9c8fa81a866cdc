"""An upstream module to merge grafts into, and what tests say of the result."""

import textwrap
import unittest

from graft.errors import GraftError
from graft.merge import merge

CASE = unittest.TestCase()
CASE.maxDiff = None

UPSTREAM = '''\
"""A module about shapes."""

import math

from keras.src import ops

SIDES = 4


# Where the area comes from.
@ops.export("area")
def area(width, height=1.0):
    """The area of a rectangle.

    Args:
        width: Its width.
        height: Its height.

    Returns:
        The area.
    """
    return width * height


@ops.export("Circle")
class Circle(Shape):
    """A circle.

    Args:
        radius: Its radius.
    """

    unit = "m"

    def __init__(self, radius):
        self.radius = radius

    @property
    def label(self):
        return self._label

    @label.setter
    def label(self, value):
        self._label = value

    def area(self):
        # Euclid, book XII.
        return math.pi * self.radius**2


if ops.backend() == "numpy":
    CIRCLES = []

    def draw(shape):
        return shape
elif ops.backend() == "jax":
    CIRCLES = ()
else:
    CIRCLES = None


def last():
    pass
'''


def dedent(text):
    return textwrap.dedent(text).lstrip("\n")


def merged(graft, upstream=UPSTREAM):
    return merge(dedent(upstream), dedent(graft), "keras/src/shapes.py")


def check(graft, *changes, upstream=UPSTREAM):
    """Checks that merging changes upstream's text in these places alone."""
    expected = dedent(upstream)
    for old, new in changes:
        CASE.assertEqual(expected.count(old), 1, old)
        expected = expected.replace(old, new)
    CASE.assertMultiLineEqual(merged(graft, upstream).text, expected)


def refused(graft, *told, upstream=UPSTREAM):
    """Checks that merging raises an error that tells these; returns it."""
    with CASE.assertRaises(GraftError) as caught:
        merged(graft, upstream)
    for each in ("keras/src/shapes.py:", *told):
        CASE.assertIn(each, str(caught.exception))
    return caught.exception


def hooks(graft, upstream=UPSTREAM):
    """How each definition of upstream's that a graft hooks is hooked."""
    found = merged(graft, upstream).hooks
    return {name: how for name, (how, _) in found.items()}


def fill(folder, files):
    """Writes files, text or bytes, by their path below a folder."""
    for path, content in files.items():
        if isinstance(content, str):
            content = content.encode()
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
