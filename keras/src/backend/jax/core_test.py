"""Grafts: what a layout does to variables."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from absl.testing import parameterized

from keras.src import backend
from keras.src import initializers
from keras.src import testing
from keras.src.backend.common import global_state
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.jax import initialization_testing as cases
from keras.src.distribution import distribution_lib
from keras.src.random import seed_generator
from keras.src.random.seed_generator import GLOBAL_SEED_GENERATOR
from keras.src.random.seed_generator import SeedGenerator


@pytest.mark.multi_device
@pytest.mark.skipif(backend.backend() != "jax", reason="tests the JAX backend")
class LayoutOfVariablesTest(testing.TestCase):
    @parameterized.parameters("auto", "explicit", None)
    def test_variable_of_an_array(self, axes):
        layout, context = cases.layout_and_context(axes)
        for array in (
            cases.BIG[0],
            jnp.asarray(cases.BIG[0]),
            cases.BIG[0].tolist(),
        ):
            with cases.in_mesh(context):
                variable = backend.Variable(array, layout=layout)
            self.assertEqual(variable.value.sharding.spec, cases.SPEC)
            np.testing.assert_array_equal(variable.value, cases.BIG[0])

    def test_layout_stays_after_its_context(self):
        for value in ("zeros", cases.BIG[0]):
            with jax.set_mesh(cases.make_mesh()):
                variable = backend.Variable(
                    value, cases.SHAPE, layout=cases.SPEC
                )
            variable.assign(cases.BIG[1])
            self.assertEqual(variable.value.sharding.spec, cases.SPEC)
            np.testing.assert_array_equal(variable.value, cases.BIG[1])

    def test_deferred_initialization(self):
        layout, _ = cases.layout_and_context("auto")
        with cases.large(), StatelessScope():
            variable = backend.Variable(
                cases.with_generator(), cases.SHAPE, layout=layout, name="late"
            )
            wrong = backend.Variable("zeros", (3, 4), name="wrong")
            self.assertIsNone(variable._value)
        self.assertEqual(variable.value.sharding, layout)
        np.testing.assert_array_equal(
            variable.value, cases.born(cases.with_generator())
        )
        np.testing.assert_array_equal(wrong.value, np.zeros((3, 4)))

    def test_deferred_initialization_that_fails(self):
        layout, _ = cases.layout_and_context("auto")
        with self.assertRaisesRegex(ValueError, "path='late', shape=.3, 4."):
            with StatelessScope():
                backend.Variable("zeros", (3, 4), layout=layout, name="late")
        global_state.set_global_attribute("uninitialized_variables", [])

    @parameterized.product(
        initializer=[
            cases.Affine(),
            cases.draws_in_layout,
            cases.draws_by_keras_in_layout,
            cases.honours_layout,
            cases.ignores_layout_on_the_host,
            initializers.GlorotUniform(seed=3),
            initializers.Orthogonal(seed=3),
            initializers.Constant(3),
        ],
        axes=["auto", "explicit", None],
    )
    def test_variable_created_inside_jit(self, initializer, axes):
        layout, context = cases.layout_and_context(axes)

        def make(layout):
            variable = backend.Variable(initializer, cases.SHAPE, layout=layout)
            first = variable.value
            variable.assign(variable + 1)
            return first, variable.value

        wanted = jax.jit(lambda: make(None))()
        with cases.in_mesh(context):
            values = jax.jit(lambda: make(layout))()
        sharding, _ = cases.layout_and_context("auto")
        for value, want in zip(values, wanted):
            self.assertTrue(value.sharding.is_equivalent_to(sharding, 2))
            self.assertAllClose(value, want, rtol=1e-6)

    def test_variable_created_while_inferring_shapes(self):
        layout, _ = cases.layout_and_context("auto")
        made = []

        def call(x):
            if not made:
                made.append(
                    backend.Variable(cases.Affine(), cases.SHAPE, layout=layout)
                )
            return x @ made[0]

        spec = backend.KerasTensor((2, 16))
        self.assertEqual(backend.compute_output_spec(call, spec).shape, (2, 24))
        self.assertEqual(made[0].value.sharding, layout)
        np.testing.assert_array_equal(made[0].value, cases.born(cases.Affine()))

    def test_state_of_a_seed_generator(self):
        sizes = (2, jax.device_count() // 2)
        layout_map = distribution_lib.LayoutMap(
            distribution_lib.DeviceMesh(sizes, ("batch", "model"))
        )
        distribution = distribution_lib.ModelParallel(layout_map=layout_map)
        global_state.set_global_attribute(GLOBAL_SEED_GENERATOR, None)
        with distribution.scope(), cases.large():
            generator = SeedGenerator(5)
            late = cases.LateGenerator()
            cases.born(late)
            cases.born(cases.unseeded)
            unseeded_state = seed_generator.global_seed_generator()
        for g in (generator, late.generator, unseeded_state):
            self.assertTrue(g.state.value.sharding.is_fully_replicated)
            self.assertLen(g.state.value.devices(), jax.device_count())
        np.testing.assert_array_equal(generator.next(), [5, 0])
        np.testing.assert_array_equal(generator.state, [5, 1])


@pytest.mark.multi_device
@pytest.mark.skipif(not is_nnx_enabled(), reason="tests variables of NNX")
class LayoutOfNnxVariablesTest(testing.TestCase):
    @parameterized.product(
        initializer=[
            cases.Affine(),
            cases.honours_layout,
            initializers.GlorotUniform(seed=3),
            "zeros",
        ],
        is_large=[True, False],
    )
    def test_first_value_is_born_in_its_layout(self, initializer, is_large):
        layout, _ = cases.layout_and_context("auto")
        want = NnxVariable(initializer, cases.SHAPE).value
        with cases.large() if is_large else contextlib.nullcontext():
            variable = NnxVariable(initializer, cases.SHAPE, layout=layout)
        merged = nnx.merge(*nnx.split(variable))
        for value in (variable.value, variable.get_value(), merged.value):
            self.assertEqual(value.sharding, layout)
            np.testing.assert_array_equal(value, want)

    def test_nothing_of_full_size_stands_in(self):
        sizes = []
        layout, _ = cases.layout_and_context("auto")

        def initializer(shape, dtype):
            sizes.extend(array.size for array in jax.live_arrays())
            return np.zeros(shape, dtype)

        NnxVariable(initializer, (998, 1000), layout=layout)
        self.assertNotEmpty(sizes)
        self.assertNotIn(998 * 1000, sizes)

    def test_stays_in_its_layout(self):
        layout, _ = cases.layout_and_context("auto")
        variable = NnxVariable("ones", cases.SHAPE, layout=layout)
        variable.assign(cases.BIG[0])
        self.assertEqual(variable.get_value().sharding, layout)
        np.testing.assert_array_equal(variable.get_value(), cases.BIG[0])
