import contextlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from absl.testing import parameterized
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from jax.experimental.layout import Format
from jax.experimental.layout import Layout
from jax.sharding import AbstractMesh
from jax.sharding import AxisType
from jax.sharding import Mesh
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec
from jax.sharding import SingleDeviceSharding

from keras.src import backend
from keras.src import testing
from keras.src.backend.jax import layouts
from keras.src.distribution import distribution_lib

pytestmark = [
    pytest.mark.multi_device,
    pytest.mark.skipif(
        backend.backend() != "jax", reason="tests the JAX backend"
    ),
]

SHAPE = (16, 24)
SPEC = PartitionSpec("batch", "model")
AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit


def make_mesh(axis_type=AUTO):
    return jax.make_mesh((2, 4), ("batch", "model"), (axis_type,) * 2)


def device_mesh():
    return distribution_lib.DeviceMesh((2, 4), ("batch", "model"))


def in_mesh(mesh):
    return contextlib.nullcontext() if mesh is None else jax.set_mesh(mesh)


def in_distribution():
    layout_map = distribution_lib.LayoutMap(device_mesh())
    return distribution_lib.ModelParallel(layout_map=layout_map).scope()


def tensor_layout(*axes):
    return distribution_lib.TensorLayout(axes, device_mesh())


def as_gspmd(sharding):
    """What JAX says of arrays whose sharding only XLA knows."""
    from jax._src.sharding_impls import GSPMDSharding

    devices = tuple(sharding.mesh.devices.flat)
    return GSPMDSharding(devices, sharding._to_xla_hlo_sharding(len(SHAPE)))


# Each entry makes the same sharding of another kind of layout.
KINDS = {
    "TensorLayout": lambda: tensor_layout("batch", "model"),
    "NamedSharding": lambda: NamedSharding(make_mesh(), SPEC),
    "explicit axes": lambda: NamedSharding(make_mesh(EXPLICIT), SPEC),
    "Format": lambda: Format(None, NamedSharding(make_mesh(), SPEC)),
    "GSPMD": lambda: as_gspmd(NamedSharding(make_mesh(), SPEC)),
}
# These have no mesh of their own.
KINDS_WITHOUT_MESH = {
    "TensorLayout": lambda: distribution_lib.TensorLayout(("batch", "model")),
    "PartitionSpec": lambda: SPEC,
    "tuple": lambda: ("batch", "model"),
    "abstract mesh": lambda: NamedSharding(make_mesh().abstract_mesh, SPEC),
    "explicit abstract mesh": lambda: NamedSharding(
        make_mesh(EXPLICIT).abstract_mesh, SPEC
    ),
}


class LayoutsTest(testing.TestCase):
    def assert_usable(self, layout, axis_type=None):
        """Puts an array in a layout, eagerly and while tracing."""
        sharding = layouts.to_sharding(layout, SHAPE, "path")
        indices = sharding.addressable_devices_indices_map(SHAPE)
        wanted = NamedSharding(make_mesh(), SPEC)
        self.assertEqual(indices, wanted.addressable_devices_indices_map(SHAPE))
        if axis_type is not None:
            self.assertEqual(sharding.mesh.axis_types, (axis_type,) * 2)

        def fill():
            return backend.numpy.ones(SHAPE, layout=layout)

        for value in (fill(), jax.jit(fill)()):
            self.assertTrue(value.sharding.is_equivalent_to(wanted, 2))

    @parameterized.product(
        kind=[*KINDS],
        context=[None, AUTO, EXPLICIT],
        distribution=[True, False],
    )
    def test_kind(self, kind, context, distribution):
        layout = KINDS[kind]()
        axis_type = None if kind == "GSPMD" else context
        with contextlib.ExitStack() as stack:
            if context is not None:
                stack.enter_context(jax.set_mesh(make_mesh(context)))
            if distribution:
                stack.enter_context(in_distribution())
            self.assert_usable(layout, axis_type)

    @parameterized.product(
        kind=[*KINDS_WITHOUT_MESH], context=[None, AUTO, EXPLICIT]
    )
    def test_kind_without_mesh(self, kind, context):
        layout = KINDS_WITHOUT_MESH[kind]()
        where = (
            in_distribution()
            if context is None
            else jax.set_mesh(make_mesh(context))
        )
        with where:
            self.assert_usable(layout, context)

    def test_none(self):
        self.assertIsNone(layouts.to_sharding(None, SHAPE))
        self.assertIsNone(layouts.with_mesh(None, SHAPE))

    def test_one_device(self):
        sharding = SingleDeviceSharding(jax.devices()[3])
        self.assertIs(layouts.to_sharding(sharding, SHAPE), sharding)

    def test_the_context_comes_before_the_distribution(self):
        mesh = jax.make_mesh((8,), ("model",), (AUTO,))
        with in_distribution(), jax.set_mesh(mesh):
            sharding = layouts.to_sharding(("model",), SHAPE)
        self.assertEqual(sharding.mesh, mesh)

    def test_a_mesh_of_its_own_comes_before_the_context(self):
        other = jax.make_mesh((8,), ("model",), (EXPLICIT,))
        layout = NamedSharding(make_mesh(), SPEC)
        with jax.set_mesh(other):
            self.assertEqual(layouts.to_sharding(layout, SHAPE), layout)
            value = backend.random.normal(SHAPE, seed=1, layout=layout)
        self.assertEqual(value.sharding, layout)

    def test_without_a_context_traced_axes_are_auto(self):
        layout = NamedSharding(make_mesh(EXPLICIT), SPEC)

        def shards():
            sharding = layouts.to_sharding(layout, SHAPE)
            self.assertEqual(sharding.mesh.axis_types, (AUTO,) * 2)
            return jnp.zeros(())

        jax.jit(shards)()

    @parameterized.parameters(
        (("batch",), PartitionSpec("batch")),
        ((None, "model"), PartitionSpec(None, "model")),
        ((("batch", "model"), None), PartitionSpec(("batch", "model"), None)),
        ((None, ("model", "batch")), PartitionSpec(None, ("model", "batch"))),
        ((("batch",), ()), PartitionSpec("batch", None)),
        ((), PartitionSpec()),
    )
    def test_tuple_of_axis_names(self, axes, spec):
        without_mesh = distribution_lib.TensorLayout(axes)
        for layout in (axes, PartitionSpec(*axes), without_mesh):
            with jax.set_mesh(make_mesh()):
                sharding = layouts.to_sharding(layout, SHAPE)
            self.assertEqual(sharding.spec, spec)

    def test_unconstrained_dimensions(self):
        spec = PartitionSpec(PartitionSpec.UNCONSTRAINED, "model")
        layout = NamedSharding(make_mesh(), spec)
        sharding = layouts.to_sharding(layout, SHAPE)
        self.assertEqual(sharding.spec, PartitionSpec(None, "model"))
        for op in (backend.random.normal, backend.numpy.ones):

            def make():
                return op(SHAPE, layout=layout, **seed)

            seed = {"seed": 1} if op is backend.random.normal else {}
            self.assertEqual(make().sharding, sharding)
            np.testing.assert_array_equal(make(), jax.jit(make)())
        # While JAX traces, it is up to the compiler what they become.
        jax.jit(
            lambda: self.assertIs(
                layouts.to_sharding(layout, SHAPE).spec, layout.spec
            )
        )()

    @parameterized.parameters(AUTO, EXPLICIT)
    def test_memory_kind(self, context):
        layout = NamedSharding(make_mesh(), SPEC, memory_kind="pinned_host")
        with jax.set_mesh(make_mesh(context)):
            sharding = layouts.to_sharding(layout, SHAPE)
        self.assertEqual(sharding.memory_kind, "pinned_host")
        value = backend.random.normal(SHAPE, seed=1, layout=layout)
        self.assertEqual(value.sharding.memory_kind, "pinned_host")

    def test_memory_order(self):
        order = Layout((1, 0))
        layout = Format(order, NamedSharding(make_mesh(), SPEC))
        self.assertEqual(layouts.memory_order(layout), order)
        self.assertIsNone(layouts.memory_order(layout.sharding))
        variable = backend.Variable("ones", SHAPE, layout=layout)
        self.assertEqual(variable.value.format.layout.major_to_minor, (1, 0))
        self.assertEqual(variable.value.sharding, layout.sharding)

    def test_replicated(self):
        for kind in KINDS.values():
            sharding = layouts.replicated(layouts.to_sharding(kind(), SHAPE))
            self.assertTrue(sharding.is_fully_replicated)
            self.assertLen(sharding.device_set, 8)
        one = SingleDeviceSharding(jax.devices()[3])
        self.assertIs(layouts.replicated(one), one)

    def test_with_mesh(self):
        for kind in KINDS.values():
            layout = kind()
            self.assertIs(layouts.with_mesh(layout, SHAPE), layout)
        for kind in KINDS_WITHOUT_MESH.values():
            with jax.set_mesh(make_mesh()):
                layout = layouts.with_mesh(kind(), SHAPE)
            self.assertEqual(layout, NamedSharding(make_mesh(), SPEC))

    @settings(deadline=None, max_examples=200)
    @given(st.data())
    def test_any_layout_is_used_or_refused(self, data):
        sizes = data.draw(st.sampled_from([(8,), (2, 4), (2, 1, 4), (2, 2)]))
        names = tuple("abcd"[: len(sizes)])
        devices = np.array(jax.devices()[: np.prod(sizes)]).reshape(sizes)
        mesh = Mesh(devices, names)
        axis = st.sampled_from(names + ("z",))
        entry = st.one_of(
            st.none(), axis, st.lists(axis, max_size=2).map(tuple)
        )
        axes = data.draw(st.lists(entry, max_size=3))
        dimension = st.sampled_from([0, 1, 2, 3, 4, 6, 8, 16])
        shape = data.draw(st.lists(dimension, max_size=3).map(tuple))
        try:
            if len(axes) > len(shape):
                raise ValueError("JAX takes (None,) for a scalar.")
            wanted = NamedSharding(mesh, PartitionSpec(*axes))
            shard_shape = wanted.shard_shape(shape)
        except Exception:  # JAX has one of its own for an axis used twice.
            shard_shape = None
        with jax.set_mesh(mesh):
            if shard_shape is None:
                with self.assertRaisesRegex(ValueError, "Received: .*mesh="):
                    layouts.to_sharding(tuple(axes), shape)
                return
            sharding = layouts.to_sharding(tuple(axes), shape)
        self.assertEqual(sharding.shard_shape(shape), shard_shape)
        self.assertEqual(sharding, wanted)


class LayoutErrorsTest(testing.TestCase):
    def assert_refuses(self, message, layout, shape=SHAPE, mesh=True):
        """Checks the message, of the resolver and of a variable."""
        received = "Received: path='layer/kernel', shape="
        with in_mesh(make_mesh() if mesh else None):
            with self.assertRaisesRegex(ValueError, message) as caught:
                layouts.to_sharding(layout, shape, "layer/kernel")
            self.assertIn(received + str(shape), str(caught.exception))
            self.assertIn("layout=", str(caught.exception))
            if mesh:
                self.assertIn("mesh=(batch=2, model=4)", str(caught.exception))
            for value in ("zeros", np.zeros(shape), jnp.zeros(shape)):
                with self.assertRaisesRegex(ValueError, message) as caught:
                    backend.Variable(value, shape, name="w", layout=layout)
                self.assertIn("path='w', shape=", str(caught.exception))

    def test_wrong_rank(self):
        message = "2 entries does not fit a tensor of 1 dimensions"
        for layout in (
            ("model", None),
            SPEC,
            NamedSharding(make_mesh(), SPEC),
            tensor_layout("model", None),
        ):
            self.assert_refuses(message, layout, (16,))
            self.assert_refuses("2 entries.* of 0 dimensions", layout, ())

    def test_unknown_axis(self):
        for layout in (("data", None), PartitionSpec("data")):
            self.assert_refuses("The mesh has no axis 'data'", layout)
        self.assert_refuses("no axis 'data'", (("batch", "data"),))
        self.assert_refuses("no axis 3", (3,))

    def test_axis_that_is_used_twice(self):
        for axes in (("model", "model"), (("model", "model"), None)):
            self.assert_refuses(
                "mesh axis 'model' can shard one dimension only", axes
            )

    @parameterized.parameters(
        ((15, 24), 0, 15, 2, "'batch'"), ((16, 6), 1, 6, 4, "'model'")
    )
    def test_indivisible(self, shape, dimension, size, parts, axis):
        message = (
            f"Dimension {dimension} of size {size} cannot be split into the "
            f"{parts} equal parts that mesh axis {axis} asks for"
        )
        self.assert_refuses(message, ("batch", "model"), shape)
        self.assert_refuses(message, NamedSharding(make_mesh(), SPEC), shape)
        self.assert_refuses(message, tensor_layout("batch", "model"), shape)

    def test_indivisible_by_several_axes(self):
        self.assert_refuses(
            "size 12 cannot be split into the 8 equal parts that mesh axis "
            r"'batch' \* 'model' asks for",
            (("batch", "model"),),
            (12, 4),
        )

    def test_indivisible_numpy_size(self):
        with jax.set_mesh(make_mesh()):
            with self.assertRaisesRegex(ValueError, "cannot be split"):
                layouts.to_sharding(("batch",), (np.int64(15), 4))

    def test_indivisible_on_devices_without_axes(self):
        layout = as_gspmd(NamedSharding(make_mesh(), SPEC))
        self.assert_refuses(
            "layout does not fit the shape", layout, (15, 24), mesh=False
        )

    def test_no_mesh(self):
        for layout in (
            ("model",),
            PartitionSpec("model"),
            distribution_lib.TensorLayout(("model", None)),
        ):
            self.assert_refuses(
                "A layout without a mesh needs one", layout, mesh=False
            )

    def test_no_mesh_of_data_parallel(self):
        with distribution_lib.DataParallel().scope():
            with self.assertRaisesRegex(ValueError, "no axis 'model'"):
                layouts.to_sharding(("model",), SHAPE)

    def test_abstract_mesh_that_nothing_is_known_of(self):
        mesh = AbstractMesh((2, 4), ("batch", "model"))
        layout = NamedSharding(mesh, SPEC)
        message = "on an abstract mesh, and neither the mesh in context"
        with self.assertRaisesRegex(ValueError, message) as caught:
            layouts.to_sharding(layout, SHAPE)
        self.assertIn("mesh=(batch=2, model=4)", str(caught.exception))
        other = jax.make_mesh((4, 2), ("batch", "model"), (AUTO,) * 2)
        with jax.set_mesh(other):
            with self.assertRaisesRegex(ValueError, message):
                layouts.to_sharding(layout, SHAPE)

    @parameterized.parameters(
        ("model",), (3,), (["model"],), (np.zeros(3),), (object(),)
    )
    def test_wrong_kind(self, layout):
        self.assert_refuses(
            "`layout` must be a `keras.distribution.TensorLayout`, a "
            f"`jax.sharding.Sharding`.*layout={re.escape(str(layout))}",
            layout,
            mesh=False,
        )

    @parameterized.parameters(
        ((1.5,),),
        ((object(),),),
        (((("batch",), "model"),),),
        (([["model"]],),),
    )
    def test_entries_of_a_wrong_kind(self, layout):
        with jax.set_mesh(make_mesh()):
            with self.assertRaisesRegex(ValueError, "Received: .*mesh="):
                layouts.to_sharding(layout, SHAPE)
