"""What user's methods do while a model is loaded: load, assign, copy, raise."""

import contextlib
import copy
import gzip
import os
import threading
import urllib.error
import zipfile
from types import SimpleNamespace
from unittest import mock

import h5py
import numpy as np
import pytest

from keras.src import backend
from keras.src import layers
from keras.src import models
from keras.src import saving
from keras.src.backend.jax import deferral
from keras.src.saving import saving_lib
from keras.src.saving.loading_testing import Files
from keras.src.saving.loading_testing import make_distribution

pytestmark = [
    pytest.mark.multi_device,
    pytest.mark.skipif(
        backend.backend() != "jax", reason="Other backends read at once."
    ),
]


def dense_model(value, units=8):
    model = models.Sequential([layers.Input((4,)), layers.Dense(units)])
    model.set_weights([np.full(w.shape, value) for w in model.weights])
    return model


class LoadsOthers(layers.Layer):
    """Loads models from files while it is loaded from another."""

    def __init__(self, file, values):
        super().__init__()
        self.file, self.values = file, values
        # Not a part of this layer.
        self.inner = SimpleNamespace(models=[dense_model(0) for _ in values])
        self.scale = self.add_weight(shape=(8,), name="scale")

    def call(self, x):
        return x

    def load_own_variables(self, store):
        super().load_own_variables(store)
        for value, other in zip(self.values, self.inner.models):
            dense_model(value).save_weights(self.file)
            other.load_weights(self.file)
            os.remove(self.file)


class Doubling(backend.Variable):
    def assign(self, value):
        return super().assign(value * 2)


class Doubles(layers.Layer):
    def build(self, shape):
        self.kernel = Doubling(np.ones(8, "float32"), name="kernel")

    def call(self, x):
        return x


@saving.register_keras_serializable()
class KeepsModel(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.inner = SimpleNamespace()

    def call(self, x):
        return x

    def save_assets(self, path):
        self.inner.model.save(os.path.join(path, "kept.keras"))

    def load_assets(self, path):
        path = os.path.join(path, "kept.keras")
        self.inner.model = saving.load_model(path)


@saving.register_keras_serializable()
class KeepsCopies(models.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = layers.Dense(8)
        self.dense.build((None, 4))
        self.target = [copy.deepcopy(self.dense.kernel)]
        self.other = copy.copy(self.dense.kernel)

    def call(self, x):
        return self.dense(x)


@saving.register_keras_serializable()
class RaisesFromConfig(layers.Layer):
    error = None

    def call(self, x):
        return x

    @classmethod
    def from_config(cls, config):
        raise cls.error


def around(layer):
    model = models.Sequential([layers.Input((4,)), layer])
    model.build((None, 4))
    return model


class MethodsTest(Files):
    def test_files_that_are_loaded_meanwhile(self):
        for distribution in (None, make_distribution()):
            scope = distribution and distribution.scope()
            with scope or contextlib.nullcontext():
                path = self.path("inner.weights.h5")
                model = around(LoadsOthers(path, [1, 2]))
                outer = self.saved(model, "outer.weights.h5")
                model.load_weights(outer)
                for value, other in zip([1, 2], model.layers[0].inner.models):
                    self.assertAllEqual(
                        other.layers[0].kernel, [[value] * 8] * 4
                    )

    def test_one_that_does_not_fit_changes_nothing(self):
        model = around(LoadsOthers(self.path("inner.weights.h5"), [1, 2]))
        outer = self.saved(model, "outer.weights.h5")
        model.layers[0].scale.assign(np.full(8, 7.0))
        model.layers[0].inner.models[1] = dense_model(0, units=3)
        with self.assertRaisesRegex(ValueError, "inner.weights.h5"):
            model.load_weights(outer)
        self.assertAllEqual(model.layers[0].scale, [7.0] * 8)
        for other in model.layers[0].inner.models:
            self.assertEqual(np.max(other.layers[0].kernel), 0)

    def test_a_model_among_the_assets(self):
        layer = KeepsModel()
        layer.inner.model = dense_model(3)
        path = self.saved(around(layer), "model.keras")
        loaded = saving.load_model(path).layers[0].inner.model
        self.assertAllEqual(loaded.layers[0].kernel, [[3] * 8] * 4)

    def test_a_variable_that_computes_with_what_it_is_assigned(self):
        model = around(Doubles())
        model.load_weights(self.saved(model, "model.weights.h5"))
        self.assertAllEqual(model.layers[0].kernel, [2.0] * 8)

    def test_copies_of_variables(self):
        path = self.saved(KeepsCopies(), "model.keras")
        loaded = saving.load_model(path)
        for variable in (loaded.target[0], loaded.other):
            self.assertEqual(np.shape(variable.value), (4, 8))
            self.assertIs(type(variable), backend.Variable)
            self.assertGreater(np.std(variable.value), 0)

    def test_threads_that_read_a_variable_at_once(self):
        model = dense_model(1)
        path = self.saved(dense_model(5), "model.weights.h5")
        barrier, seen = threading.Barrier(2, timeout=60), []

        def meet():
            if not seen:
                barrier.wait()
            return False

        def read():
            seen.append(np.max(model.layers[0].kernel._value))

        def load(store):
            model.layers[0].kernel.assign(store["0"])
            threads = [threading.Thread(target=read) for _ in range(2)]
            with mock.patch.object(deferral, "in_symbolic_scope", meet):
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            model.layers[0].bias.assign(store["1"])

        model.layers[0].load_own_variables = load
        model.load_weights(path)
        self.assertEqual(seen, [5, 5])

    def test_errors_stay_what_they_are(self):
        path = self.saved(around(RaisesFromConfig()), "model.keras")
        for error in (
            urllib.error.HTTPError("http://x", 404, "gone", None, None),
            PermissionError(13, "denied", "/etc/other"),
        ):
            RaisesFromConfig.error = error
            with self.assertRaises(type(error)) as raised:
                saving.load_model(path)
            self.assertIs(raised.exception, error)
            self.assertIn("model.keras", " ".join(error.__notes__))


class ArchivesTest(Files):
    def test_an_archive_in_a_compressed_file(self):
        model = dense_model(5)
        with open(self.saved(model, "model.keras"), "rb") as file:
            content = file.read()
        path = self.path("model.keras.gz")
        with gzip.open(path, "wb") as file:
            file.write(content)
        with gzip.open(path, "rb") as file:
            loaded = saving_lib.load_model(file)
        self.assert_same(loaded.get_weights(), model.get_weights())

    def test_an_archive_that_is_compressed(self):
        model = dense_model(5)
        path, packed = self.saved(model, "model.keras"), self.path("p.keras")
        with (
            zipfile.ZipFile(path) as source,
            zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target,
        ):
            for name in source.namelist():
                target.writestr(name, source.read(name))
        # To seek is to decompress all that comes before once more.
        seek = mock.Mock(side_effect=AssertionError)
        with mock.patch.object(zipfile.ZipExtFile, "seek", seek):
            loaded = saving.load_model(packed)
        self.assert_same(loaded.get_weights(), model.get_weights())

    def test_no_file_stays_open(self):
        path = self.saved(dense_model(5), "model.weights.h5")
        name = "layers/dense/vars/0"
        with h5py.File(path, "r+") as file:
            values = file[name][:]
            del file[name]
            options = {"chunks": values.shape, "fletcher32": True}
            dataset = file.create_dataset(name, data=values, **options)
            file.flush()
            offset = dataset.id.get_chunk_info(0).byte_offset
        with open(path, "r+b") as file:
            file.seek(offset)
            file.write(b"damaged")
        error = None  # What it refers to stays, as in a debugger.
        try:
            dense_model(1).load_weights(path)
        except OSError as raised:
            error = raised
        self.assertIn("model.weights.h5", str(error))
        names = [
            os.path.realpath(f"/proc/self/fd/{number}")
            for number in os.listdir("/proc/self/fd")
        ]
        self.assertNotIn(os.path.realpath(path), names)
