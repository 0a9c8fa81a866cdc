"""Files of NumPy's npz format that can be read without unpickling.

One pickled dictionary for the variables of a layer, as in files of older
releases, is refused when it is read, since a pickle can run anything. Here each
variable is an array of its own.
"""

import functools

import ml_dtypes
import numpy as np

from keras.src.saving.gathering import to_host

_ROOT = "__root__"

# NumPy's format does not know this dtype, so a name tells it.
_BFLOAT16 = ":bfloat16"


def writing_arrays(close):
    """Decorates `NpzIOStore.close` to write an array for each variable.

    Args:
        close: The method.

    Returns:
        A method of the same arguments.
    """

    @functools.wraps(close)
    def wrapper(self):
        if self.mode == "w":
            self.contents = {
                f"{path}/{key}" + _BFLOAT16 * _is_bfloat16(value): _Lazy(value)
                for path, variables in self.contents.items()
                for key, value in variables.items()
            }
        close(self)

    return wrapper


class _Lazy:
    """A value that becomes an array when NumPy writes it."""

    def __init__(self, value):
        self._value = value

    def __array__(self, dtype=None, copy=None):
        return np.asarray(to_host(self._value), dtype)


def reading_arrays(get):
    """Decorates `NpzIOStore.get` to read what `writing_arrays` wrote.

    Args:
        get: The method.

    Returns:
        A method of the same arguments.
    """

    @functools.wraps(get)
    def wrapper(self, path):
        variables = {}
        for name in _names_below(self, path or _ROOT):
            self._reject_npz_bomb(name)
            key = name.rpartition("/")[2]
            value = self.contents[name]
            if key.endswith(_BFLOAT16):
                key = key.removesuffix(_BFLOAT16)
                value = value.view(ml_dtypes.bfloat16)
            variables[key] = value
        return variables or get(self, path)

    return wrapper


def finding_arrays(has_path):
    """Decorates `NpzIOStore.has_path` to know what `writing_arrays` wrote.

    Args:
        has_path: The method.

    Returns:
        A method of the same arguments.
    """

    @functools.wraps(has_path)
    def wrapper(self, path):
        prefix = f"{path}/"
        return has_path(self, path) or any(
            name.startswith(prefix) for name in self.contents
        )

    return wrapper


def _names_below(store, path):
    return [name for name in store.contents if name.rpartition("/")[0] == path]


def _is_bfloat16(value):
    return str(getattr(value, "dtype", "")) == "bfloat16"
