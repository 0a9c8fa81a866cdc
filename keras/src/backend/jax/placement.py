"""Puts host data on devices, to each one only its own part."""

import jax
import jax.numpy as jnp
import numpy as np


def place(value, sharding):
    """Makes a JAX array of host data, laid out by `sharding`.

    Each device of this process is sent its own part and no other, and nothing
    is exchanged with other processes, which have to hold the same data.

    Args:
        value: An array-like in host memory.
        sharding: A `jax.sharding.Sharding` on concrete devices, or `None` for
            JAX's default device.

    Returns:
        A `jax.Array` of the shape and dtype of `value`.
    """
    value = np.asarray(value)
    if sharding is None:
        # A copy, since JAX may go on using the memory of what it is given.
        return jnp.array(value)
    return jax.make_array_from_callback(
        value.shape, sharding, lambda index: value[index]
    )
