"""Imports that a graft adds."""

import pytest

from graft.testing import check
from graft.testing import hooks
from graft.testing import merged
from graft.testing import refused

UPSTREAM = """
    import math
    from os import path

    import jax.numpy as jnp
    import numpy as np
    from absl import logging

    from keras.src import ops
    from keras.src.backend import MAX_RANK
    from keras.src.backend import KerasTensor
    from keras.src.backend import floatx

    X = 1
    """


@pytest.mark.parametrize(
    "graft, above, below",
    [
        ("import abc", "", "import math"),
        ("import zlib", "import math\n", "from os"),
        ("from os import abc", "import math\n", "from os"),
        ("import ml_dtypes", "jnp\n", "import numpy"),
        ("import jax", "path\n\n", "import jax.numpy"),
        ("from zlib_ng import a", "logging\n", "\nfrom keras"),
        ("from keras import a", "logging\n\n", "from keras.src"),
        ("from keras.src import tree", "ops\n", "from keras.src.b"),
        ("from keras.src.backend import MAX_SIZE", "RANK\n", "from keras"),
        ("from keras.src.backend import Zebra", "Tensor\n", "from keras"),
        ("from keras.src.backend import a", "Tensor\n", "from keras"),
        ("from keras.src.backend import z", "floatx\n", "\nX = 1"),
        ("from keras.src.backend import *", "ops\n", "from keras.src.backend"),
        ("from keras.src.tree10 import a", "floatx\n", "\nX = 1"),
    ],
)
def test_an_import_is_sorted_in(graft, above, below):
    text = merged(graft, UPSTREAM).text
    assert f"{above}{graft}\n{below}" in text
    assert text.replace(f"{graft}\n", "") == merged("", UPSTREAM).text


@pytest.mark.parametrize(
    "graft, above, below",
    [
        ("from __future__ import a", "", "import math"),
        ("from . import a", "floatx\n", "X = 1"),
    ],
)
def test_a_new_section(graft, above, below):
    text = merged(graft, UPSTREAM).text
    assert f"{above}\n{graft}\n\n{below}" in f"\n{text}"


def test_numbers_sort_by_value():
    check(
        "from a import x9\n",
        ("x2\n", "x2\nfrom a import x9\n"),
        upstream="from a import x2\nfrom a import x10\n",
    )


def test_relative_imports_start_from_the_furthest():
    check(
        "from .. import a\n",
        ("from . import b", "from .. import a\nfrom . import b"),
        upstream="from . import b\nfrom .c import d\n",
    )


def test_each_name_stands_on_its_own_line():
    text = merged("from keras.src import a, ops, z as zed\n", UPSTREAM).text
    assert (
        "\nfrom keras.src import a\nfrom keras.src import ops\n"
        "from keras.src import z as zed\nfrom keras.src.backend"
    ) in text


def test_comments_come_along():
    text = merged("from keras.src import a  # noqa: F401\n", UPSTREAM).text
    assert "\nfrom keras.src import a  # noqa: F401\n" in text


@pytest.mark.parametrize(
    "graft",
    [
        "import math",
        "from os import path",
        "import numpy as np",
        "from keras.src import ops\nfrom keras.src.backend import floatx",
    ],
)
def test_what_upstream_imports_is_not_added(graft):
    check(graft, upstream=UPSTREAM)
    assert hooks(graft, UPSTREAM) == {}


def test_what_upstream_imports_in_a_block_is_not_added():
    check(
        "import pandas\nfrom a import *\n",
        upstream="""
            from a import *

            try:
                import pandas
            except ImportError:
                pandas = None
            """,
    )


@pytest.mark.parametrize(
    "graft, name",
    [
        ("from other import path", "path"),
        ("import other as np", "np"),
        ("from other import X", "X"),
    ],
)
def test_another_thing_by_a_known_name(graft, name):
    error = refused(
        f"# Note.\n{graft}\n",
        "upstream means something else",
        upstream=UPSTREAM,
    )
    assert (error.line, error.name) == (2, name)


def test_replacing_an_import():
    check(
        "from other import path\n\ndel path\n",
        ("from os import path\n", ""),
        ("logging\n", "logging\nfrom other import path\n"),
        upstream=UPSTREAM,
    )


def test_removing_imports():
    text = merged("del jnp, np, logging\n", UPSTREAM).text
    assert "import path\n\nfrom keras.src import ops\n" in text
    text = merged("del math, path, jnp\n", UPSTREAM).text
    assert text.startswith("import numpy as np\n")
    check(
        "del b, c\n",
        ("a, b, c", "a"),
        upstream="from x import a, b, c\n",
    )


def test_a_module_without_imports():
    check(
        "import math\n",
        ('"""\n\n\n', '"""\n\nimport math\n\n\n'),
        upstream='"""Doc."""\n\n\ndef f():\n    pass\n',
    )
    check("import math\n", ("X", "import math\n\nX"), upstream="X = 1\n")
    check(
        "import math\n",
        ("def", "import math\n\n\ndef"),
        upstream="# Licence.\ndef f():\n    pass\n",
    )
    assert merged("import math\n", "").text == "import math\n"


def test_imports_of_a_block():
    check(
        "if torch():\n    from a import f\n    from a import b\n",
        ("    from a import c\n", "    from a import b\n    from a import c\n"),
        ("import d\n", "import d\n    from a import f\n"),
        upstream="if torch():\n    from a import c\n    from a import d\n",
    )


def test_what_a_module_imports_first_is_its_first_run():
    check(
        "import os\n",
        ("import abc\n", "import abc\nimport os\n"),
        upstream="import abc\n\nX = 1\n\nimport zlib\n",
    )


def test_what_upstream_imports_in_two_ways():
    upstream = "if a:\n    from x import f\nelse:\n    from y import f\n"
    check("from x import f\n", upstream=upstream)
    check("from y import f\n", upstream=upstream)
    refused("from z import f\n", "`f`: upstream means", upstream=upstream)
