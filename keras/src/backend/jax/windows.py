"""Random bits for a window of an array, without the rest of the array.

JAX's partitionable threefry gives element `i` of an array, counted in
row-major order, bits that depend on the key and on `i` alone. So whoever knows
the flat indices of some elements can draw exactly those: a device its own
shard.

A `Window` describes the elements of one shard. `window_key` makes a JAX PRNG
key of a base key and a run of the window's elements. Any sampler of
`jax.random` that draws one number for each element gives, with that key and
the run's length as shape, the values of those elements. All of it is
elementwise, so XLA compiles a whole draw into one loop that writes the result
and nothing else: no scratch memory, whatever the size.
"""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.random import define_prng_impl

# A run, and all runs of a window, are indexed by XLA with 31 bits. The
# distances between the elements of a run in the array are counted with 32.
_MAX_RUN = 2**31
_MAX_SPAN = 2**32


class Window(NamedTuple):
    """The elements of a row-major array that a shard holds.

    Attributes:
        outer: The leading dimensions of the window, whose distances are
            counted with 64 bits, a tuple of `(size, stride)`. Empty unless the
            array has billions of elements.
        inner: The other dimensions, whose distances fit 32 bits, likewise.
        steps: For each dimension of the array, the distance in flat elements
            between neighbouring shards.
        is_long: Whether flat indices in the array need more than 32 bits.
    """

    outer: tuple
    inner: tuple
    steps: tuple
    is_long: bool

    @property
    def rows(self):
        """The number of runs that the window is made of, an integer."""
        return math.prod(size for size, _ in self.outer)

    @property
    def columns(self):
        """The number of elements of a run, an integer."""
        return math.prod(size for size, _ in self.inner)


def make_window(shape, shard_shape):
    """Describes the window that a shard of an array is.

    Args:
        shape: The shape of the array, a tuple of integers, none of them 0.
        shard_shape: The shape of each shard, likewise.

    Returns:
        A `Window`, or `None` if a shard has more elements or runs of them
        than can be counted.
    """
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    merged = []
    for size, stride, whole in zip(shard_shape, strides, shape):
        if merged and size == whole:
            # Neighbours in this dimension follow each other in the last one.
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    merged = [d for d in merged if d[0] > 1] or [(1, 1)]
    outer = []
    while not _fits(merged):
        size, stride = merged.pop(0)
        parts = _parts_that_fit(size, stride, merged)
        if parts is not None:
            size //= parts
            outer.append((parts, size * stride))
            merged.insert(0, (size, stride))
        elif merged:
            outer.append((size, stride))
        else:
            return None
    steps = tuple(n * stride for n, stride in zip(shard_shape, strides))
    is_long = math.prod(shape) > 2**32
    window = Window(tuple(outer), tuple(merged), steps, is_long)
    return window if window.rows < _MAX_RUN else None


def window_key(key_data, window, start, row, column):
    """Makes a PRNG key for the elements from `(row, column)` of a window.

    Args:
        key_data: A `uint32` array of shape `(2,)`, the key of the array.
        window: A `Window`.
        start: The flat index in the array of the window's first element, a
            pair of `uint32` scalars, high and low word.
        row: Scalar integer, which of the window's `rows` the run is in.
        column: Scalar integer, where in the row it starts.

    Returns:
        A typed key. A sampler that is given it and a one-dimensional shape
        draws for the elements from there on.
    """
    place = _place(window, start, row, column)
    data = jnp.stack([key_data[0], key_data[1], *place])
    prng = _window_prng(window.inner, window.is_long)
    return jax.random.wrap_key_data(data, impl=prng)


def element_keys(key_data, window, start, row, splits):
    """Makes a PRNG key that is split into one for each element of a run.

    For samplers that draw an unknown count of numbers for an element, and
    split their key to have one for each.

    Args:
        key_data: As for `window_key`.
        window: As for `window_key`.
        start: As for `window_key`.
        row: As for `window_key`.
        splits: How many times the sampler splits a key before it does that.

    Returns:
        A typed key, for a draw of the shape `(window.columns,)`.
    """
    place = _place(window, start, row, 0)
    data = jnp.stack([key_data[0], key_data[1], *place, np.uint32(splits)])
    prng = _element_prng(window.inner, window.columns, window.is_long)
    return jax.random.wrap_key_data(data, impl=prng)


def _place(window, start, row, column):
    """The words of a key that say where a run starts."""
    words = start
    for position, (_, stride) in zip(
        _coordinates(row, [size for size, _ in window.outer]), window.outer
    ):
        words = _advance(window, words, position, stride)
    position = _coordinates(column, [size for size, _ in window.inner])
    words = _advance(window, words, position[0], window.inner[0][1])
    return [*words, *position[1:]]


def shard_start(window, indices):
    """Returns the flat index of the first element of a shard.

    Args:
        window: A `Window`.
        indices: For each dimension of the array, a scalar integer: which
            shard it is, from 0.

    Returns:
        A pair of `uint32` scalars, high and low word.
    """
    words = (jnp.uint32(0), jnp.uint32(0))
    for index, distance in zip(indices, window.steps):
        words = _advance(window, words, index, distance)
    return words


def _fits(dimensions):
    size, stride = dimensions[0]
    run = math.prod(size for size, _ in dimensions)
    return run < _MAX_RUN and size * stride < _MAX_SPAN


def _parts_that_fit(size, stride, inner):
    """The least number of equal parts of a dimension that are runs."""
    run = size * math.prod(size for size, _ in inner)
    fewest = max(run // _MAX_RUN, size * stride // _MAX_SPAN) + 1
    parts = range(fewest, min(size, fewest + 4096) + 1)
    return next((n for n in parts if size % n == 0), None)


def _coordinates(flat, sizes):
    """Row-major coordinates of a flat index; the first is not wrapped."""
    flat = jnp.asarray(flat).astype(np.uint32)
    coordinates = []
    for size in reversed(sizes[1:]):
        flat, rest = flat // np.uint32(size), flat % np.uint32(size)
        coordinates.insert(0, rest)
    return [flat, *coordinates]


def _advance(window, words, count, distance):
    """Adds `count * distance` to a flat index."""
    if window.is_long:
        return _add(words, _multiply(count, distance))
    count = jnp.asarray(count).astype(np.uint32)
    return words[0], words[1] + count * np.uint32(distance % 2**32)


def _add(a, b):
    """Adds two unsigned 64-bit numbers, each a pair of `uint32` words."""
    low = a[1] + b[1]
    return a[0] + b[0] + (low < b[1]).astype(np.uint32), low


def _multiply(number, factor):
    """Multiplies a `uint32` by a Python integer of at most 64 bits.

    JAX has no 64-bit integers unless they are switched on, and even then this
    has to give the same.
    """
    number = jnp.asarray(number).astype(np.uint32)
    product = (jnp.uint32(0), jnp.uint32(0))
    for half in range(2):
        part = (number >> np.uint32(16 * half)) & np.uint32(0xFFFF)
        # 16 by 64 bits, in four steps that each fit 32 bits.
        for i in range(4):
            digit, shift = factor >> (16 * i) & 0xFFFF, 16 * (i + half)
            if not digit:
                continue
            step = part * np.uint32(digit)
            if shift == 0:
                words = (jnp.uint32(0), step)
            elif shift < 32:
                words = (
                    step >> np.uint32(32 - shift),
                    step << np.uint32(shift),
                )
            elif shift < 64:
                words = (step << np.uint32(shift - 32), jnp.uint32(0))
            else:
                continue
            product = _add(product, words)
    return product


@functools.lru_cache(maxsize=None)
def _window_prng(inner, is_long):
    """The PRNG whose keys carry where in a window a run starts.

    A key is `(key high, key low, start high, start low, *position)`, where
    `position` is the run's first element in the window's inner dimensions but
    the first, which `start` accounts for.
    """

    def random_bits(data, bit_width, shape):
        high, low = _flat_indices(data[2:], inner, is_long, math.prod(shape))
        a, b = threefry(data[0], data[1], high, low)
        dtype = np.dtype(f"uint{bit_width}")
        if bit_width == 64:
            bits = a.astype(dtype) << dtype.type(32) | b.astype(dtype)
        else:
            bits = (a ^ b).astype(dtype)
        return bits.reshape(shape)

    def split(data, shape):
        key = jax.random.wrap_key_data(data[:2], impl="threefry2x32")
        keys = jax.random.key_data(jax.random.split(key, shape))
        place = jnp.broadcast_to(data[2:], (*keys.shape[:-1], data.size - 2))
        return jnp.concatenate([keys, place], axis=-1)

    return define_prng_impl(
        key_shape=(3 + len(inner),),
        seed=_unsupported,
        split=split,
        random_bits=random_bits,
        fold_in=_unsupported,
        name="threefry2x32_window",
        tag="window",
    )


@functools.lru_cache(maxsize=None)
def _element_prng(inner, length, is_long):
    """The PRNG whose keys are split for the elements of a run.

    A key is `(key high, key low, start high, start low, *position, splits)`,
    where `splits` counts down to the split that is for the elements.
    """

    def random_bits(data, bit_width, shape):
        key = jax.random.wrap_key_data(data[:2], impl="threefry2x32")
        return jax.random.bits(key, shape, f"uint{bit_width}")

    def split(data, shape):
        key = jax.random.wrap_key_data(data[:2], impl="threefry2x32")
        keys = jax.random.key_data(jax.random.split(key, shape))
        if tuple(shape) == (length,):
            indices = _flat_indices(data[2:-1], inner, is_long, length)
            of_elements = jnp.stack(threefry(data[0], data[1], *indices), -1)
            keys = jnp.where(data[-1] == 0, of_elements, keys)
        place = jnp.append(data[2:-1], data[-1] - np.uint32(1))
        place = jnp.broadcast_to(place, (*keys.shape[:-1], place.size))
        return jnp.concatenate([keys, place], axis=-1)

    return define_prng_impl(
        key_shape=(4 + len(inner),),
        seed=_unsupported,
        split=split,
        random_bits=random_bits,
        fold_in=_unsupported,
        name="threefry2x32_elements",
        tag="elements",
    )


def _unsupported(*args):
    raise NotImplementedError("Keys of windows are made in this module only.")


def _flat_indices(place, inner, is_long, length):
    """The flat indices in the array of a run of elements of a window.

    Args:
        place: `uint32` array `(start high, start low, *position)`.
        inner: The window's inner dimensions, a tuple of `(size, stride)`.
        is_long: Whether high words count.
        length: The number of elements, an integer.

    Returns:
        Two `uint32` arrays of shape `(length,)`, high and low words.
    """
    carry = lax.iota(np.uint32, length)
    distance = np.uint32(0)
    for i in range(len(inner) - 1, 0, -1):
        size, stride = inner[i]
        carry = carry + place[1 + i]
        distance += carry % np.uint32(size) * np.uint32(stride)
        carry = carry // np.uint32(size)
    distance += carry * np.uint32(inner[0][1])
    low = place[1] + distance
    if not is_long:
        return jnp.zeros_like(low), low
    return place[0] + (low < distance).astype(np.uint32), low


def threefry(key_high, key_low, high, low):
    """Threefry-2x32 with 20 rounds, elementwise.

    The same function as JAX's `threefry2x32_p`, whose lowering for CPUs is a
    loop over arrays in memory. Written out, XLA fuses it with what consumes
    the bits: measured on two x86 cores, half the time and half the time to
    compile.

    Args:
        key_high: `uint32` scalar, the first word of the key.
        key_low: `uint32` scalar, the second.
        high: `uint32` array, the high words of the counters.
        low: `uint32` array of the same shape, the low words.

    Returns:
        Two `uint32` arrays of the shape of `high`.

    Reference:

    - [Salmon et al., 2011](https://doi.org/10.1145/2063384.2063405)
    """
    rotations = ((13, 15, 26, 6), (17, 29, 16, 24))
    parity = np.uint32(0x1BD11BDA)
    keys = (key_high, key_low, key_high ^ key_low ^ parity)
    a, b = high + keys[0], low + keys[1]
    for group in range(5):
        for distance in rotations[group % 2]:
            a = a + b
            b = b << np.uint32(distance) | b >> np.uint32(32 - distance)
            b = a ^ b
        a = a + keys[(group + 1) % 3]
        b = b + keys[(group + 2) % 3] + np.uint32(group + 1)
    return a, b
