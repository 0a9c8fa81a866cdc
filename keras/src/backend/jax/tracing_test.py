import contextlib
import functools
import threading
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from absl.testing import parameterized
from jax.sharding import AxisType
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec

from keras.src import backend
from keras.src import testing
from keras.src.backend.common import global_state
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.jax import initialization
from keras.src.backend.jax import initialization_testing as cases
from keras.src.backend.jax import tracing
from keras.src.random import seed_generator
from keras.src.random.seed_generator import GLOBAL_SEED_GENERATOR

pytestmark = [
    pytest.mark.multi_device,
    pytest.mark.skipif(
        backend.backend() != "jax", reason="tests the JAX backend"
    ),
]


class TracingTest(testing.TestCase):
    def test_side_effects_happen_once(self):
        calls = []

        def legacy(shape, dtype):
            calls.append(shape)
            return backend.random.normal(shape, dtype=dtype, seed=1)

        def on_the_host(shape, dtype):
            calls.append(shape)
            return np.ones(shape, dtype)

        def with_layout(shape, dtype, layout):
            calls.append(shape)
            return backend.random.normal(shape, seed=1, layout=layout)

        layout, _ = cases.layout_and_context("auto")
        for initializer in (legacy, on_the_host, with_layout):
            with cases.large():
                cases.born(initializer, layout)
            self.assertEqual(calls, [cases.SHAPE])
            calls.clear()

    @parameterized.parameters("auto", "explicit")
    def test_nothing_leaks(self, axes):
        layout, _ = cases.layout_and_context(axes)
        global_state.set_global_attribute(GLOBAL_SEED_GENERATOR, None)
        with cases.large(), jax.checking_leaks():
            for initializer in (
                cases.unseeded,
                cases.SeveralGenerators(),
                cases.LateGenerator(),
                cases.takes_the_sign,
                cases.takes_layout_unseeded,
            ):
                cases.born(initializer, layout)
        global_generator = seed_generator.global_seed_generator()
        self.assertNotIsInstance(global_generator.state.value, jax.core.Tracer)

    def test_generators_made_by_an_initializer_are_whole(self):
        late = cases.LateGenerator()
        with cases.large():
            cases.born(late, cases.layout_and_context("auto")[0])
        self.assertIsNone(late.generator.state._initializer)
        with StatelessScope():  # On leaving, it initializes what is not yet.
            pass
        np.testing.assert_array_equal(late.generator.state, [4, 1])

    def test_a_jitted_function_keeps_no_layout(self):
        @functools.partial(jax.jit, static_argnums=0)
        def draw(shape):
            return backend.random.normal(shape, seed=3)

        layout, _ = cases.layout_and_context("auto")
        want = draw(cases.SHAPE)
        with cases.large(), jax.set_mesh(layout.mesh):
            value = cases.born(lambda shape, dtype: draw(shape), layout)
            after = draw(cases.SHAPE)
        np.testing.assert_array_equal(value, want)
        np.testing.assert_array_equal(after, want)
        self.assertTrue(after.sharding.is_fully_replicated)

    def test_a_layout_is_handed_over_once(self):
        received = []

        def record(initializer):
            def recording(shape, dtype, layout=None):
                received.append(layout)
                return initializer(shape, dtype, layout)

            return recording

        for initializer in (cases.honours_layout, cases.draws_in_layout):
            cases.born(record(initializer), cases.layout_and_context("auto")[0])
            (layout,) = received
            self.assertEqual(layout.spec, cases.SPEC)
            self.assertTrue(layout.mesh.are_all_axes_explicit)
            received.clear()

    def test_a_factorization_runs_on_one_device(self):
        tracing._programs.clear()
        with cases.large():
            cases.born(cases.factorizes, cases.layout_and_context("auto")[0])
        self.assertEqual(tracing._programs, {})

    @parameterized.parameters(True, False)
    def test_refuses_a_value_of_another_shape(self, is_large):
        layout, _ = cases.layout_and_context("auto")
        for wrong in (
            lambda shape, dtype: np.ones((3,)),
            lambda shape, dtype: [1.0, 2.0],
            lambda shape, dtype: jnp.ones(shape[:1]),
            lambda shape, dtype, layout: jnp.ones(shape[:1]),
            lambda shape, dtype: 1.0,
        ):
            with cases.large() if is_large else contextlib.nullcontext():
                with self.assertRaisesRegex(
                    ValueError,
                    "a value of the shape that it is called with. Received: "
                    r"path='weight', shape=\(16, 24\), layout=.*has shape=",
                ):
                    cases.born(wrong, layout)

    @parameterized.parameters(True, False)
    def test_raises_what_an_initializer_raises(self, is_large):
        def broken(shape, dtype):
            raise KeyError("no such table")

        def broken_with_layout(shape, dtype, layout):
            raise KeyError("no such table")

        layout, _ = cases.layout_and_context("auto")
        with cases.large() if is_large else contextlib.nullcontext():
            for initializer in (broken, broken_with_layout):
                with self.assertRaisesRegex(KeyError, "no such table"):
                    cases.born(initializer, layout)
        self.assertIsNone(initialization.variable_being_born())

    def test_takes_no_constants_into_programs(self):
        layout, _ = cases.layout_and_context("auto")
        host_data = cases.BIG.reshape(16, 24, 1000)
        on_mesh = jax.device_put(
            host_data, NamedSharding(layout.mesh, PartitionSpec("batch"))
        )
        compiled = []
        compile_ = jax.stages.Lowered.compile

        def record(lowered, *args, **kwargs):
            compiled.append(len(lowered.as_text()))
            return compile_(lowered, *args, **kwargs)

        with (
            cases.large(),
            mock.patch.object(jax.stages.Lowered, "compile", record),
        ):
            cases.born(lambda s, d: jnp.asarray(host_data)[..., 5] * 2, layout)
            self.assertEqual(compiled, [])
            # What the devices have already, they can use.
            value = cases.born(lambda s, d: on_mesh[..., 5] * 2, layout)
        self.assertLess(max(compiled), 10_000)
        np.testing.assert_array_equal(value, host_data[..., 5] * 2)

    def test_equal_initializers_share_a_program(self):
        layout, _ = cases.layout_and_context("auto")
        tracing._programs.clear()
        compile_ = jax.stages.Lowered.compile
        with (
            cases.large(),
            mock.patch.object(
                jax.stages.Lowered,
                "compile",
                autospec=True,
                side_effect=compile_,
            ) as compiling,
        ):
            for seed in range(3):
                for dtype in ("float32", "bfloat16"):
                    scaled = cases.Scaled(seed=seed)
                    cases.born(scaled, layout, dtype=dtype)
        self.assertEqual(compiling.call_count, 2)

    def test_programs_are_not_kept_forever(self):
        layout, _ = cases.layout_and_context("auto")
        tracing._programs.clear()
        with cases.large(), mock.patch.object(tracing, "_MAX_PROGRAMS", 2):
            for scale in range(3):
                cases.born(lambda s, d: jnp.ones(s, d) * scale, layout)
                self.assertLessEqual(len(tracing._programs), 2)

    def test_threads_do_not_share_what_is_born(self):
        births = []

        def initializer(shape, dtype):
            thread = threading.Thread(
                target=lambda: births.append(
                    initialization.variable_being_born()
                )
            )
            thread.start()
            thread.join()
            births.append(initialization.variable_being_born())
            return np.ones(shape, dtype)

        cases.born(initializer)
        self.assertIsNone(births[0])
        self.assertEqual(births[1].shape, cases.SHAPE)
        self.assertIsNone(initialization.variable_being_born())

    def test_large_values_need_no_scratch(self):
        shape = (512, 1024)
        mesh = jax.make_mesh((8,), ("model",), (AxisType.Auto,))
        layout = NamedSharding(mesh, PartitionSpec("model"))
        shard_size = np.prod(shape) * 4 // 8
        for initializer, times in (
            (cases.Affine(), 0.1),
            (cases.TakesLayoutItself(seed=3), 0.1),
            # What XLA needs for a shard, not for the array.
            (cases.draws_in_layout, 4),
            (cases.LEGACY["other names"](), 4),
        ):
            tracing._programs.clear()
            with cases.large():
                cases.born(initializer, layout, shape)
            (program,) = tracing._programs.values()
            memory = program.memory_analysis()
            self.assertLess(memory.temp_size_in_bytes, times * shard_size)
            self.assertLess(memory.output_size_in_bytes, 1.01 * shard_size)
