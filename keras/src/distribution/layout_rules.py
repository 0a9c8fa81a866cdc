"""What is wrong with a rule of a `LayoutMap`."""

import functools
import re


def checked(setitem):
    """Decorates `__setitem__` of `LayoutMap`, so that errors name the rule.

    Args:
        setitem: A method `__setitem__(self, key, layout)`.

    Returns:
        A method of the same arguments. It raises a `ValueError` for a key that
        is no regular expression, instead of a later error for some variable.
    """

    @functools.wraps(setitem)
    def __setitem__(self, key, layout):
        try:
            re.compile(key)
            setitem(self, key, layout)
        except re.error as error:
            raise ValueError(
                "A key of a `LayoutMap` must be a regular expression for the "
                f"path of a variable. Received: key={key!r}: {error}"
            ) from error
        except ValueError as error:
            problem = str(error).rstrip(".")
            raise ValueError(
                f"{problem}. Received: key={key!r}, layout={layout}"
            ) from error

    return __setitem__
