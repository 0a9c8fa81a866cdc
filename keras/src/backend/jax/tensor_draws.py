"""Random ops that take a tensor, with a result that is born in a layout."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from keras.src.backend.jax import distribution_lib
from keras.src.backend.jax import draws
from keras.src.backend.jax import layouts
from keras.src.backend.jax import programs
from keras.src.backend.jax import rounding


def dropout(inputs, rate, noise_shape, seed, layout=None):
    """Sets elements to zero at random and scales up the others.

    Args:
        inputs: An array.
        rate: Float, the part of the elements to drop.
        noise_shape: The shape of the draw, a tuple of integers that
            broadcasts to that of `inputs`.
        seed: As for `draws.draw`.
        layout: Anything that `layouts.to_sharding` accepts, or `None`.

    Returns:
        A `jax.Array` of the shape and dtype of `inputs`.
    """
    if rate == 0.0 or rate == 1.0:
        outputs = jnp.zeros_like(inputs) if rate else inputs
        if layout is None:
            return outputs
        return distribution_lib.distribute_tensor(outputs, layout)
    keep = 1.0 - rate
    is_scaled = isinstance(inputs, np.ndarray)
    if is_scaled:  # NumPy rounds the division otherwise than XLA does.
        inputs = inputs / keep
    statics = (keep, is_scaled, tuple(noise_shape))
    return _run(_dropout, statics, inputs, inputs.shape, seed, layout)


def categorical(logits, num_samples, dtype, seed, layout=None):
    """Draws classes by their logarithmic probabilities.

    Args:
        logits: An array of shape `(batch, classes, ...)`.
        num_samples: Integer, the number of draws for each row.
        dtype: The dtype of the result, a string.
        seed: As for `draws.draw`.
        layout: Anything that `layouts.to_sharding` accepts, or `None`.

    Returns:
        A `jax.Array` of shape `(batch, num_samples, ...)`.
    """
    shape = (logits.shape[0], num_samples, *logits.shape[2:])
    return _run(_categorical, (shape, dtype), logits, shape, seed, layout)


def shuffle(x, axis, seed, layout=None):
    """Shuffles each vector along an axis by itself.

    Args:
        x: An array.
        axis: Integer. Where the layout shards this axis, the devices have to
            exchange what they hold.
        seed: As for `draws.draw`.
        layout: Anything that `layouts.to_sharding` accepts, or `None`.

    Returns:
        A `jax.Array` of the shape and dtype of `x`.
    """
    return _run(_shuffle, (axis,), x, jnp.shape(x), seed, layout)


def _dropout(keep, is_scaled, noise_shape, sharding, inputs, key):
    mask = draws.draw(
        draws.bernoulli,
        noise_shape,
        "bool",
        key,
        (keep,),
        _for_noise(sharding, noise_shape, inputs.shape),
    )
    mask = jnp.broadcast_to(mask, inputs.shape)
    scaled = inputs if is_scaled else inputs / keep
    return jax.lax.select(mask, scaled, jnp.zeros_like(inputs))


def _categorical(shape, dtype, sharding, logits, key):
    samples = jax.random.categorical(
        key, logits[..., None], shape=shape, axis=1
    )
    return samples.astype(dtype)


def _shuffle(axis, sharding, x, key):
    return jax.random.permutation(key, x, axis, independent=True)


def _run(op, statics, tensor, shape, seed, layout):
    """Calls `op(*statics, sharding, tensor, key)`, laid out by `layout`."""
    sharding = layouts.to_sharding(layout, shape)
    key = draws.draw_key(seed)
    if sharding is None:
        return op(*statics, None, tensor, key)
    if tuple(shape) == tuple(jnp.shape(tensor)):
        tensor = distribution_lib.distribute_tensor(tensor, sharding)
    statics = (op, statics, tuple(shape), sharding)
    return programs.run(_stepwise, statics, (tensor, key), sharding)


def _stepwise(op, statics, shape, sharding, tensor, key):
    def call(tensor, key):
        return op(*statics, sharding, tensor, key)

    fn = rounding.stepwise(call)
    return programs.partitioned(fn, (tensor, key), shape, sharding)


def _for_noise(sharding, noise_shape, shape):
    """The sharding of a draw that is broadcast to what `sharding` is for."""
    if not isinstance(sharding, jax.sharding.NamedSharding):
        return None
    entries = itertools.zip_longest(noise_shape, shape, sharding.spec)
    spec = [axes if noise == size else None for noise, size, axes in entries]
    return jax.sharding.NamedSharding(
        sharding.mesh, jax.sharding.PartitionSpec(*spec)
    )
