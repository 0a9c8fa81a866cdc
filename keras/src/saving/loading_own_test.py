"""What a `load_own_variables` that a user wrote gets, and how lean it is."""

from unittest import mock

import h5py
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from keras.src import backend
from keras.src import layers
from keras.src import models
from keras.src import ops
from keras.src import saving
from keras.src.backend.common.h5_array import H5Array
from keras.src.backend.common.stored_array import StoredArray
from keras.src.distribution import distribution_lib
from keras.src.saving.loading_testing import Files
from keras.src.saving.loading_testing import make_distribution

if backend.backend() != "jax":
    pytest.skip("Other backends lay nothing out.", allow_module_level=True)


class Own(layers.Layer):
    """A user's layer that loads as it was told to."""

    how = None

    def build(self, input_shape):
        self.kernel = self.add_weight(shape=(8, 16), name="kernel")
        self.bias = self.add_weight(shape=(16,), name="bias")

    def call(self, x):
        return x @ self.kernel + self.bias

    def load_own_variables(self, store):
        Own.how(self, store)


# As a user's class has it.
Own.load_own_variables.__module__ = "users"


def assign(layer, store):
    layer.kernel.assign(store["0"])
    layer.bias.assign(store["1"])


def assign_through(change):
    def load(layer, store):
        layer.kernel.assign(change(store["0"]))
        layer.bias.assign(store["1"])

    return load


def of_super(layer, store):
    super(Own, layer).load_own_variables(store)


def assign_changed_in_place(layer, store):
    kernel = store["0"]
    kernel[:] *= 2
    kernel /= 2
    layer.kernel.assign(kernel)
    layer.bias.assign(store["1"])


def assign_by_type(layer, store):
    if not isinstance(store["0"], np.ndarray):
        raise TypeError("It should be an array.")
    assign(layer, store)


LEAN = [assign, of_super]
WHOLE = [
    assign_through(lambda x: x.astype("float64")),
    assign_through(lambda x: x + 0.0),
    assign_through(lambda x: x[:]),
    assign_through(lambda x: x.T.T),
    assign_through(np.asarray),
    assign_through(lambda x: ops.transpose(ops.transpose(x))),
    assign_through(lambda x: jnp.transpose(jnp.transpose(x))),
    assign_changed_in_place,
    assign_by_type,
]


@pytest.mark.multi_device
class LoadingOwnTest(Files):
    def setUp(self):
        super().setUp()
        distribution_lib.set_distribution(make_distribution(8))
        Own.how = assign
        self.model = models.Sequential([layers.Input((8,)), Own(name="own")])
        rng = np.random.default_rng(0)
        self.values = [
            rng.normal(size=v.shape).astype("float32")
            for v in self.model.weights
        ]
        self.model.set_weights(self.values)
        self.file = self.saved(self.model, "a.weights.h5")
        self.archive = self.saved(self.model, "a.keras")
        self.model.set_weights([0 * value for value in self.values])

    def assert_loads(self, model=None):
        if model is None:
            model = self.model
            model.load_weights(self.file)
        self.assert_same(model.get_weights(), self.values)
        for variable in model.weights:
            self.assertIs(type(variable), backend.Variable)
        self.assertEqual(model.weights[0].value.sharding.spec, P(None, "model"))

    def test_what_is_assigned_is_read_by_the_part(self):
        for Own.how in LEAN:
            self.model.set_weights([0 * value for value in self.values])
            with (
                mock.patch.object(H5Array, "__array__", self.fail),
                mock.patch.object(h5py.Dataset, "__array__", self.fail),
            ):
                self.assert_loads()
                with saving.custom_object_scope({"Own": Own}):
                    self.assert_loads(saving.load_model(self.archive))

    def test_what_is_done_with_arrays_works(self):
        for Own.how in WHOLE:
            self.model.set_weights([0 * value for value in self.values])
            self.assert_loads()

    def test_without_layouts_it_gets_arrays(self):
        distribution_lib.set_distribution(None)
        model = models.Sequential([layers.Input((8,)), Own(name="own")])
        received = []

        def load(layer, store):
            received.append(type(store["0"]))
            assign(layer, store)

        Own.how = load
        model.load_weights(self.file)
        self.assertEqual(received, [np.ndarray])
        self.assert_same(model.get_weights(), self.values)

    def test_what_is_kept_outlives_the_file(self):
        def keep(layer, store):
            layer.kept = store["0"]
            assign(layer, store)

        Own.how = keep
        self.assert_loads()
        kept = self.model.layers[0].kept
        self.assertIsInstance(kept, StoredArray)
        with h5py.File(self.file, "w"):
            pass
        self.assert_same([np.asarray(kept)], self.values[:1])

    def test_errors_are_those_of_arrays(self):
        calls = []

        def fail(layer, store):
            calls.append(type(store["0"]))
            layer.kernel.assign(store["0"])
            layer.bias.assign(store["7"])

        Own.how = fail
        with self.assertRaisesRegex(ValueError, "(?s)own/bias.*a.weights.h5"):
            self.model.load_weights(self.file)
        self.assertEqual(calls[:2], [StoredArray, np.ndarray])
        self.assert_same(
            self.model.get_weights(), [0 * value for value in self.values]
        )
