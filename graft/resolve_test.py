"""Imports that lead nowhere."""

import pytest

from graft.resolve import unresolved

TREE = {
    "keras/src/__init__.py": b"from keras.src.shapes import area as surface\n",
    "keras/src/shapes.py": (
        b"import os.path\n"
        b"try:\n    import jax\nexcept ImportError:\n    jax = None\n"
        b"def area():\n    inner = 1\n"
        b"A, (B, *C) = 1, (2, 3)\n"
        b"for D in ():\n    pass\n"
    ),
    "keras/src/ops/__init__.py": b"from keras.src.ops.fills import *\n",
    "keras/src/ops/fills.py": b"",
    "keras/src/newer.py": b"def (\n",
}


@pytest.mark.parametrize(
    "text",
    [
        "from keras.src import shapes",
        "from keras.src import ops as o, surface",
        "from keras.src.ops import fills",
        "from keras.src.ops import whatever",
        "from keras.src.shapes import *",
        "from keras.src.newer import whatever",
        *(
            f"from keras.src.shapes import {name}"
            for name in ("os", "jax", "area", "A", "B", "C", "D")
        ),
        "import keras.src.nothing",
        "from keras import nothing",
        "from keras.srcs import nothing",
        "from . import nothing",
    ],
)
def test_what_leads_somewhere(text):
    assert unresolved(text, TREE) == []


@pytest.mark.parametrize(
    "text",
    [
        "from keras.src import area",
        "from keras.src.nothing import area",
        "from keras.src.shapes import inner",
        "from keras.src.ops.fills import whatever",
    ],
)
def test_what_leads_nowhere(text):
    assert unresolved(f"def f():\n    {text}\n", TREE) == [text]
