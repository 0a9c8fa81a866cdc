import concurrent.futures
import gc
import weakref

import numpy as np
import pytest
from absl.testing import parameterized

from keras.src import backend
from keras.src import initializers
from keras.src import layers
from keras.src import models
from keras.src import optimizers
from keras.src import random
from keras.src.backend import config
from keras.src.distribution import distribution_lib
from keras.src.saving.loading_testing import Files
from keras.src.saving.loading_testing import make_distribution


class Own(layers.Dense):
    """A user's layer, whose values are assigned at once."""

    def load_own_variables(self, store):
        self.kernel.assign(np.asarray(store["0"]))
        self.bias.assign(np.asarray(store["1"]))


# As a user's class has it.
Own.load_own_variables.__module__ = "users"

pytestmark = [
    pytest.mark.multi_device,
    pytest.mark.skipif(
        backend.backend() != "jax" or config.is_nnx_enabled(),
        reason="Elsewhere such variables are as they are upstream.",
    ),
]

X = np.arange(64).reshape(8, 8).astype("float32") / 64
Y = np.ones((8, 16), "float32")


def make_model():
    # The order in which these draw decides what they draw.
    seed = random.SeedGenerator(3)
    return models.Sequential(
        [
            layers.Input((8,)),
            layers.Dense(
                32, kernel_initializer=initializers.GlorotUniform(seed)
            ),
            layers.Dropout(0.3, seed=5),
            layers.Dense(
                16, kernel_initializer=initializers.GlorotUniform(seed)
            ),
        ]
    )


def without_values():
    return backend.StatelessScope(initialize_variables=False)


def values(model):
    return [np.asarray(variable.value) for variable in model.weights]


def ways_to_set(model, file):
    """Functions that give another model the values of this one."""
    return (
        lambda other: other.load_weights(file),
        lambda other: other.set_weights(model.get_weights()),
        lambda other: other.set_weights([v.value for v in model.weights]),
    )


class PlanningTest(Files):
    def planned(self, columns=4):
        """A model without values, and the distribution that it is for."""
        distribution = make_distribution(columns)
        distribution_lib.set_distribution(distribution)
        with without_values():
            model = make_model()
        return model, distribution

    def assert_laid_out(self, model, distribution):
        for variable in model.weights:
            layout = distribution.get_variable_layout(variable)
            self.assertEqual(
                variable.value.sharding, layout.backend_layout, variable.path
            )

    def assert_without_values(self, model):
        for variable in model.weights:
            self.assertIsNone(variable._value)

    def test_stays_without_values(self):
        planned, _ = self.planned()
        other = make_model()
        other.compile("sgd", "mse")
        other.fit(X, Y, verbose=0)
        self.assert_without_values(planned)
        kernel = weakref.ref(planned.weights[0])
        del planned
        gc.collect()
        self.assertIsNone(kernel())

    @parameterized.parameters(
        lambda model: model.weights[-1].value,
        lambda model: model.predict_on_batch(X),
        lambda model: model(X),
        lambda model: model.get_weights(),
    )
    def test_gets_values_when_used(self, use):
        planned, distribution = self.planned()
        self.assert_without_values(planned)
        use(planned)
        self.assert_laid_out(planned, distribution)
        self.assert_same(values(planned), values(make_model()))

    @parameterized.parameters("adam", "sgd")
    def test_trains(self, optimizer):
        planned, distribution = self.planned()
        trained = []
        for model in (planned, make_model()):
            model.compile(optimizer, "mse")
            model.fit(X, Y, batch_size=4, epochs=2, shuffle=False, verbose=0)
            trained.append(model)
        self.assert_laid_out(planned, distribution)
        self.assert_same(*map(values, trained))

    def test_slots_of_optimizers_have_the_layouts_of_variables(self):
        planned, _ = self.planned()
        adam = optimizers.Adam()
        with without_values():
            adam.build(planned.trainable_variables)
        kernel = planned.weights[0]
        slots = [v for v in adam.variables if v.shape == kernel.shape]
        self.assertLen(slots, 2)
        for slot in slots:
            self.assertEqual(slot.value.sharding, kernel.value.sharding)
            self.assertFalse(slot.value.is_fully_replicated)

    def test_gets_values_of_its_own(self):
        model = make_model()
        model.set_weights([np.full(w.shape, 0.5) for w in model.weights])
        file = self.saved(model, "a.weights.h5")
        for get_values in ways_to_set(model, file):
            planned, distribution = self.planned()
            get_values(planned)
            self.assert_laid_out(planned, distribution)
            self.assert_same(values(planned), values(model))
            self.assertEqual(planned.predict_on_batch(X).shape, (8, 16))

    def test_the_distribution_is_that_of_the_first_value(self):
        model = make_model()
        file = self.saved(model, "a.weights.h5")
        for get_values in (*ways_to_set(model, file), models.Model.get_weights):
            with without_values():
                planned = make_model()
            distribution = make_distribution(4)
            with distribution.scope():
                get_values(planned)
            self.assert_laid_out(planned, distribution)

    def test_gets_values_while_traced(self):
        import jax

        for transform in (
            jax.jit,
            lambda fn: lambda x: jax.vmap(fn)(x[None]),
            lambda fn: jax.grad(lambda x: fn(x).sum()),
            lambda fn: lambda x: jax.eval_shape(fn, x),
        ):
            planned, distribution = self.planned()
            transform(lambda x: planned(x[None]))(X[0])
            self.assert_laid_out(planned, distribution)
            self.assert_same(values(planned), values(make_model()))

    def test_gets_values_in_several_threads(self):
        planned, _ = self.planned()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            read = pool.map(lambda v: v.value, planned.weights[::-1])
            read = [np.asarray(value) for value in read]
        self.assert_same(read[::-1], values(make_model()))

    def test_only_variables_of_the_scope_wait(self):
        def draw(shape, dtype=None):
            return random.normal(shape, dtype=dtype, seed=1)

        with make_distribution(4).scope(), backend.StatelessScope():
            first = layers.Dense(2048)
            first.build((None, 8))
            # So large that its initializer is traced, in a scope of its own.
            second = layers.Dense(1024, use_bias=False, kernel_initializer=draw)
            second.build((None, 2048))
        for variable in first.weights + second.weights:
            self.assertIsNone(variable._initializer)
            self.assertIsNotNone(variable._value)

    def test_never_starts_again(self):
        planned, _ = self.planned()
        planned.set_weights([np.full(w.shape, 0.5) for w in planned.weights])
        # As Keras takes the values of variables while a step runs.
        for variable in planned.weights:
            variable._value = None
        with self.assertRaises(TypeError):
            planned.weights[0].value

    def test_a_file_that_does_not_fit_changes_nothing(self):
        other = models.Sequential(
            [layers.Input((8,)), layers.Dense(32), layers.Dense(15)]
        )
        file = self.saved(other, "a.weights.h5")
        planned, distribution = self.planned()
        with self.assertRaises(ValueError):
            planned.load_weights(file)
        self.assert_same(values(planned), values(make_model()))
        self.assert_laid_out(planned, distribution)

    def test_a_file_that_does_not_fit_takes_back_what_was_assigned(self):
        def make(units):
            return models.Sequential(
                [layers.Input((8,)), Own(32), layers.Dense(units)]
            )

        other = make(15)
        other.set_weights([np.full(w.shape, 0.5) for w in other.weights])
        file = self.saved(other, "a.weights.h5")
        distribution = make_distribution(4)
        distribution_lib.set_distribution(distribution)
        with without_values():
            planned = make(16)
        with self.assertRaises(ValueError):
            planned.load_weights(file)
        self.assert_without_values(planned)
        # The last first, for which all before it get their values.
        self.assert_same([planned.weights[-1].value], [np.zeros(16)])
        self.assert_same([planned.weights[1].value], [np.zeros(32)])
        self.assertGreater(float(np.std(planned.weights[0].value)), 0.1)
        self.assert_laid_out(planned, distribution)

    def test_a_layout_that_does_not_fit(self):
        distribution = make_distribution(8)
        with distribution.scope(), without_values():
            variable = backend.Variable("ones", (4, 12), name="kernel")
        for _ in range(2):
            with self.assertRaisesRegex(ValueError, "path='kernel'.*model=8"):
                variable.value
