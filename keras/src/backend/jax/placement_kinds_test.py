"""Host data of all kinds and dtypes gets into a layout, on all ways."""

import os
import tempfile

import h5py
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec

from keras.src import backend
from keras.src import layers
from keras.src import testing
from keras.src.backend.jax import placement
from keras.src.backend.jax.placement_test import SPECS
from keras.src.backend.jax.placement_test import make_mesh
from keras.src.backend.jax.placement_test import values
from keras.src.distribution import distribution_lib

pytestmark = [
    pytest.mark.multi_device,
    pytest.mark.skipif(
        backend.backend() != "jax", reason="tests the JAX backend"
    ),
]

DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int64", "bool"]
# HDF5 has no dtypes for these, and Keras no mark as for `bfloat16`.
NOT_IN_FILES = ["float8_e4m3fn", "float8_e5m2"]


def in_columns(array):
    wide = np.zeros((array.shape[0], 3 * array.shape[1]), array.dtype)
    wide[:, ::3] = array
    return wide[:, ::3]


def memory_mapped(array):
    with tempfile.NamedTemporaryFile() as file:
        array.tofile(file.name)
        return np.memmap(file.name, array.dtype, "r", shape=array.shape)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def big_endian(array):
    # Not for what NumPy itself does not know, as bfloat16.
    is_numpy = array.dtype.isbuiltin == 1
    return array.astype(array.dtype.newbyteorder(">")) if is_numpy else array


# The same values in other kinds of host data.
KINDS = {
    "plain": lambda array: array,
    "fortran": np.asfortranarray,
    "strided": in_columns,
    "reversed": lambda array: array[::-1, ::-1].copy()[::-1, ::-1],
    "broadcast": lambda array: np.broadcast_to(array[:1], array.shape),
    "memmap": memory_mapped,
    "read-only": read_only,
    "big-endian": big_endian,
    "list": lambda array: array.tolist(),
    "tuple of rows": tuple,
}


def assigned(value, shape, dtype, layout):
    variable = backend.Variable("zeros", shape, dtype, layout=layout)
    variable.assign(value)
    return variable.value


def created(value, shape, dtype, layout):
    return backend.Variable(value, dtype=dtype, layout=layout).value


def set_in_layer(value, shape, dtype, layout):
    layer = layers.Layer()
    layer.kernel = backend.Variable("zeros", shape, dtype, layout=layout)
    layer.set_weights([value])
    return layer.kernel.value


def distributed(value, shape, dtype, layout):
    return distribution_lib.distribute_tensor(value, layout)


class KindsTest(testing.TestCase):
    @settings(deadline=None, max_examples=100)
    @given(
        st.sampled_from([assigned, created, set_in_layer, distributed]),
        st.sampled_from(SPECS),
        st.sampled_from(DTYPES + NOT_IN_FILES),
        st.sampled_from(DTYPES + NOT_IN_FILES),
        st.sampled_from(list(KINDS)),
    )
    def test_casts_as_numpy(self, way, spec, stored, dtype, kind):
        shape = (8, 24)
        layout = NamedSharding(make_mesh(), PartitionSpec(*spec))
        given_value = KINDS[kind](values(shape, stored))
        array = np.asarray(given_value)
        if way is distributed:
            # Which lays out several arrays, each by itself.
            assume(kind != "tuple of rows")
            dtype = array.dtype
        elif way is set_in_layer:
            # Which takes a list of arrays.
            assume(hasattr(given_value, "shape"))
        dtype = np.dtype(dtype).newbyteorder("=")
        dtype = jax.dtypes.canonicalize_dtype(dtype)
        result = way(given_value, shape, dtype.name, layout)
        self.assertEqual(result.dtype, dtype)
        self.assertEqual(result.sharding, layout)
        np.testing.assert_array_equal(np.asarray(result), array.astype(dtype))
        for shard in result.addressable_shards:
            np.testing.assert_array_equal(
                np.asarray(shard.data), array[shard.index].astype(dtype)
            )

    @settings(deadline=None, max_examples=40)
    @given(
        st.sampled_from(SPECS),
        st.sampled_from(DTYPES),
        st.sampled_from(["float32", "bfloat16", "int8"]),
        st.booleans(),
    )
    def test_assigns_hdf5_datasets(self, spec, stored, dtype, chunked):
        shape = (16, 40)
        layout = NamedSharding(make_mesh(), PartitionSpec(*spec))
        variable = backend.Variable("zeros", shape, dtype, layout=layout)
        array = values(shape, stored)
        path = os.path.join(self.get_temp_dir(), "values.h5")
        with h5py.File(path, "w") as file:
            dataset = file.create_dataset(
                "a", data=array, chunks=(3, 7) if chunked else None
            )
            if stored == "bfloat16":
                dataset.attrs["dtype"] = "bfloat16"
        with h5py.File(path, "r") as file:
            variable.assign(file["a"])
        np.testing.assert_array_equal(
            np.asarray(variable.value), array.astype(dtype)
        )


class OtherFrameworksTest(testing.TestCase):
    def check(self, tensors, arrays):
        mesh = make_mesh()
        for tensor, array in zip(tensors, arrays, strict=True):
            for spec in SPECS[-2:]:
                layout = NamedSharding(mesh, PartitionSpec(*spec))
                for way in (assigned, created, set_in_layer, distributed):
                    name = jax.dtypes.canonicalize_dtype(array.dtype).name
                    result = way(tensor, array.shape, name, layout)
                    self.assertEqual(result.sharding, layout)
                    np.testing.assert_array_equal(
                        np.asarray(result), array.astype(name)
                    )

    def test_pytorch(self):
        torch = pytest.importorskip("torch")
        arrays, tensors = [], []
        for dtype in ("float32", "float64", "bfloat16", "int8", "bool"):
            array = values((16, 16), "float32").astype(dtype)
            tensor = torch.from_numpy(array.astype("float32"))
            tensor = tensor.to(getattr(torch, dtype))
            for part in (np.s_[:, :], np.s_[::2, ::2]):
                arrays += [array[part], array[part].T]
                tensors += [tensor[part], tensor[part].T]
        self.check(tensors, arrays)

    def test_tensorflow(self):
        tf = pytest.importorskip("tensorflow")
        arrays = [values((8, 16), dtype) for dtype in DTYPES + NOT_IN_FILES]
        tensors = [tf.constant(array) for array in arrays]
        self.check(tensors, arrays)
        self.check([tf.Variable(tensors[0])], arrays[:1])


class HostDataTest(testing.TestCase):
    def test_what_is_host_data(self):
        for value in (np.ones(3), [1, 2], (1.0,), 3, np.float32(2), [[True]]):
            self.assertIsNotNone(placement.as_host_data(value))
        variable = backend.Variable([1.0])
        for value in (jnp.ones(3), [jnp.ones(())], variable, object(), {}):
            self.assertIsNone(placement.as_host_data(value))

    def test_tensors_of_other_frameworks(self):
        class Tensor:
            """As PyTorch's `bfloat16`, which NumPy refuses."""

            def __init__(self, array):
                self._array = jnp.asarray(array)

            def __array__(self, *args, **kwargs):
                raise TypeError("Got unsupported ScalarType BFloat16")

            def __dlpack__(self, *args, **kwargs):
                return self._array.__dlpack__(*args, **kwargs)

            def __dlpack_device__(self):
                return self._array.__dlpack_device__()

        array = values((4, 8), "bfloat16")
        host_data = placement.as_host_data(Tensor(array))
        self.assertEqual(host_data.dtype, ml_dtypes.bfloat16)
        np.testing.assert_array_equal(host_data, array)
