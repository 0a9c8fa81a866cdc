"""What stands for a NumPy array whose values are still in a file."""

import math
import operator

import numpy as np

_BINARY = (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
).split()
_OTHER = (
    "lt le eq ne gt ge neg pos abs invert index getitem setitem contains"
).split()
_BUILT_IN = (iter, repr, str, format, bool, int, float, complex, divmod)


class StoredArray:
    """Stands for the NumPy array that has the values of an `H5Array`.

    It can be used like that array, though it is no `np.ndarray`. Its values
    are read when they are needed first. A variable that is assigned all of it
    reads no more than the parts that this process has on its devices.

    Args:
        stored: The `H5Array`.
    """

    __hash__ = None  # As arrays have none.

    shape = property(lambda self: self._stored.shape)
    dtype = property(lambda self: self._stored.dtype)
    ndim = property(lambda self: self._stored.ndim)
    size = property(lambda self: math.prod(self.shape))

    def __init__(self, stored):
        self._stored = stored
        self._whole = None

    def whole(self):
        """Returns the NumPy array, the same one each time."""
        if self._whole is None:
            self._whole = np.asarray(self._stored)
        return self._whole

    def host_data(self):
        """Returns the `H5Array`, if nobody can have changed the values."""
        return self._stored if self._whole is None else self._whole

    def __array__(self, dtype=None, copy=None):
        return self.whole().astype(dtype or self.dtype, copy=bool(copy))

    def __getattr__(self, name):
        return getattr(self.whole(), name)

    def __len__(self):
        return self.shape[0] if self.shape else len(self.whole())

    def __reduce__(self):
        return self.whole().__reduce__()


def _of_whole(function):
    return lambda self, *args: function(self.whole(), *args)


def _reflected(function):
    return lambda self, other: function(other, self.whole())


# Python looks these up in the class, where `__getattr__` does not count.
for _name in _BINARY:
    _function = getattr(operator, f"__{_name}__")
    setattr(StoredArray, f"__{_name}__", _of_whole(_function))
    setattr(StoredArray, f"__r{_name}__", _reflected(_function))
for _name in _OTHER:
    _function = getattr(operator, f"__{_name}__")
    setattr(StoredArray, f"__{_name}__", _of_whole(_function))
for _function in _BUILT_IN:
    setattr(StoredArray, f"__{_function.__name__}__", _of_whole(_function))
StoredArray.__rdivmod__ = _reflected(divmod)
