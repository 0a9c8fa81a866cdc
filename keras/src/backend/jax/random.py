"""Grafts: the draws of one number an element go through `draws`."""

from keras.src.backend.jax import draws


def normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None, layout=None):
    return draws.draw(draws.normal, shape, dtype, seed, (mean, stddev), layout)


def uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None, layout=None):
    return draws.draw(
        draws.uniform, shape, dtype, seed, (minval, maxval), layout
    )


def randint(shape, minval, maxval, dtype="int32", seed=None, layout=None):
    return draws.draw(
        draws.randint, shape, dtype, seed, (minval, maxval), layout
    )


def truncated_normal(
    shape, mean=0.0, stddev=1.0, dtype=None, seed=None, layout=None
):
    return draws.draw(
        draws.truncated_normal, shape, dtype, seed, (mean, stddev), layout
    )
