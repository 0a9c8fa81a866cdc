from unittest import mock

import numpy as np
import pytest

import keras
from keras.src import backend
from keras.src import layers
from keras.src import models
from keras.src import saving
from keras.src.backend.common.h5_array import H5Array
from keras.src.distribution import distribution_lib
from keras.src.saving import saving_lib
from keras.src.saving.loading_testing import Files
from keras.src.saving.loading_testing import make_distribution
from keras.src.saving.loading_testing import make_model
from keras.src.saving.loading_testing import randomize
from keras.src.saving.loading_testing import values

if backend.backend() != "jax":
    pytest.skip("Other backends lay nothing out.", allow_module_level=True)


class LoadingTest(Files):
    @pytest.mark.multi_device
    def test_under_other_meshes(self):
        saved_under = [None, make_distribution(8), make_distribution(2)]
        loaded_under = saved_under + [make_distribution(4, ("model", None))]
        for first in saved_under:
            distribution_lib.set_distribution(first)
            model = make_model()
            randomize(model)
            files = [
                self.saved(model, "a.weights.h5"),
                self.saved(model, "a.weights.json", max_shard_size=1e-6 * 3),
                self.saved(model, "a.keras"),
            ]
            for second in loaded_under:
                distribution_lib.set_distribution(second)
                for file in files:
                    other = make_model()
                    other.load_weights(file)
                    self.assert_same(
                        [np.asarray(v.value) for v in model.weights],
                        [np.asarray(v.value) for v in other.weights],
                    )
                    self.assert_laid_out(other, second)
                other = saving.load_model(files[-1])
                self.assert_same(values(model), values(other))
                self.assert_laid_out(other, second)

    def assert_laid_out(self, model, distribution):
        for variable in model.weights:
            self.assertIs(type(variable), backend.Variable)
            if distribution is not None:
                layout = distribution.get_variable_layout(variable)
                self.assertEqual(variable.value.sharding, layout.backend_layout)

    def test_16_bit_variables(self):
        for dtype in ("bfloat16", "float16"):
            model = make_model(dtype=dtype)
            randomize(model)
            file = self.saved(model, "a.weights.h5")
            other = make_model(dtype=dtype)
            other.load_weights(file)
            self.assert_same(
                [np.asarray(v.value) for v in model.weights],
                [np.asarray(v.value) for v in other.weights],
            )
            wide = make_model()
            wide.load_weights(file)
            self.assert_same(
                [np.asarray(v.value, "float32") for v in model.weights],
                [np.asarray(v.value) for v in wide.weights],
            )

    def test_no_array_is_read_whole(self):
        model = make_model()
        file = self.saved(model, "a.keras")
        with mock.patch.object(
            H5Array, "__array__", side_effect=AssertionError
        ):
            model.load_weights(file)
            saving.load_model(file)

    def test_no_draws_when_a_model_is_loaded(self):
        model = make_model()
        randomize(model)
        file = self.saved(model, "a.keras")
        with (
            mock.patch.object(
                keras.src.initializers.RandomUniform,
                "__call__",
                side_effect=AssertionError,
            ),
            mock.patch.object(
                keras.src.initializers.GlorotUniform,
                "__call__",
                side_effect=AssertionError,
            ),
        ):
            loaded = saving.load_model(file)
        self.assert_same(values(model), values(loaded))

    def test_initial_values_that_the_file_does_not_cover(self):
        received = []

        @saving.register_keras_serializable("loading_test")
        class Partial(layers.Layer):
            def build(self, input_shape):
                self.kernel = self.add_weight(
                    shape=(4, 4),
                    initializer=keras.initializers.RandomNormal(seed=3),
                    name="kernel",
                )
                self.state = self.add_weight(
                    shape=(4, 4),
                    initializer=keras.initializers.RandomNormal(seed=5),
                    name="state",
                )

            def call(self, x):
                return x @ self.kernel @ self.state

            def save_own_variables(self, store):
                store["kernel"] = self.kernel

            def load_own_variables(self, store):
                received.append(type(store["kernel"]))
                self.kernel.assign(store["kernel"])

        # As if a user had written it.
        Partial.load_own_variables.__module__ = "users"
        model = models.Sequential([layers.Input((4,)), Partial()])
        state = np.asarray(model.weights[1].value)
        for variable in model.weights:
            variable.assign(np.zeros((4, 4)))
        loaded = saving.load_model(self.saved(model, "a.keras"))
        self.assert_same(
            [np.asarray(variable.value) for variable in loaded.weights],
            [np.zeros((4, 4)), state],
        )
        self.assertEqual(received, [np.ndarray])

    def test_seed_generators_draw_in_their_order(self):
        def make():
            keras.utils.set_random_seed(3)
            seed = keras.random.SeedGenerator(7)
            initializer = keras.initializers.RandomNormal(seed=seed)
            return [
                layers.Dense(4, kernel_initializer=initializer)
                for _ in range(2)
            ]

        def build(dense):
            for layer in dense:
                layer.build((None, 4))
            return [np.asarray(layer.kernel.value) for layer in dense]

        from keras.src.backend.jax.deferral import Loading

        expected = build(make())
        with Loading(initial=True):
            result = build(make())
        self.assert_same(expected, result)

    def test_models_trained_after_loading(self):
        model = make_model()
        x = np.arange(64).reshape(8, 8) % 32
        y = np.ones((8, 8, 8))
        model.fit(x, y, epochs=1, verbose=0)
        loaded = saving.load_model(self.saved(model, "a.keras"))
        first = model.fit(x, y, epochs=2, verbose=0).history["loss"]
        second = loaded.fit(x, y, epochs=2, verbose=0).history["loss"]
        self.assertAllClose(first, second, rtol=1e-6)

    def test_npz(self):
        for dtype in ("float32", "bfloat16"):
            model = make_model(dtype=dtype)
            randomize(model)
            path = self.path("a.keras")
            saving_lib.save_model(model, path, weights_format="npz")
            self.assert_same(values(model), values(saving.load_model(path)))
