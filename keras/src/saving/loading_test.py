import json
import os
import zipfile
from unittest import mock

import h5py
import numpy as np
import pytest

import keras
from keras.src import backend
from keras.src import layers
from keras.src import models
from keras.src import saving
from keras.src import testing
from keras.src.backend.common.h5_array import H5Array
from keras.src.distribution import distribution_lib
from keras.src.saving import saving_lib

if backend.backend() != "jax":
    pytest.skip("Other backends load as upstream.", allow_module_level=True)


def make_distribution(columns=8, axes=(None, "model")):
    devices = distribution_lib.DeviceMesh(
        (8 // columns, columns), ["batch", "model"]
    )
    layout_map = distribution_lib.LayoutMap(devices)
    layout_map[".*kernel"] = axes
    layout_map[".*embeddings"] = axes
    return distribution_lib.ModelParallel(
        layout_map=layout_map, batch_dim_name="batch"
    )


def make_model(units=16, dtype=None):
    model = models.Sequential(
        [
            layers.Input((8,), dtype="int32"),
            layers.Embedding(32, 16, dtype=dtype),
            layers.Dense(units, dtype=dtype),
            layers.BatchNormalization(dtype=dtype),
            layers.Dense(8, name="last", dtype=dtype),
        ]
    )
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
    return model


def randomize(model):
    rng = np.random.default_rng(0)
    for variable in model.variables + model.optimizer.variables:
        if variable.ndim:
            variable.assign(rng.normal(size=variable.shape))


def values(model):
    variables = model.weights + model.optimizer.variables
    return [np.asarray(variable.value) for variable in variables]


class _Files(testing.TestCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(distribution_lib.set_distribution, None)

    def path(self, name):
        return os.path.join(self.get_temp_dir(), name)

    def saved(self, model, name, **kwargs):
        path = self.path(name)
        if name.endswith(".keras"):
            model.save(path)
        else:
            model.save_weights(path, **kwargs)
        return path

    def assert_same(self, first, second):
        self.assertEqual(len(first), len(second))
        for a, b in zip(first, second):
            np.testing.assert_array_equal(a, b)


class LoadingTest(_Files):
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


class FaultTest(_Files):
    def assert_refused(self, model, file, *names, error=ValueError):
        before = values(model)
        with self.assertRaises(error) as raised:
            model.load_weights(file)
        message = str(raised.exception) + " ".join(
            getattr(raised.exception, "__notes__", [])
        )
        for name in names:
            self.assertIn(name, message)
        self.assert_same(before, values(model))
        for variable in model.weights:
            self.assertIs(type(variable), backend.Variable)

    def test_truncated(self):
        for name in ("a.weights.h5", "a.keras"):
            model = make_model()
            file = self.saved(model, name)
            os.truncate(file, os.path.getsize(file) // 2)
            randomize(model)
            self.assert_refused(
                model, file, name, error=(OSError, zipfile.BadZipFile)
            )

    def test_truncated_among_several(self):
        model = make_model()
        file = self.saved(model, "a.weights.json", max_shard_size=3e-6)
        with open(file) as f:
            shards = json.load(f)["weight_map"].values()
        last = sorted(s if isinstance(s, str) else s[-1] for s in shards)[-1]
        shard = os.path.join(os.path.dirname(file), last)
        os.truncate(shard, os.path.getsize(shard) // 2)
        randomize(model)
        self.assert_refused(model, file, last, error=OSError)

    def test_wrong_shape_in_the_last_layer(self):
        model = make_model()
        file = self.saved(model, "a.weights.h5")
        with h5py.File(file, "a") as f:
            group = f["layers/dense_1/vars"]
            del group["0"]
            group["0"] = np.zeros((16, 9))
        randomize(model)
        self.assert_refused(
            model, file, "a.weights.h5", "last/kernel", "(16, 8)", "(16, 9)"
        )

    def test_missing_variables(self):
        model = make_model()
        file = self.saved(model, "a.weights.h5")
        with h5py.File(file, "a") as f:
            del f["layers/dense_1"]
        randomize(model)
        self.assert_refused(model, file, "a.weights.h5", "last", "kernel")
        file = self.saved(model, "b.weights.h5")
        with h5py.File(file, "a") as f:
            f.move("layers/dense_1/vars/1", "layers/dense_1/vars/7")
        self.assert_refused(model, file, "b.weights.h5", "'1'", "last")

    def test_dtype_that_cannot_be_cast(self):
        model = make_model()
        file = self.saved(model, "a.weights.h5")
        with h5py.File(file, "a") as f:
            group = f["layers/dense_1/vars"]
            del group["1"]
            group["1"] = np.array([b"abc"] * 8)
        randomize(model)
        self.assert_refused(model, file, "a.weights.h5", "last/bias")

    def test_skip_mismatch(self):
        model = make_model()
        randomize(model)
        file = self.saved(model, "a.weights.h5")
        other = make_model(units=12)
        before = values(other)
        with self.assertWarnsRegex(UserWarning, "could not be loaded"):
            other.load_weights(file, skip_mismatch=True)
        self.assert_same(values(other)[:1], values(model)[:1])
        self.assert_same(values(other)[1:2], before[1:2])

    def test_values_that_a_users_method_assigned_come_back(self):
        class Own(layers.Dense):
            def load_own_variables(self, store):
                super().load_own_variables(store)
                self.bias.assign(2 * self.bias.value)

        Own.load_own_variables.__module__ = "users"

        def make():
            return models.Sequential(
                [layers.Input((4,)), Own(4, name="own"), layers.Dense(3)]
            )

        model = make()
        model.compile("sgd", "mse")
        for variable in model.weights:
            variable.assign(np.ones(variable.shape))
        file = self.saved(model, "a.weights.h5")
        other = make()
        other.load_weights(file)
        self.assertAllClose(other.layers[0].bias.value, 2 * np.ones(4))
        with h5py.File(file, "a") as f:
            del f["layers/dense/vars/1"]
        model.layers[0].bias.assign(np.full(4, 5.0))
        self.assert_refused(model, file, "a.weights.h5")


class MemberTest(testing.TestCase):
    def test_reads_what_zipfile_reads(self):
        from keras.src.saving import loading

        path = os.path.join(self.get_temp_dir(), "a.zip")
        data = np.random.default_rng(0).bytes(5000)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("first", b"abc")
            archive.writestr("second", data)
            archive.writestr("third", data, zipfile.ZIP_DEFLATED)
        with zipfile.ZipFile(path) as archive:
            member = loading.stored_member(archive, "second")
            self.assertEqual(member.read(), data)
            self.assertEqual(member.seek(-7, os.SEEK_END), 4993)
            self.assertEqual(member.read(100), data[-7:])
            self.assertEqual(member.read(1), b"")
            member.seek(10)
            self.assertEqual(member.read(5), data[10:15])
            self.assertIsNone(loading.stored_member(archive, "third"))
