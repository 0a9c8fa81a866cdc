"""Data on the host that is no array yet."""

import functools

import numpy as np


def as_arrays(set_weights):
    """Decorates `set_weights` of layers.

    Args:
        set_weights: A method `set_weights(self, weights)` of arrays.

    Returns:
        A method of the same arguments, which takes lists and scalars too.
    """

    @functools.wraps(set_weights)
    def wrapper(self, weights):
        arrays = [w if hasattr(w, "shape") else np.asarray(w) for w in weights]
        return set_weights(self, arrays)

    return wrapper
