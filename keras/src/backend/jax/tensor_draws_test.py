import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec

import keras
from keras.src import backend
from keras.src import testing

if backend.backend() != "jax":
    pytest.skip("The JAX backend's own modules.", allow_module_level=True)

from keras.src.backend.jax.draws_testing import assert_laid_out  # noqa: E402
from keras.src.backend.jax.draws_testing import assert_same_bits  # noqa: E402
from keras.src.backend.jax.draws_testing import mesh  # noqa: E402


@pytest.mark.multi_device
class TensorDrawTest(testing.TestCase):
    key = jnp.array([7, 0], jnp.uint32)
    inputs = jnp.arange(16 * 8, dtype="float32").reshape(16, 8) / 3

    def sharding(self, *spec):
        return NamedSharding(mesh((2, 4)), PartitionSpec(*spec))

    def test_dropout(self):
        for rate in (0.0, 0.3, 1.0):
            for noise_shape in (None, (16, 1), (None, 8)):
                layout = self.sharding("model", "batch")
                args = (self.inputs, rate, noise_shape)
                result = keras.random.dropout(*args, seed=7, layout=layout)
                assert_same_bits(result, keras.random.dropout(*args, seed=7))
                assert_laid_out(result, layout)

    def test_dropout_without_a_layout_is_that_of_jax(self):
        mask = jax.random.bernoulli(self.key, 1.0 - 0.3, (16, 8))
        expected = jnp.where(mask, self.inputs / (1.0 - 0.3), 0)
        result = keras.random.dropout(self.inputs, 0.3, seed=7)
        assert_same_bits(result, expected)

    def test_categorical(self):
        layout = self.sharding("batch", "model")
        result = keras.random.categorical(
            self.inputs, 12, seed=7, layout=layout
        )
        expected = jax.random.categorical(
            self.key, self.inputs[..., None], shape=(16, 12), axis=1
        )
        assert_same_bits(result, expected)
        assert_laid_out(result, layout)

    def test_shuffle(self):
        for axis in (0, 1):
            layout = self.sharding("model")
            result = keras.random.shuffle(
                self.inputs, axis, seed=7, layout=layout
            )
            expected = jax.random.permutation(
                self.key, self.inputs, axis, independent=True
            )
            assert_same_bits(result, expected)
            assert_laid_out(result, layout)

    def test_under_jit(self):
        layout = self.sharding("model")

        @jax.jit
        def dropped(x, key):
            return keras.random.dropout(x, 0.3, seed=key, layout=layout)

        expected = keras.random.dropout(self.inputs, 0.3, seed=7)
        assert_same_bits(dropped(self.inputs, self.key), expected)
