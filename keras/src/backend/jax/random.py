"""Grafts: all draws go through `draws` or `tensor_draws`."""

from keras.src.backend.jax import draws
from keras.src.backend.jax import tensor_draws


def normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None, layout=None):
    return draws.draw(draws.normal, shape, dtype, seed, (mean, stddev), layout)


def uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None, layout=None):
    return draws.draw(
        draws.uniform, shape, dtype, seed, (minval, maxval), layout
    )


def categorical(logits, num_samples, dtype="int32", seed=None, layout=None):
    return tensor_draws.categorical(logits, num_samples, dtype, seed, layout)


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


def dropout(inputs, rate, noise_shape=None, seed=None, layout=None):
    noise_shape = _get_concrete_noise_shape(inputs, noise_shape)
    return tensor_draws.dropout(inputs, rate, noise_shape, seed, layout)


def shuffle(x, axis=0, seed=None, layout=None):
    return tensor_draws.shuffle(x, axis, seed, layout)


def gamma(shape, alpha, dtype=None, seed=None, layout=None):
    return draws.draw(draws.gamma, shape, dtype, seed, (alpha,), layout)


def binomial(shape, counts, probabilities, dtype=None, seed=None, layout=None):
    # JAX takes no lists.
    params = (jax.numpy.array(counts), jax.numpy.array(probabilities))
    return draws.draw(draws.binomial, shape, dtype, seed, params, layout)


def beta(shape, alpha, beta, dtype=None, seed=None, layout=None):
    params = (jax.numpy.array(alpha), jax.numpy.array(beta))
    return draws.draw(draws.beta, shape, dtype, seed, params, layout)


del jax_draw_seed
