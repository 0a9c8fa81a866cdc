"""Grafts: every built-in initializer takes a layout."""

import contextlib
import inspect
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
from keras.src import initializers
from keras.src import testing
from keras.src.initializers import constant_initializers
from keras.src.initializers import random_initializers
from keras.src.random.seed_generator import SeedGenerator

SHAPE = (16, 24)
# Each built-in by its name, with arguments that matter.
BUILT_IN = {
    "Zeros": {},
    "Ones": {},
    "Constant": {"value": 1.7},
    "Identity": {"gain": 1.3},
    "STFT": {"side": "imag", "window": "hann", "scaling": "density"},
    "RandomNormal": {"mean": 0.1, "stddev": 0.3, "seed": 1},
    "TruncatedNormal": {"mean": 0.1, "stddev": 0.3, "seed": 1},
    "RandomUniform": {"minval": -0.3, "maxval": 0.7, "seed": 1},
    "VarianceScaling": {"scale": 0.3, "mode": "fan_out", "seed": 1},
    "GlorotNormal": {"seed": 1},
    "GlorotUniform": {"seed": 1},
    "HeNormal": {"seed": 1},
    "HeUniform": {"seed": 1},
    "LecunNormal": {"seed": 1},
    "LecunUniform": {"seed": 1},
    "Orthogonal": {"gain": 1.3, "seed": 1},
}
SHAPES = {"STFT": (16, 1, 24)}


def make(name):
    return getattr(initializers, name)(**BUILT_IN[name])


def built_in_classes():
    """Every class that the modules of initializers define."""
    return {
        name: value
        for module in (constant_initializers, random_initializers)
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__
    }


class ScaledNormal(initializers.RandomNormal):
    def __call__(self, shape, dtype=None):
        return super().__call__(shape, dtype=dtype) * 1.1 + 0.7


class BuiltInInterfaceTest(testing.TestCase):
    def test_every_built_in_is_tested(self):
        names = set(built_in_classes()) - {"RandomInitializer"}
        self.assertEqual(names, set(BUILT_IN))

    def test_signature(self):
        for call in [
            initializers.Initializer.__call__,
            *[cls.__call__ for cls in built_in_classes().values()],
        ]:
            parameters = inspect.signature(call).parameters
            self.assertEqual([*parameters][1:], ["shape", "dtype", "layout"])
            self.assertIsNone(parameters["dtype"].default)
            self.assertIsNone(parameters["layout"].default)

    @parameterized.parameters(*BUILT_IN)
    def test_layout_is_no_part_of_the_config(self, name):
        initializer = make(name)
        config = initializer.get_config()
        self.assertNotIn("layout", config)
        for other in (
            type(initializer).from_config(config),
            initializer.clone(),
            initializers.get(initializer),
            initializers.get(initializers.serialize(initializer)),
            initializers.deserialize(initializers.serialize(initializer)),
        ):
            self.assertEqual(type(other), type(initializer))
            self.assertEqual(other.get_config(), config)
        if name != "Constant":  # It needs a value.
            by_name = initializers.get(name)
            self.assertEqual(type(by_name), type(initializer))

    @pytest.mark.skipif(backend.backend() == "jax", reason="JAX can do it")
    @parameterized.parameters(*BUILT_IN)
    def test_refuses_a_layout_on_other_backends(self, name):
        initializer, shape = make(name), SHAPES.get(name, SHAPE)
        self.assertEqual(initializer(shape, layout=None).shape, shape)
        with self.assertRaisesRegex(ValueError, "layout=.*model"):
            initializer(shape, layout=("model", None))


@pytest.mark.multi_device
@pytest.mark.skipif(backend.backend() != "jax", reason="JAX only")
class BuiltInValuesTest(testing.TestCase):
    def layout(self, shape, axis_type=None):
        mesh = jax.make_mesh(
            (2, jax.device_count() // 2),
            ("batch", "model"),
            (axis_type or AxisType.Auto,) * 2,
        )
        axes = ["batch", *[None] * (len(shape) - 2), "model"]
        return NamedSharding(mesh, PartitionSpec(*axes))

    def large(self, is_large=True):
        if not is_large:
            return contextlib.nullcontext()
        return mock.patch("keras.src.backend.jax.initialization.SMALL", -1)

    def assert_born(self, value, want, layout):
        self.assertEqual(value.sharding, layout)
        self.assertEqual(value.dtype, want.dtype)
        np.testing.assert_array_equal(np.asarray(value), np.asarray(want))

    @parameterized.product(
        name=[*BUILT_IN], is_large=[True, False], dtype=["float32", "bfloat16"]
    )
    def test_equal_values_in_a_layout(self, name, is_large, dtype):
        shape = SHAPES.get(name, SHAPE)
        if name == "Orthogonal":
            dtype = "float32"  # JAX factorizes no other.
        layout = self.layout(shape)
        want = make(name)(shape, dtype)
        with self.large(is_large):
            value = make(name)(shape, dtype, layout=layout)
            self.assert_born(value, want, layout)
            variable = backend.Variable(make(name), shape, dtype, layout=layout)
            self.assert_born(variable.value, want, layout)

    @parameterized.parameters(*BUILT_IN)
    def test_explicit_axes(self, name):
        shape = SHAPES.get(name, SHAPE)
        layout = self.layout(shape, AxisType.Explicit)
        for is_large in (True, False):
            with self.large(is_large), jax.set_mesh(layout.mesh):
                value = make(name)(shape, layout=layout.spec)
            self.assert_born(value, make(name)(shape), layout)

    @parameterized.parameters(*BUILT_IN)
    def test_inside_jit(self, name):
        shape = SHAPES.get(name, SHAPE)
        layout = self.layout(shape)
        value = jax.jit(lambda: make(name)(shape, layout=layout))()
        self.assertTrue(value.sharding.is_equivalent_to(layout, len(shape)))
        self.assertAllClose(value, make(name)(shape), rtol=1e-6, atol=1e-6)

    @parameterized.product(
        mode=["fan_in", "fan_out", "fan_avg"],
        distribution=["uniform", "truncated_normal", "untruncated_normal"],
        axes=[(None, None), ([0], [1, 2])],
    )
    def test_variance_scaling(self, mode, distribution, axes):
        shape = (16, 3, 24)
        layout = self.layout(shape)
        initializer = initializers.VarianceScaling(
            0.7, mode, distribution, 3, *axes
        )
        want = initializer(shape)
        self.assert_born(initializer(shape, layout=layout), want, layout)
        fan_in, fan_out = (16 * 3, 16 * 24) if axes[0] is None else (16, 72)
        fan = {"fan_in": fan_in, "fan_out": fan_out}.get(mode, 0)
        scale = 0.7 / (fan or (fan_in + fan_out) / 2)
        self.assertAllClose(np.var(want), scale, rtol=0.2)

    @parameterized.parameters(True, False)
    def test_constant_array_broadcasts(self, is_large):
        layout = self.layout(SHAPE)
        for value in (
            np.arange(24.0),
            np.arange(16.0)[:, None],
            np.arange(384.0).reshape(SHAPE),
            jnp.arange(24.0),
            list(range(24)),
        ):
            with self.large(is_large):
                born = initializers.Constant(value)(SHAPE, layout=layout)
            want = np.broadcast_to(np.asarray(value, "float32"), SHAPE)
            self.assert_born(born, want, layout)

    def test_generator_moves_on(self):
        layout = self.layout(SHAPE)
        for name in ("GlorotUniform", "Orthogonal", "RandomNormal"):
            cls = getattr(initializers, name)
            generators = [SeedGenerator(5), SeedGenerator(5)]
            for is_large in (True, False):
                with self.large(is_large):
                    value = cls(seed=generators[0])(SHAPE, layout=layout)
                want = cls(seed=generators[1])(SHAPE)
                self.assert_born(value, want, layout)
            np.testing.assert_array_equal(generators[0].state, [5, 2])

    @parameterized.parameters(True, False)
    def test_subclass_that_knows_no_layout(self, is_large):
        layout = self.layout(SHAPE)
        initializer = ScaledNormal(seed=3)
        with self.large(is_large):
            variable = backend.Variable(
                initializer, SHAPE, "float32", layout=layout
            )
        self.assert_born(variable.value, initializer(SHAPE), layout)

    def test_constant_values_need_no_scratch(self):
        for name in ("Zeros", "Ones", "Constant", "Identity", "STFT"):
            shape = {"STFT": (1024, 1, 1024)}.get(name, (1024, 1024))
            layout = self.layout(shape)
            make_it = jax.jit(lambda: make(name)(shape, layout=layout))
            memory = make_it.lower().compile().memory_analysis()
            shard = 2**22 / jax.device_count()
            self.assertLess(memory.output_size_in_bytes, 1.01 * shard)
            # The window and its frequencies are vectors.
            self.assertLess(memory.temp_size_in_bytes, 0.02 * shard)

    def test_errors_of_an_initializer_stay(self):
        for initializer, shape, message in (
            (initializers.Orthogonal(), (8,), "at least two-dimensional"),
            (initializers.Identity(), (2, 2, 2), "only be used for 2D"),
        ):
            axes = ("batch", *[None] * (len(shape) - 1))
            layout = NamedSharding(
                self.layout(SHAPE).mesh, PartitionSpec(*axes)
            )
            with self.assertRaisesRegex(ValueError, message):
                initializer(shape, layout=layout)

    @parameterized.parameters(*BUILT_IN)
    def test_refuses_what_does_not_fit(self, name):
        layout = self.layout(SHAPES.get(name, SHAPE))
        shape = (15, *SHAPES.get(name, SHAPE)[1:])
        with self.assertRaisesRegex(ValueError, "Dimension 0 of size 15"):
            make(name)(shape, layout=layout)
