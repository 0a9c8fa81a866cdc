"""Draws and fills of unusual shapes, parameters and dtypes, and under modes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from absl.testing import parameterized
from jax.sharding import AxisType
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec

import keras
from keras.src import backend
from keras.src import testing
from keras.src.backend.jax.draws_testing import assert_laid_out
from keras.src.backend.jax.draws_testing import assert_same_bits
from keras.src.backend.jax.draws_testing import mesh

pytestmark = [
    pytest.mark.multi_device,
    pytest.mark.skipif(
        backend.backend() != "jax", reason="tests the JAX backend"
    ),
]

SHAPE = (160, 128)
WEIGHTS = np.random.default_rng(0).standard_normal(SHAPE).astype("float32")
DIFFERENTIABLE = {
    "dropout": lambda x, layout: keras.random.dropout(
        x * jnp.ones(SHAPE), 0.5, seed=1, layout=layout
    ),
    "shuffle": lambda x, layout: keras.random.shuffle(
        x * WEIGHTS, seed=1, layout=layout
    ),
    "mean": lambda x, layout: keras.random.normal(
        SHAPE, mean=x, seed=1, layout=layout
    ),
    "stddev": lambda x, layout: keras.random.normal(
        SHAPE, stddev=x, seed=1, layout=layout
    ),
    "array of stddev": lambda x, layout: keras.random.normal(
        SHAPE, stddev=x * jnp.ones(SHAPE[1]), seed=1, layout=layout
    ),
    "truncated": lambda x, layout: keras.random.truncated_normal(
        SHAPE, stddev=x, seed=1, layout=layout
    ),
    "maxval": lambda x, layout: keras.random.uniform(
        SHAPE, maxval=x, seed=1, layout=layout
    ),
    "alpha": lambda x, layout: keras.random.gamma(
        SHAPE, x, seed=1, layout=layout
    ),
    "fill_value": lambda x, layout: keras.ops.full(SHAPE, x, layout=layout),
}


def layout_of(spec=("model",), axis_type=AxisType.Auto):
    return NamedSharding(mesh((2, 4), axis_type), PartitionSpec(*spec))


def normal(shape, *args, seed=1, **kwargs):
    return keras.random.normal(shape, *args, seed=seed, **kwargs)


class DerivativesTest(testing.TestCase):
    @parameterized.product(
        op=[*DIFFERENTIABLE],
        spec=[("model",), (None, "batch"), ("model", "batch"), ()],
        is_jitted=[True, False],
    )
    def test_gradients_are_those_without_a_layout(self, op, spec, is_jitted):
        def loss(x, layout=None):
            return jnp.sum(DIFFERENTIABLE[op](x, layout) * WEIGHTS)

        gradient = jax.grad(lambda x: loss(x, layout_of(spec)))
        if is_jitted:
            gradient = jax.jit(gradient)
        wanted = jax.grad(loss)(1.5)
        self.assertGreater(abs(wanted), 1)
        self.assertAllClose(gradient(1.5), wanted, rtol=1e-3)


class UnusualInputsTest(testing.TestCase):
    def key(self):
        return jnp.array([1, 0], jnp.uint32)

    @parameterized.parameters((SHAPE,), ((16, 8),))
    def test_complex_numbers(self, shape):
        draw = jax.random.normal(self.key(), shape, "complex64")
        wanted = draw * 0.7 + 0.3
        for layout in (None, layout_of()):
            result = normal(shape, 0.3, 0.7, "complex64", layout=layout)
            assert_same_bits(result, wanted)
        variable = backend.Variable(
            lambda shape, dtype: normal(shape, 0.3, 0.7, dtype),
            shape,
            "complex64",
        )
        assert_same_bits(variable.value, wanted)

    @parameterized.parameters("int8", "uint8", "int32", "int64")
    def test_sizes_of_any_kind(self, dtype):
        wanted = normal((100, 120, 2))
        sizes = np.array([100, 120, 2], dtype)
        for shape in (sizes, tuple(sizes), list(sizes), jnp.array(sizes)):
            assert_same_bits(normal(shape), wanted)
            assert_same_bits(normal(shape, layout=layout_of()), wanted)
            zeros = keras.ops.zeros(shape, layout=layout_of())
            self.assertEqual(zeros.shape, (100, 120, 2))
            variable = backend.Variable(
                lambda shape_, dtype: normal(shape), (100, 120, 2)
            )
            assert_same_bits(variable.value, wanted)
        # Nothing of those is remembered for usual ones.
        assert_same_bits(normal((100, 120, 2)), wanted)

    def test_variables_as_parameters(self):
        stddev = backend.Variable(0.7)
        for shape in (SHAPE, (16, 8)):
            wanted = normal(shape, 0.0, stddev.value)
            assert_same_bits(normal(shape, 0.0, stddev), wanted)
            result = normal(shape, 0.0, stddev, layout=layout_of())
            assert_same_bits(result, wanted)

    def test_a_key_on_a_device_says_where(self):
        device = jax.devices()[3]
        key = jax.device_put(self.key(), device)
        variable = backend.Variable(
            lambda shape, dtype: normal(shape, seed=key), (16, 8)
        )
        self.assertEqual(variable.value.devices(), {device})
        assert_same_bits(variable.value, normal((16, 8)))

    def test_a_diagonal_that_is_a_bool(self):
        result = keras.ops.eye(8, k=True, layout=layout_of())
        assert_same_bits(result, jnp.eye(8, k=1))

    def test_an_arange_that_is_too_long(self):
        def long():
            return keras.ops.arange(
                2**32 + 8, dtype="float32", layout=layout_of()
            )

        with self.assertRaisesRegex(ValueError, r"at most 2\*\*32.*4294967304"):
            jax.eval_shape(long)


class WithoutJitTest(testing.TestCase):
    @parameterized.parameters((SHAPE,), ((16, 8),), ((2048, 1024),))
    def test_initializers(self, shape):
        for initializer in (
            keras.initializers.GlorotUniform(seed=1),
            keras.initializers.Zeros(),
            lambda shape, dtype: normal(shape, dtype=dtype) * 2.1 + 1,
        ):
            for layout in (None, layout_of()):
                wanted = backend.Variable(initializer, shape, layout=layout)
                with jax.disable_jit():
                    result = backend.Variable(initializer, shape, layout=layout)
                # JAX's own functions round otherwise then.
                self.assertAllClose(result.value, wanted.value, rtol=1e-5)
                if layout is not None:
                    assert_laid_out(result.value, layout)

    def test_ops(self):
        for make in (
            lambda layout: normal(SHAPE, layout=layout),
            lambda layout: keras.ops.zeros(SHAPE, layout=layout),
            lambda layout: keras.ops.arange(64, layout=layout),
            lambda layout: keras.random.dropout(
                WEIGHTS, 0.3, seed=1, layout=layout
            ),
        ):
            wanted = make(None)
            with jax.disable_jit():
                self.assertAllClose(make(None), wanted)
                result = make(layout_of())
            assert_same_bits(result, wanted)
            assert_laid_out(result, layout_of())
