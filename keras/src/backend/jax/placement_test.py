import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from jax.experimental.layout import Format
from jax.experimental.layout import Layout
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec
from jax.sharding import SingleDeviceSharding

from keras.src import backend
from keras.src import layers
from keras.src import testing
from keras.src.backend.jax import placement
from keras.src.distribution import distribution_lib

pytestmark = [
    pytest.mark.multi_device,
    pytest.mark.skipif(
        backend.backend() != "jax", reason="tests the JAX backend"
    ),
]

SPECS = [
    (),
    ("rows",),
    (None, "columns"),
    ("rows", "columns"),
    ("columns", "rows"),
    (("rows", "columns"), None),
    (None, ("columns", "rows")),
]


def make_mesh():
    return jax.make_mesh((2, 4), ("rows", "columns"))


def values(shape, dtype, order="C"):
    array = np.arange(np.prod(shape)).reshape(shape) % 113 - 7
    return np.asarray(array / 3, order=order).astype(dtype)


class PlacementTest(testing.TestCase):
    def test_scalars(self):
        layout = NamedSharding(make_mesh(), PartitionSpec())
        variable = backend.Variable(0, dtype="int32", layout=layout)
        self.assertEqual(variable.value.sharding, layout)
        for value in (3, np.int64(3), np.array(3), 3.7):
            returned = variable.assign(value)
            self.assertEqual(int(variable.value), 3)
            self.assertEqual(int(returned), 3)
            variable.assign(0)
        variable.assign_add(2)
        self.assertEqual(int(variable.value), 2)
        with self.assertRaises(OverflowError):
            variable.assign(2**40)
        self.assertEqual(int(variable.value), 2)

    def test_empty(self):
        layout = NamedSharding(make_mesh(), PartitionSpec("rows"))
        variable = backend.Variable(np.zeros((0, 4)), layout=layout)
        self.assertEqual(variable.value.shape, (0, 4))

    def test_later_changes_of_the_host_array_do_not_matter(self):
        for spec in SPECS:
            layout = NamedSharding(make_mesh(), PartitionSpec(*spec))
            array = np.ones((512, 512), "float32")
            variable = backend.Variable(array, layout=layout)
            array[:] = 2
            self.assertEqual(float(jnp.max(variable.value)), 1.0)
            variable.assign(array)
            array[:] = 3
            self.assertEqual(float(jnp.max(variable.value)), 2.0)

    def test_no_device_gets_more_than_its_part(self):
        layout = NamedSharding(make_mesh(), PartitionSpec("rows", "columns"))
        array = np.ones((512, 512), "float64")
        gc.collect()
        before = {id(x) for x in jax.live_arrays()}
        variable = backend.Variable(array, dtype="float32", layout=layout)
        variable.assign(array)
        new = [x for x in jax.live_arrays() if id(x) not in before]
        self.assertTrue(new)
        for live in new:
            for shard in live.addressable_shards:
                self.assertLessEqual(shard.data.nbytes, 512 * 512 * 4 // 8)

    def test_assign_puts_nothing_on_the_default_device(self):
        layout = NamedSharding(make_mesh(), PartitionSpec("rows", "columns"))
        variable = backend.Variable("zeros", (64, 64), layout=layout)
        seen = []
        place = jnp.asarray

        def asarray(*args, **kwargs):
            seen.append(args)
            return place(*args, **kwargs)

        jnp.asarray = asarray
        try:
            variable.assign(np.ones((64, 64)))
        finally:
            jnp.asarray = place
        self.assertEqual(seen, [])
        self.assertEqual(float(jnp.min(variable.value)), 1.0)

    def test_wrong_shape(self):
        layout = NamedSharding(make_mesh(), PartitionSpec("rows"))
        variable = backend.Variable("ones", (4, 6), layout=layout, name="w")
        for value in (np.zeros((3, 6)), np.zeros((4, 6, 1)), 1.0, [1.0, 2.0]):
            with self.assertRaisesRegex(ValueError, r"\(4, 6\).*path=w"):
                variable.assign(value)
        self.assertAllClose(variable.value, np.ones((4, 6)))

    def test_values_that_cannot_be_cast(self):
        layout = NamedSharding(make_mesh(), PartitionSpec("rows"))
        variable = backend.Variable("ones", (2,), layout=layout, name="w")
        for value in (np.array(["a", "b"]), np.array([{}, {}], object)):
            with self.assertRaisesRegex((TypeError, ValueError), "path='w'"):
                variable.assign(value)
        with self.assertRaisesRegex(ValueError, "could not convert string"):
            variable.assign("a")
        self.assertAllClose(variable.value, [1, 1])

    def test_text_for_a_new_variable(self):
        layout = NamedSharding(make_mesh(), PartitionSpec("rows"))
        with self.assertRaisesRegex(ValueError, "dtype=float32.*string to fl"):
            backend.Variable(
                np.array(["a", "b"]), dtype="float32", layout=layout
            )

    def test_layout_of_the_distribution(self):
        devices = distribution_lib.DeviceMesh((2, 4), ["batch", "model"])
        layout_map = distribution_lib.LayoutMap(devices)
        layout_map["kernel"] = (None, "model")
        distribution = distribution_lib.ModelParallel(
            layout_map=layout_map, batch_dim_name="batch"
        )
        with distribution.scope():
            variable = backend.Variable(np.ones((2, 8)), name="kernel")
            other = backend.Variable([1.0, 2.0], name="bias")
        self.assertEqual(
            variable.value.sharding.spec, PartitionSpec(None, "model")
        )
        self.assertTrue(other.value.sharding.is_fully_replicated)
        self.assertEqual(other.dtype, "float32")

    def test_set_weights(self):
        devices = distribution_lib.DeviceMesh((2, 4), ["batch", "model"])
        layout_map = distribution_lib.LayoutMap(devices)
        layout_map[".*kernel"] = (None, "model")
        distribution = distribution_lib.ModelParallel(
            layout_map=layout_map, batch_dim_name="batch"
        )
        with distribution.scope():
            layer = layers.Dense(8)
            layer.build((None, 3))
        weights = [values((3, 8), "float64"), values((8,), "float64")]
        layer.set_weights(weights)
        for variable, weight in zip(layer.weights, weights):
            np.testing.assert_array_equal(
                np.asarray(variable.value), weight.astype("float32")
            )
        self.assertEqual(
            layer.kernel.value.sharding.spec, PartitionSpec(None, "model")
        )


class DistributeTest(testing.TestCase):
    @settings(deadline=None, max_examples=30)
    @given(st.sampled_from(SPECS), st.sampled_from(SPECS))
    def test_reshards_what_is_on_devices(self, before, after):
        mesh, array = make_mesh(), values((8, 16), "float32")
        source = jax.device_put(
            array, NamedSharding(mesh, PartitionSpec(*before))
        )
        layout = NamedSharding(mesh, PartitionSpec(*after))
        result = placement.distribute(source, layout)
        self.assertTrue(result.sharding.is_equivalent_to(layout, 2))
        np.testing.assert_array_equal(np.asarray(result), array)

    def test_every_kind_of_layout(self):
        mesh, array = make_mesh(), values((8, 16), "float32")
        spec = PartitionSpec("rows", "columns")
        devices = distribution_lib.DeviceMesh((2, 4), ["rows", "columns"])
        column_major = Format(
            Layout(major_to_minor=(1, 0)), NamedSharding(mesh, spec)
        )
        for layout in (
            distribution_lib.TensorLayout(["rows", "columns"], devices),
            NamedSharding(mesh, spec),
            SingleDeviceSharding(jax.devices()[3]),
            column_major,
            spec,
            ("rows", "columns"),
        ):
            with jax.set_mesh(mesh):
                for source in (array, array.tolist(), jnp.asarray(array)):
                    result = distribution_lib.distribute_tensor(source, layout)
                    np.testing.assert_array_equal(np.asarray(result), array)
        result = distribution_lib.distribute_tensor(array, column_major)
        self.assertEqual(result.format.layout.major_to_minor, (1, 0))

    def test_structures(self):
        layout = NamedSharding(make_mesh(), PartitionSpec("rows"))
        a, b = values((4, 8), "float32"), values((2,), "int32")
        structure = {"a": a, "rest": [jnp.asarray(b), None, (a, jnp.ones(2))]}
        for lay_out in (
            lambda x: distribution_lib.distribute_tensor(x, layout),
            jax.jit(lambda x: distribution_lib.distribute_tensor(x, layout)),
        ):
            result = lay_out(structure)
            self.assertEqual(
                jax.tree.structure(result), jax.tree.structure(structure)
            )
            leaves = jax.tree.leaves(structure)
            for x, y in zip(jax.tree.leaves(result), leaves):
                self.assertTrue(x.sharding.is_equivalent_to(layout, x.ndim))
                np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
        numbers = distribution_lib.distribute_tensor([[1, 2], [3, 4]], layout)
        np.testing.assert_array_equal(np.asarray(numbers), [[1, 2], [3, 4]])

    def test_already_laid_out(self):
        layout = NamedSharding(make_mesh(), PartitionSpec("rows"))
        source = placement.distribute(np.ones((4, 4)), layout)
        self.assertIs(placement.distribute(source, layout), source)

    def test_traced(self):
        explicit = make_mesh()
        auto = jax.sharding.Mesh(explicit.devices, explicit.axis_names)
        array = values((4, 4), "float32")

        for mesh in (auto, explicit):
            layout = NamedSharding(mesh, PartitionSpec("rows"))

            @jax.jit
            def double(x):
                first = placement.distribute(x, layout)
                return first + placement.distribute(array, layout)

            with jax.set_mesh(mesh):
                result = double(array)
            np.testing.assert_array_equal(np.asarray(result), 2 * array)
            self.assertTrue(result.sharding.is_equivalent_to(layout, 2))

    def test_layout_that_does_not_fit(self):
        layout = NamedSharding(make_mesh(), PartitionSpec("rows"))
        with self.assertRaisesRegex(ValueError, "Dimension 0 of size 3"):
            placement.distribute(np.ones((3, 4)), layout)
