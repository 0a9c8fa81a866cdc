"""Random draws that are born in their layout.

There are four ways to draw, and `draw` alone chooses:

- in a layout, each device draws its own window, by one program for each
  (sampler, dtype, shape, sharding);
- a large draw without a layout is the window of its one device that has it all;
- a small value that a variable starts with is cut, on the host, from draws of
  a few fixed lengths, so that variables of all shapes share their programs;
- everything else goes to `jax.random` as it is.

All give the same bits, those of `jax.random` and the operations after it run
one by one.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from keras.src.backend.common import KerasVariable
from keras.src.backend.config import floatx
from keras.src.backend.jax import layouts
from keras.src.backend.jax import placement
from keras.src.backend.jax import programs
from keras.src.backend.jax import rounding
from keras.src.backend.jax import windows
from keras.src.backend.jax.initialization import is_small
from keras.src.backend.jax.initialization import variable_being_born
from keras.src.random.seed_generator import draw_seed


def normal(key, shape, dtype, mean, stddev, rounded=lambda x: x):
    sample = rounded(jax.random.normal(key, shape, dtype))
    return rounded(sample * stddev) + mean


def truncated_normal(key, shape, dtype, mean, stddev, rounded=lambda x: x):
    sample = rounded(jax.random.truncated_normal(key, -2.0, 2.0, shape, dtype))
    return rounded(sample * stddev) + mean


def uniform(key, shape, dtype, minval, maxval, rounded=lambda x: x):
    return jax.random.uniform(key, shape, dtype, minval, maxval)


def randint(key, shape, dtype, minval, maxval, rounded=lambda x: x):
    return jax.random.randint(key, shape, minval, maxval, dtype)


def bernoulli(key, shape, dtype, probability, rounded=lambda x: x):
    return jax.random.bernoulli(key, probability, shape)


def gamma(key, shape, dtype, alpha, rounded=lambda x: x):
    return jax.random.gamma(key, alpha, shape, dtype)


def beta(key, shape, dtype, alpha, beta, rounded=lambda x: x):
    return jax.random.beta(key, alpha, beta, shape, dtype)


def binomial(key, shape, dtype, counts, probabilities, rounded=lambda x: x):
    return jax.random.binomial(key, counts, probabilities, shape, dtype)


# The samplers whose values depend, for each element, on the key and on the
# element's flat index alone. (Those of `binomial` depend on how many rounds
# the array as a whole takes.)
_WITH_WINDOWS = (
    normal,
    truncated_normal,
    uniform,
    randint,
    bernoulli,
    gamma,
    beta,
)

# The samplers that split their key into one for each element, and how often
# they split it before that.
_SPLITS_FOR_ELEMENTS = {gamma: 0, beta: 1}

# Without a layout, draws from this many elements on go by windows. The same
# bits take less memory and time; below, there is nothing to gain.
LARGE = 2**14

# Fused with a reshape, the loop of a draw is over the dimensions of the array.
# Measured on two x86 cores, that is free from this length of the last one on,
# and up to seven times slower below. Kept apart, the draw of an initializer
# that goes on to compute with it needs a second buffer.
_SHORT_ROW = 32

# The lengths that a small value is drawn in. A draw of 2**19 elements takes a
# few milliseconds and a program some hundred to compile, so there are few.
_LENGTHS = (2**10, 2**13, 2**16, 2**19)


def draw(sampler, shape, dtype, seed, params, layout=None):
    """Draws a random tensor, in a layout if there is one.

    Args:
        sampler: One of the functions above.
        shape: The shape of the result, a sequence of integers or one integer.
        dtype: Its dtype, a string. `None` stands for `keras.config.floatx()`.
        seed: An integer, a `SeedGenerator`, `None` for the global one, or a
            JAX key.
        params: The sampler's parameters, Python numbers or arrays that
            broadcast to `shape`.
        layout: Anything that `layouts.to_sharding` accepts, or `None`.

    Returns:
        A `jax.Array`.

    Raises:
        ValueError: If the layout does not fit the shape.
    """
    dtype = dtype or floatx()
    shape = layouts.as_shape(shape)
    sharding = layouts.to_sharding(layout, shape)
    key = draw_key(seed)
    birth = variable_being_born()
    if birth and sharding is None and birth.shape == shape:
        sharding = birth.sharding
    if sharding is None and not birth and not _is_large(shape):
        return sampler(key, shape, dtype, *params)

    dtype = np.dtype(dtype)
    # JAX takes no variables as arguments of programs.
    params = [x.value if isinstance(x, KerasVariable) else x for x in params]
    key_data = _threefry_key_data(key)
    is_traced = programs.is_tracing(key, *params)
    # Whoever put the key on a device wants the values there.
    is_bound = sharding is None and not is_traced and _is_committed(key)
    if key_data is None or not _has_windows(
        sampler, shape, dtype, params, sharding
    ):
        if sharding is None:
            return sampler(key, shape, dtype, *params)
        way, key_data = _partitioned, key
    elif birth and not is_traced and is_small(shape) and not is_bound:
        value = _cut_on_host(sampler, shape, dtype, key_data, params)
        return placement.place(value, sharding)
    elif sharding is None and is_traced:
        # XLA's partitioner may yet find out a layout.
        return sampler(key, shape, dtype, *params)
    else:
        way = _windowed
    statics = (sampler, shape, dtype, sharding)
    return programs.run(way, statics, (key_data, *params), sharding)


def draw_key(seed):
    """Returns the key that a seed stands for, as `jax.random` takes it."""
    if isinstance(seed, jax.Array):
        return seed
    if isinstance(seed, int) and variable_being_born():
        # Most initializers have such a seed, and a key is soon made on the
        # host, where it costs more to send than the draw of a small value.
        return np.asarray((seed, 0), np.uint32)
    return draw_seed(seed)


def _windowed(sampler, shape, dtype, sharding, key_data, *params):
    """Draws on each device its own window; to be traced."""
    is_named = isinstance(sharding, jax.sharding.NamedSharding)
    shard_shape = sharding.shard_shape(shape) if is_named else shape
    window = windows.make_window(shape, shard_shape)

    def draw_shard(key_data, *params):
        indices = [0] * len(shape)
        for i, axes in enumerate(sharding.spec if is_named else ()):
            indices[i] = lax.axis_index(axes) if axes else 0
        start = windows.shard_start(window, indices)
        draw_run = functools.partial(
            _draw_run, sampler, dtype, window, start, key_data, params
        )
        if window.rows > 1:
            values = jax.vmap(draw_run)(np.arange(window.rows))
        else:
            values = draw_run(0)
        if len(shard_shape) > 1 and shard_shape[-1] < _SHORT_ROW:
            values = rounding.separate(values, rounding.unknown_zero())
        return values.reshape(shard_shape)

    if is_named:
        draw_shard = jax.shard_map(
            draw_shard,
            mesh=sharding.mesh,
            in_specs=jax.sharding.PartitionSpec(),
            out_specs=sharding.spec,
            check_vma=False,
        )
        return draw_shard(key_data, *params)
    return programs.constrain(draw_shard(key_data, *params), sharding)


def _draw_run(sampler, dtype, window, start, key_data, params, row):
    zero = rounding.unknown_zero()
    splits = _SPLITS_FOR_ELEMENTS.get(sampler)
    if splits is None:
        key = windows.window_key(key_data, window, start, row, 0)
    else:
        key = windows.element_keys(key_data, window, start, row, splits)
    return sampler(
        key,
        (window.columns,),
        dtype,
        *[_unknown(param, dtype, zero) for param in params],
        rounded=lambda x: rounding.fence(x, zero),
    )


def _unknown(param, dtype, zero):
    """A parameter that the compiler cannot fold, as in an eager operation."""
    param = jnp.asarray(param)
    if jnp.issubdtype(dtype, np.floating):
        param = param.astype(dtype)
    return rounding.fence(param, zero)


def _partitioned(sampler, shape, dtype, sharding, key, *params):
    """Draws whole and leaves it to XLA to partition that; to be traced."""

    def draw_whole(key, *params):
        return sampler(key, shape, dtype, *params)

    fn = rounding.stepwise(draw_whole)
    return programs.partitioned(fn, (key, *params), shape, sharding)


def _cut_on_host(sampler, shape, dtype, key_data, params):
    """Draws a small array as runs of a few lengths, joined on the host.

    What an element is depends on its flat index only, so a draw need not have
    the shape that it is for.
    """
    size = math.prod(shape)
    runs, start = [], 0
    while start < size:
        length = _run_length(size - start)
        statics = (sampler, dtype, length)
        arrays = (key_data, np.uint32(start), *params)
        runs.append(programs.run(_flat, statics, arrays))
        start += length
    runs = [np.asarray(run) for run in runs]
    flat = runs[0] if len(runs) == 1 else np.concatenate(runs)
    return flat[:size].reshape(shape)


def _run_length(rest):
    """The length of the next run, where `rest` elements are to be drawn."""
    enough = next((n for n in _LENGTHS if n >= rest), None)
    if enough and (enough < 2 * rest or enough == _LENGTHS[0]):
        return enough
    return max(n for n in _LENGTHS if n <= rest)


def _flat(sampler, dtype, length, key_data, start, *params):
    """Draws elements `start` to `start + length` of any array; traced."""
    window = windows.make_window((length,), (length,))
    words = (jnp.uint32(0), start)
    return _draw_run(sampler, dtype, window, words, key_data, params, 0)


def _threefry_key_data(key):
    """The two words of a key of partitionable threefry, else `None`."""
    threefry = "threefry2x32"
    if not jax.config.jax_threefry_partitionable:
        return None
    if jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key):
        if jax.random.key_impl(key) != threefry:
            return None
        key = jax.random.key_data(key)
    elif jax.config.jax_default_prng_impl != threefry:
        return None
    return key if key.shape == (2,) else None


def _is_committed(key):
    return isinstance(key, jax.Array) and key.committed


def _is_large(shape):
    known = all(isinstance(size, int) for size in shape)
    return known and math.prod(shape) >= LARGE


def _has_windows(sampler, shape, dtype, params, sharding):
    """Whether an array is drawn by the flat indices of its elements."""
    if sampler not in _WITH_WINDOWS or np.issubdtype(dtype, np.complexfloating):
        return False
    if sampler in _SPLITS_FOR_ELEMENTS:
        # JAX draws these one after the other, where XLA would need hundreds of
        # times the memory of a shard to draw all at once.
        if sharding is None or is_small(shape):
            return False
    if not all(isinstance(size, int) for size in shape):
        return False  # A dimension that is not known yet.
    if not all(_is_scalar(param, dtype) for param in params):
        return False
    shard_shape = shape
    if sharding is not None:
        if not isinstance(sharding, jax.sharding.NamedSharding):
            if len(sharding.device_set) > 1:
                return False
        elif jax.sharding.PartitionSpec.UNCONSTRAINED in sharding.spec:
            return False  # What part a device gets is up to XLA.
        shard_shape = sharding.shard_shape(shape)
    if math.prod(shape) == 0:
        return False
    return windows.make_window(shape, shard_shape) is not None


def _is_scalar(param, dtype):
    """Whether a parameter leaves the dtype and the shape of a draw alone."""
    if isinstance(param, (int, float)) and not isinstance(param, np.generic):
        return True
    if np.ndim(param) > 0:
        return False
    kind = np.integer if jnp.issubdtype(dtype, np.integer) else dtype
    return jnp.issubdtype(jnp.asarray(param).dtype, kind)
