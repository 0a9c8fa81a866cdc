import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from absl.testing import parameterized
from jax.sharding import AxisType
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec
from jax.sharding import SingleDeviceSharding

from keras.src import backend
from keras.src import layers
from keras.src import models
from keras.src import ops
from keras.src import testing
from keras.src.models.model import model_from_json
from keras.src.testing.test_utils import named_product

pytestmark = [
    pytest.mark.multi_device,
    pytest.mark.skipif(
        backend.backend() != "jax", reason="tests the JAX backend"
    ),
]

DTYPES = ("bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32")
DTYPES += ("float8_e4m3fn", "complex64")
AXIS_TYPES = ("Auto", "Explicit", "Mixed")
# Calls of each op that give a result of shape (16, 8).
MATRICES = {
    "zeros": [((16, 8),), ([16, 8],)],
    "ones": [((16, 8),), ((np.int64(16), 8),)],
    "empty": [((16, 8),)],
    "full": [
        ((16, 8), 1.7),
        ((16, 8), -3),
        ((16, 8), 300),
        ((16, 8), True),
        ((16, 8), np.float32(0.3)),
        ((16, 8), np.arange(8)),
        ((16, 8), np.arange(16.0)[:, None]),
    ],
    "eye": [(16, 8), (16, 8, 3), (16, 8, -9), (16, 8, 2**40), (16, 8, -100)],
}
# Calls of `arange` for a result of shape (16,).
RANGES = [
    (16,),
    (16.0,),
    (2, 18),
    (0.5, 16.5),
    (-5.5, 10),
    (16, None, 1),
    (0, 32, 2),
    (0.3, 48.2, 3.1),
    (5, -11, -1),
    (3, 3.8, 0.05),
    (np.int8(3), np.int8(19)),
    (np.float32(0.1), np.float32(17.0), np.float32(1.1)),
]


def make_mesh(axis_type="Auto"):
    if axis_type == "Mixed":
        types = (AxisType.Explicit, AxisType.Auto)
    else:
        types = (getattr(AxisType, axis_type),) * 2
    return jax.make_mesh((2, 4), ("batch", "model"), axis_types=types)


def sharded(*axes, axis_type="Auto"):
    return NamedSharding(make_mesh(axis_type), PartitionSpec(*axes))


@contextlib.contextmanager
def compilations():
    """Collects an item for each program that is compiled."""
    compiled = []

    def listen(event, *_, **__):
        if event.endswith("backend_compile_duration"):
            compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield compiled
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


class FillsTest(testing.TestCase):
    def assert_same(self, actual, expected):
        self.assertEqual(actual.dtype, expected.dtype)
        self.assertEqual(actual.shape, expected.shape)
        actual, expected = np.asarray(actual), np.asarray(expected)
        self.assertEqual(actual.tobytes(), expected.tobytes())

    def assert_laid_out(self, array, layout):
        self.assertTrue(array.sharding.is_equivalent_to(layout, array.ndim))

    @parameterized.named_parameters(
        named_product(name=list(MATRICES), dtype=DTYPES)
    )
    def test_matrices(self, name, dtype):
        layouts = [
            sharded("batch", "model"),
            sharded(None, ("model", "batch"), axis_type="Explicit"),
            sharded(),
            SingleDeviceSharding(jax.devices()[3]),
        ]
        for arguments in MATRICES[name]:
            if name == "eye":
                n, m, *k = arguments
                expected = jnp.eye(n, m, *k, dtype=dtype)
            else:
                expected = getattr(jnp, name)(*arguments, dtype=dtype)
            op = getattr(ops, name)
            self.assert_same(op(*arguments, dtype=dtype), expected)
            for layout in layouts:
                actual = op(*arguments, dtype=dtype, layout=layout)
                self.assert_same(actual, expected)
                self.assert_laid_out(actual, layout)

    @parameterized.named_parameters(named_product(dtype=(None, *DTYPES[1:])))
    def test_arange(self, dtype):
        layouts = [
            sharded(("batch", "model")),
            sharded("model", axis_type="Explicit"),
            sharded(),
            SingleDeviceSharding(jax.devices()[3]),
        ]
        for arguments in RANGES:
            expected = ops.arange(*arguments, dtype=dtype)
            self.assertEqual(expected.shape, (16,))
            if dtype:
                self.assert_same(expected, jnp.arange(*arguments, dtype=dtype))
            for layout in layouts:
                actual = ops.arange(*arguments, dtype=dtype, layout=layout)
                self.assert_same(actual, expected)
                self.assert_laid_out(actual, layout)
            if all(isinstance(x, np.generic) for x in arguments):
                on_device = map(jnp.array, arguments)
                actual = ops.arange(*on_device, dtype=dtype, layout=layouts[0])
                self.assert_same(actual, expected)

    @parameterized.named_parameters(
        named_product(axis_type=AXIS_TYPES, dtype=DTYPES[1:-1])
    )
    def test_long_arange(self, axis_type, dtype):
        # A count in a type of few bits, partitioned by XLA, would be wrong.
        layout = sharded("model", axis_type=axis_type)
        expected = jnp.arange(4096, dtype=dtype)
        self.assert_same(ops.arange(4096, dtype=dtype, layout=layout), expected)
        traced = jax.jit(lambda: ops.arange(4096, dtype=dtype, layout=layout))
        self.assert_same(traced(), expected)

    def test_identity(self):
        layout = sharded("batch", "model")
        actual = ops.identity(8, dtype="bfloat16", layout=layout)
        self.assert_same(actual, jnp.identity(8, dtype="bfloat16"))
        self.assert_laid_out(actual, layout)

    def test_default_dtype(self):
        layout = sharded("model")
        backend.set_floatx("float16")
        try:
            for op in (ops.zeros, ops.ones, ops.empty):
                self.assertEqual(op((8,), layout=layout).dtype, "float16")
            self.assertEqual(ops.full((8,), 2, layout=layout).dtype, "float16")
            self.assertEqual(ops.eye(8, layout=layout).dtype, "float16")
        finally:
            backend.set_floatx("float32")

    @parameterized.named_parameters(
        ("partition_spec", PartitionSpec("batch", "model")),
        ("axes", ("batch", None)),
        ("axes_in_a_tuple", (("batch", "model"),)),
    )
    def test_layouts_on_the_mesh_in_context(self, layout):
        for axis_type in AXIS_TYPES:
            with jax.set_mesh(make_mesh(axis_type)):
                ones = ops.ones((16, 8), layout=layout)
                range_ = ops.arange(8, layout=layout[:1])
            self.assert_same(ones, jnp.ones((16, 8)))
            self.assert_laid_out(ones, sharded(*layout))
            self.assert_laid_out(range_, sharded(*layout[:1]))

    @parameterized.named_parameters(
        named_product(axis_type=AXIS_TYPES, in_context=(True, False))
    )
    def test_inside_transformations(self, axis_type, in_context):
        layout = sharded("batch", "model", axis_type=axis_type)
        vector = sharded("model", axis_type=axis_type)

        def make():
            return (
                ops.full((8, 4), 0.3, layout=layout),
                ops.eye(8, 4, k=1, layout=layout),
                ops.arange(0.3, 8, layout=vector),
            )

        def with_value(x):
            return ops.full((8, 4), x, layout=layout)

        context = contextlib.nullcontext()
        if in_context:
            context = jax.set_mesh(make_mesh(axis_type))
        with context:
            made = jax.jit(make)()
            shapes = jax.eval_shape(make)
            filled = jax.vmap(with_value)(jnp.arange(3.0))
        expected = (jnp.full((8, 4), 0.3), jnp.eye(8, 4, 1), jnp.arange(0.3, 8))
        for i, array in enumerate(expected):
            self.assert_same(made[i], array)
            self.assertEqual(shapes[i].shape, array.shape)
            self.assertEqual(shapes[i].dtype, array.dtype)
        self.assert_laid_out(made[0], layout)
        self.assert_laid_out(made[2], vector)
        self.assert_same(
            filled, jax.vmap(lambda x: jnp.full((8, 4), x))(jnp.arange(3.0))
        )
        batched = sharded(None, "batch", "model", axis_type=axis_type)
        self.assert_laid_out(filled, batched)

    def test_no_dimensions_and_no_elements(self):
        for axis_type in AXIS_TYPES:
            whole = sharded(axis_type=axis_type)
            halves = sharded("batch", "model", axis_type=axis_type)
            self.assert_same(ops.full((), 3, layout=whole), jnp.full((), 3.0))
            self.assert_same(ops.zeros(8, layout=whole), jnp.zeros(8))
            empty = ops.full((0, 8), 3, layout=halves)
            self.assert_same(empty, jnp.full((0, 8), 3.0))
            self.assert_laid_out(empty, halves)
            self.assertEqual(ops.eye(8, 0, layout=halves).shape, (8, 0))
            for stop in (0, -3):
                self.assertEqual(ops.arange(stop, layout=whole).shape, (0,))

    @parameterized.named_parameters(
        named_product(
            axis_type=("Auto", "Explicit"),
            dtype=("float32", "bfloat16", "bool"),
        )
    )
    def test_no_scratch_memory(self, axis_type, dtype):
        matrix = sharded("batch", "model", axis_type=axis_type)
        vector = sharded(("batch", "model"), axis_type=axis_type)
        size = 2**22
        makers = [
            lambda: ops.full((2048, 2048), 1, dtype=dtype, layout=matrix),
            lambda: ops.eye(2048, k=5, dtype=dtype, layout=matrix),
        ]
        if dtype != "bool":
            makers += [
                lambda: ops.arange(size, dtype=dtype, layout=vector),
                lambda: ops.arange(1, size + 1, 1, dtype, layout=vector),
            ]
        for make in makers:
            with jax.set_mesh(make_mesh(axis_type)):
                memory = jax.jit(make).lower().compile().memory_analysis()
            shard = size // 8 * jnp.dtype(dtype).itemsize
            self.assertEqual(memory.output_size_in_bytes, shard)
            self.assertLess(memory.temp_size_in_bytes, 1024)

    def test_values_are_arguments_of_the_programs(self):
        layout = sharded("batch", "model")
        vector = sharded("model")

        def fill(value):
            ops.full((24, 16), value, layout=layout)
            ops.eye(24, 16, k=value, layout=layout)
            ops.arange(value, value + 24, dtype="float32", layout=vector)
            ops.arange(3 * value, 3 * value + 48, 2, "float32", layout=vector)

        fill(1)
        with compilations() as compiled:
            fill(2)
            ops.zeros((24, 16), layout=layout)
            ops.ones((24, 16), layout=layout)
            ops.empty((24, 16), layout=layout)
            ops.full((24, 16), 0.25, layout=layout)
            ops.full((24, 16), True, layout=layout)
            self.assertEqual(compiled, [])
            ops.full((24, 16), 2, "int32", layout=layout)
            self.assertLen(compiled, 1)

    @parameterized.named_parameters(("alone", ()), ("laid_out", ("batch",)))
    def test_small_variables_share_programs(self, axes):
        layout = sharded(*axes) if axes else None

        def initialize(initializer, shape, dtype):
            return backend.Variable(
                initializer, shape=shape, dtype=dtype, layout=layout
            ).value

        dtypes = ("float32", "bfloat16", "int32", "bool")
        for dtype in dtypes:
            initialize("zeros", (2, 3), dtype)
        values = {}
        with compilations() as compiled:
            for dtype in dtypes:
                for name in ("zeros", "ones"):
                    values[name, dtype] = initialize(name, (14, 11), dtype)
        self.assertEqual(compiled, [])
        for (name, dtype), value in values.items():
            self.assert_same(value, getattr(jnp, name)((14, 11), dtype))
            if layout:
                self.assert_laid_out(value, layout)

    def test_initializers_may_fill_other_shapes(self):
        def initializer(shape, dtype):
            tail = ops.concatenate([ops.ones(3), ops.arange(2, 7, 0.3)[:13]])
            return ops.eye(*shape, k=1, dtype=dtype) + tail

        expected = jnp.eye(8, 16, 1) + jnp.concatenate(
            [jnp.ones(3), jnp.arange(2, 7, 0.3)[:13]]
        )
        for layout in (None, sharded("batch", "model")):
            value = backend.Variable(
                initializer, shape=(8, 16), layout=layout
            ).value
            self.assert_same(value, expected)

    @parameterized.named_parameters(("alone", ()), ("laid_out", ("batch",)))
    def test_large_initial_values(self, axes):
        # These are not made on the host.
        layout = sharded(*axes) if axes else None
        shape = (2050, 2050)
        value = backend.Variable("ones", shape=shape, layout=layout).value
        self.assert_same(value, jnp.ones(shape))

        def initializer(shape, dtype):
            column = ops.arange(0.3, 206, 0.1, dtype=dtype)[: shape[0], None]
            return ops.eye(*shape, dtype=dtype) * column

        value = backend.Variable(initializer, shape=shape, layout=layout).value
        column = jnp.arange(0.3, 206, 0.1)[: shape[0], None]
        self.assert_same(value, jnp.eye(*shape) * column)
        if axes:
            self.assert_laid_out(value, layout)

    def test_symbolic_calls(self):
        layout = sharded("batch", "model")
        scale = layers.Input((), batch_size=1)
        outputs = ops.full((8, 4), ops.sum(scale), layout=layout)
        model = models.Model(scale, outputs)
        result = model(np.array([2.5], "float32"))
        self.assert_same(result, jnp.full((8, 4), 2.5))
        self.assert_laid_out(result, layout)
        # A layout is for these devices, so it is not saved.
        full = outputs._keras_history.operation
        self.assertIs(full.layout, layout)
        config = full.get_config()
        self.assertEqual(set(config), {"name", "shape", "dtype"})
        again = model_from_json(model.to_json())
        self.assert_same(again(np.array([2.5], "float32")), result)

    @parameterized.named_parameters(named_product(axis_type=AXIS_TYPES))
    def test_unknown_dimensions(self, axis_type):
        rows = sharded("batch", axis_type=axis_type)

        class Steps(layers.Layer):
            def call(self, inputs):
                size = ops.shape(inputs)[0]
                steps = ops.arange(size, layout=rows)
                return steps, ops.full((size, 4), 3, layout=rows)

        inputs = layers.Input((4,))
        with jax.set_mesh(make_mesh(axis_type)):
            steps, full = Steps()(inputs)
        self.assertEqual(steps.shape, (None,))
        self.assertEqual(full.shape, (None, 4))
        steps, full = models.Model(inputs, [steps, full])(np.zeros((6, 4)))
        self.assert_same(steps, jnp.arange(6))
        self.assert_same(full, jnp.full((6, 4), 3.0))
        self.assert_laid_out(steps, rows)

    def test_errors(self):
        layout = sharded("batch", "model")
        for make in (
            lambda: ops.zeros((8, 6), layout=layout),
            lambda: ops.full((8, 6), 1, layout=layout),
            lambda: ops.eye(8, 6, layout=layout),
        ):
            with self.assertRaisesRegex(
                ValueError, r"Dimension 1 of size 6 .*'model'.*shape=\(8, 6\)"
            ):
                make()
        with self.assertRaisesRegex(ValueError, "does not fit a tensor of 1"):
            ops.arange(8, layout=layout)
        with self.assertRaisesRegex(TypeError, "'float' object"):
            ops.ones((8.0, 4), layout=layout)
        with self.assertRaisesRegex(TypeError, "ndarray or scalar"):
            ops.full((8, 4), [1, 2, 3, 4], layout=layout)
        with self.assertRaisesRegex(
            jax.errors.ConcretizationTypeError, "'stop'"
        ):
            jax.jit(lambda n: ops.arange(n, layout=sharded("model")))(8)
