"""Docstrings whose `Args:` a graft adds to."""

import textwrap

import pytest

from graft import docstrings
from graft.errors import GraftError
from graft.testing import check


def merged(upstream, entries, order=("x", "y", "z")):
    graft = "Args:\n" + textwrap.indent(textwrap.dedent(entries), "        ")
    return docstrings.merge(upstream, graft + "    ", list(order))


def test_a_new_section_stands_before_what_keras_has_after_it():
    upstream = "Adds.\n\n    Returns:\n        The sum.\n    "
    assert merged(upstream, "x: A number.\n") == (
        "Adds.\n\n    Args:\n        x: A number.\n\n"
        "    Returns:\n        The sum.\n    "
    )


@pytest.mark.parametrize("heading", ["Example:", "Raises:", "Output shape:"])
def test_headings_that_a_new_section_precedes(heading):
    text = merged(f"Adds.\n\n    {heading}\n        This.\n    ", "x: A.\n")
    assert text.index("Args:") < text.index(heading)


def test_a_new_section_at_the_end():
    added = "\n\n    Args:\n        x: A number.\n    "
    assert merged("Adds.", "x: A number.\n") == "Adds." + added
    assert merged("Adds.\n\n    Well.\n    ", "x: A number.\n") == (
        "Adds.\n\n    Well." + added
    )
    # The closing quotes may stand behind the last line.
    assert merged("Adds.\n\n    Well.", "x: A number.\n") == (
        "Adds.\n\n    Well." + added
    )


def test_one_line_docstring_in_single_quotes():
    check(
        'def f(x):\n    """Args:\n        x: A number.\n    """\n',
        ("'Adds.'", "'''Adds.\n\n    Args:\n        x: A number.\n    '''"),
        upstream="def f(x):\n    'Adds.'\n    return 1\n",
    )


def test_raw_docstring():
    check(
        'def f(x):\n    """Args:\n        x: A number.\n    """\n',
        ("\\s.", "\\s.\n\n    Args:\n        x: A number."),
        upstream='def f(x):\n    r"""Adds \\s.\n    """\n    return 1\n',
    )


def test_docstring_where_upstream_has_none():
    check(
        'def f(x):\n    """Args:\n        x: A number.\n    """\n',
        (
            "    return",
            '    """Args:\n        x: A number.\n    """\n    return',
        ),
        upstream="def f(x):\n    return 1\n",
    )


ENTRIES = """Adds.

    Args:
        x: A number, e.g.:
            this one.

            ```
            x: 1
            ```
       badly indented.
        *args (int, optional): More.
        y, z: Two.

    Example:

    x: no entry
    """


@pytest.mark.parametrize(
    "order, before",
    [
        ("x v args y z", "        *args"),
        ("x args v y z", "        y, z: Two."),
        ("x args y z v", "\n    Example:"),
        ("v x args y z", "        x: A number"),
        ("x args y z", "\n    Example:"),
    ],
)
def test_an_entry_goes_where_the_signature_has_it(order, before):
    expected = ENTRIES.replace(before, f"        v: New.\n{before}")
    assert merged(ENTRIES, "v: New.\n", order.split()) == expected


def test_entries_are_replaced_whole():
    text = merged(
        ENTRIES, "x: New.\n\n    Paragraph.\n*args: Some.\ny, z: Both.\n"
    )
    assert text == (
        "Adds.\n\n    Args:\n        x: New.\n\n            Paragraph.\n"
        "        *args: Some.\n        y, z: Both.\n\n"
        "    Example:\n\n    x: no entry\n    "
    )
    assert merged(text, "x: New.\n\n    Paragraph.\n") == text


@pytest.mark.parametrize(
    "entries", ["", "no entry\n", "x: A number.\nand more\n"]
)
def test_what_is_no_entry(entries):
    with pytest.raises(GraftError, match="consists of its entries"):
        merged(ENTRIES, entries)


def test_text_is_taken_from_another_indentation():
    upstream = "Adds.\n\n        Args:\n            x: A.\n        "
    assert merged(upstream, "y: B,\n    more.\n") == (
        "Adds.\n\n        Args:\n            x: A.\n            y: B,\n"
        "                more.\n        "
    )
