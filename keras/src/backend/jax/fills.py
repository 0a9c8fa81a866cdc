"""Constant and regular arrays that are born in their layout."""

import jax.numpy as jnp
import numpy as np

from keras.src.backend.jax import layouts
from keras.src.backend.jax import placement
from keras.src.backend.jax import programs
from keras.src.backend.jax.initialization import is_small
from keras.src.backend.jax.initialization import variable_being_born


def full(shape, fill_value, dtype, layout=None):
    """Makes an array of one value, in a layout if there is one.

    Args:
        shape: The shape of the result, a tuple of integers.
        fill_value: A number, or an array that broadcasts to `shape`.
        dtype: The dtype of the result, a string.
        layout: Anything that `layouts.to_sharding` accepts, or `None`.

    Returns:
        A `jax.Array`.
    """
    sharding = layouts.to_sharding(layout, shape)
    birth = variable_being_born()
    if birth and is_small(shape) and not programs.is_tracing(fill_value):
        # No program at all, and there are many shapes of biases.
        value = np.full(shape, fill_value, dtype)
        return placement.place(value, sharding)
    if sharding is None:
        return jnp.full(shape, fill_value, dtype)
    return programs.run(
        _full, (tuple(shape), np.dtype(dtype)), (fill_value,), sharding
    )


def _full(shape, dtype, fill_value):
    return jnp.full(shape, fill_value, dtype)
