"""Grafts of `if` blocks."""

from graft.testing import UPSTREAM
from graft.testing import check
from graft.testing import hooks
from graft.testing import merged
from graft.testing import refused


def test_if_merges_into_the_same_condition():
    check(
        """
        if (ops.backend()=='numpy'):
            def draw(shape, layout=None):
                return layout
        else:
            CIRCLES = "none"
        """,
        (
            "    def draw(shape):\n        return shape\n",
            "    def draw(shape, layout=None):\n        return layout\n",
        ),
        ("CIRCLES = None", 'CIRCLES = "none"'),
    )
    assert hooks("if ops.backend() == 'numpy':\n    del draw\n") == {
        'if ops.backend() == "numpy"': "extends",
        'if ops.backend() == "numpy": draw': "removes",
    }


def test_if_merges_into_an_elif():
    check(
        """
        if ops.backend() == "jax":
            CIRCLES = jnp.zeros(1)
        """,
        ("CIRCLES = ()", "CIRCLES = jnp.zeros(1)"),
    )


def test_if_without_its_else():
    check(
        "if a:\n    pass\nelse:\n    y = 2\n",
        ("x = 1\n", "x = 1\nelse:\n    y = 2\n"),
        upstream="if a:\n    x = 1\n",
    )


def test_if_with_another_elif():
    error = refused(
        """
        if ops.backend() == "numpy":
            pass
        elif ops.backend() == "torch":
            pass
        """,
        'no branch for the condition `ops.backend() == "torch"`',
    )
    assert error.line == 1


def test_if_with_several_candidates():
    upstream = "if a:\n    x = 1\nif a:\n    y = 2\n"
    check("if a:\n    y = 3\n", ("y = 2", "y = 3"), upstream=upstream)
    refused("if a:\n    z = 3\n", "several blocks", upstream=upstream)


def test_if_with_a_new_condition():
    text = merged("if new():\n    x = 1\n").text
    assert text == UPSTREAM + "\n\nif new():\n    x = 1\n"


def test_definitions_inside_a_block():
    error = refused(
        "def draw(shape):\n    pass\n",
        '`draw`: upstream defines this inside `if ops.backend() == "numpy":`',
    )
    assert error.line == 1


def test_a_new_block_that_changes_a_definition_hooks_it():
    graft = "if new():\n    last = watched(last)\n    x = 1\n    del area\n"
    assert merged(graft).text == f"{UPSTREAM}\n\n{graft}"
    assert hooks(graft) == {"area": "wraps", "last": "wraps"}


def test_ambiguous_else():
    error = refused(
        "if a:\n    x = 2\nelse:\n    y = 2\n",
        "several blocks",
        upstream="if a:\n    x = 1\nif a:\n    y = 1\n",
    )
    assert error.line == 1
