import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from keras.src import backend
from keras.src import testing

if backend.backend() != "jax":
    pytest.skip("The JAX backend's own modules.", allow_module_level=True)

from keras.src.backend.jax import windows  # noqa: E402

KEY = np.array([3, 2**32 - 5], np.uint32)


def flat_indices(window, index, row, column, length):
    """What `windows` computes for a run, as Python integers."""

    @jax.jit
    def compute(index, row, column):
        start = windows.shard_start(window, index)
        key = windows.window_key(KEY, window, start, row, column)
        place = jax.random.key_data(key)[2:]
        return windows._flat_indices(
            place, window.inner, window.is_long, length
        )

    high, low = compute(index, np.uint32(row), np.uint32(column))
    return [int(h) << 32 | int(l) for h, l in zip(high, low)]


def expected_indices(shape, shard_shape, index, start, length):
    """The flat indices of a shard's elements, counted the slow way."""
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    indices = []
    for flat in range(start, start + length):
        total = 0
        for size, stride, shard in zip(
            reversed(shard_shape), reversed(strides), reversed(index)
        ):
            flat, position = divmod(flat, size)
            total += (shard * size + position) * stride
        indices.append(total)
    return indices


@st.composite
def sharded_shapes(draw, sizes):
    rank = draw(st.integers(1, 6))
    shard_shape = [draw(sizes) for _ in range(rank)]
    parts = [draw(st.sampled_from([1, 1, 2, 3, 8])) for _ in range(rank)]
    shape = [size * n for size, n in zip(shard_shape, parts)]
    index = [draw(st.integers(0, n - 1)) for n in parts]
    return tuple(shape), tuple(shard_shape), tuple(index)


class WindowsTest(testing.TestCase):
    @settings(deadline=None, max_examples=40)
    @given(sharded_shapes(st.integers(1, 5)))
    def test_small_windows_hold_every_element_once(self, case):
        shape, shard_shape, index = case
        window = windows.make_window(shape, shard_shape)
        self.assertEqual(window.rows, 1)
        size = math.prod(shard_shape)
        self.assertEqual(window.columns, size)
        self.assertEqual(
            flat_indices(window, index, 0, 0, size),
            expected_indices(shape, shard_shape, index, 0, size),
        )

    @settings(deadline=None, max_examples=60)
    @given(
        sharded_shapes(st.sampled_from([1, 3, 64, 1000, 2**16, 2**17 + 2])),
        st.data(),
    )
    def test_windows_of_any_size_count_right(self, case, data):
        shape, shard_shape, index = case
        assume(math.prod(shape) < 2**64)
        window = windows.make_window(shape, shard_shape)
        assume(window is not None)
        row = data.draw(st.integers(0, window.rows - 1))
        last = max(0, window.columns - 7)
        column = data.draw(st.sampled_from([0, last // 2, last]))
        length = min(7, window.columns)
        self.assertEqual(
            flat_indices(window, index, row, column, length),
            expected_indices(
                shape,
                shard_shape,
                index,
                row * window.columns + column,
                length,
            ),
        )

    def test_indices_cross_the_32_bit_boundary(self):
        shape = (2**33 + 16,)
        window = windows.make_window(shape, shape)
        self.assertGreater(window.rows, 1)
        self.assertLess(window.columns, 2**31)
        for boundary in (2**31, 2**32, 2**33):
            row, column = divmod(boundary, window.columns)
            length = min(4, window.columns - column)
            self.assertEqual(
                flat_indices(window, (0,), row, column, length),
                list(range(boundary, boundary + length)),
            )

    def test_32_bits_do_for_as_many_elements(self):
        for size, is_long in ((2**32, False), (2**32 + 8, True)):
            shape, shard_shape = (size,), (size // 8,)
            window = windows.make_window(shape, shard_shape)
            self.assertEqual(window.is_long, is_long)
            last = window.columns - 2
            self.assertEqual(
                flat_indices(window, (7,), window.rows - 1, last, 2),
                [size - 2, size - 1],
            )

    def test_a_shard_of_every_other_element_can_be_long(self):
        shape = (2**17, 2**16, 4)
        for shard_shape in ((2**17, 2**16, 2), (2**17, 2**16, 1)):
            window = windows.make_window(shape, shard_shape)
            index = (0, 0, 1)
            for row in (0, window.rows - 1):
                self.assertEqual(
                    flat_indices(window, index, row, window.columns - 4, 4),
                    expected_indices(
                        shape,
                        shard_shape,
                        index,
                        (row + 1) * window.columns - 4,
                        4,
                    ),
                )

    def test_a_carry_into_the_high_word_within_a_run(self):
        shape, shard_shape = (2**20, 2**14), (2**10, 2**14)
        window = windows.make_window(shape, shard_shape)
        # Shard 256 starts at 2**32; the one before ends there.
        before = flat_indices(window, (255, 0), 0, window.columns - 2, 2)
        self.assertEqual(before, [2**32 - 2, 2**32 - 1])
        after = flat_indices(window, (256, 0), 0, 0, 2)
        self.assertEqual(after, [2**32, 2**32 + 1])

    def test_one_dimension_too_long_to_count_has_no_window(self):
        prime = 2**61 - 1
        self.assertIsNone(windows.make_window((prime,), (prime,)))

    def test_random_bits_are_those_of_jax(self):
        whole = jax.random.wrap_key_data(KEY, impl="threefry2x32")
        shape, shard_shape = (6, 4, 10), (3, 4, 5)
        window = windows.make_window(shape, shard_shape)
        for width, (i, k) in itertools.product((8, 16, 32), np.ndindex(2, 2)):
            start = windows.shard_start(window, (i, 0, k))
            key = windows.window_key(KEY, window, start, 0, 0)
            dtype = f"uint{width}"
            bits = jax.random.bits(key, (window.columns,), dtype)
            expected = jax.random.bits(whole, shape, dtype)
            self.assertAllEqual(
                bits.reshape(shard_shape),
                expected[3 * i : 3 * i + 3, :, 5 * k : 5 * k + 5],
            )

    def test_64_bits(self):
        with jax.enable_x64(True):
            whole = jax.random.wrap_key_data(KEY, impl="threefry2x32")
            window = windows.make_window((12,), (6,))
            start = windows.shard_start(window, (1,))
            key = windows.window_key(KEY, window, start, 0, 0)
            self.assertAllEqual(
                jax.random.bits(key, (6,), "uint64"),
                jax.random.bits(whole, (12,), "uint64")[6:],
            )

    def test_split_keys_stay_in_the_window(self):
        whole = jax.random.wrap_key_data(KEY, impl="threefry2x32")
        window = windows.make_window((12,), (6,))
        start = windows.shard_start(window, (1,))
        key = windows.window_key(KEY, window, start, 0, 0)
        for split, expected in zip(
            jax.random.split(key, 3), jax.random.split(whole, 3)
        ):
            self.assertAllEqual(
                jax.random.bits(split, (6,)),
                jax.random.bits(expected, (12,))[6:],
            )

    def test_threefry_is_that_of_jax(self):
        counts = np.random.default_rng(0).integers(
            0, 2**32, (2, 50), dtype=np.uint32
        )
        self.assertAllEqual(
            jnp.stack(windows.threefry(*KEY, *counts)),
            jnp.stack(
                jax.extend.random.threefry2x32_p.bind(
                    *map(jnp.uint32, KEY), *map(jnp.asarray, counts)
                )
            ),
        )
