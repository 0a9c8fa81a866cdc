"""The examples in the docstrings of all that takes a layout.

Those of what is new as a whole are in the tests beside it.
"""

import doctest
import inspect
import re

import pytest

import keras

pytestmark = [
    pytest.mark.multi_device,
    pytest.mark.skipif(keras.backend.backend() != "jax", reason="JAX only"),
]

# The entry of `Args:`, with its blank lines.
ENTRY = re.compile(r"^( *)layout: .*(\n\1 .*|\n(?=\n))*", re.M)


def taking_layouts(module):
    """The public functions of a module that have a parameter `layout`."""
    functions = inspect.getmembers(module, inspect.isfunction)
    return [
        function
        for _, function in functions
        if "layout" in inspect.signature(function).parameters
    ]


FUNCTIONS = taking_layouts(keras.random) + taking_layouts(keras.ops)
# All others inherit the docstring of the first.
INITIALIZERS = [
    getattr(keras.initializers, name).__call__
    for name in ("Initializer", "Zeros", "Ones")
]


def run(text, name):
    """Runs the examples in a text and returns how many there are."""
    names = {"keras": keras}
    test = doctest.DocTestParser().get_doctest(text, names, name, None, None)
    said = []
    failed, tried = doctest.DocTestRunner().run(test, out=said.append)
    assert failed == 0, "".join(said)
    return tried


@pytest.fixture
def eight_devices():
    devices = keras.distribution.list_devices()
    mesh = keras.distribution.DeviceMesh((8,), ("model",), devices)
    distribution = keras.distribution.ModelParallel(
        layout_map=keras.distribution.LayoutMap(mesh)
    )
    with distribution.scope():
        yield


def test_finds_the_functions():
    assert len(FUNCTIONS) == 17
    assert {keras.random.normal, keras.ops.zeros} < set(FUNCTIONS)


@pytest.mark.parametrize(
    "function", FUNCTIONS + INITIALIZERS, ids=lambda each: each.__qualname__
)
def test_layout(function, eight_devices):
    """The rest of these docstrings is upstream's, as are examples in it."""
    entry = ENTRY.search(inspect.getdoc(function))[0]
    assert run(entry, function.__qualname__) >= 2
