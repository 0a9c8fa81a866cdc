import copy
import os
import pickle
from unittest import mock

import h5py
import ml_dtypes
import numpy as np
import pytest

from keras.src import backend
from keras.src import ops
from keras.src import testing
from keras.src.backend.common.h5_array import H5Array
from keras.src.backend.common.stored_array import StoredArray

USES = {
    "asarray": np.asarray,
    "array": np.array,
    "cast": lambda x: np.asarray(x, "float16"),
    "astype": lambda x: x.astype("int32"),
    "attributes": lambda x: (x.T, x.nbytes, x.itemsize, x.flags.writeable),
    "methods": lambda x: (x.sum(), x.reshape(-1), x.max(axis=0), x.tolist()),
    "row": lambda x: x[1],
    "element": lambda x: x[1, 2],
    "slice": lambda x: x[:, ::-2],
    "mask": lambda x: x[x > 3],
    "iteration": list,
    "membership": lambda x: (3 in x, -1 in x),
    "arithmetic": lambda x: (x + 1) * 2 - x / 4 + x // 2 + x**2 - x % 3,
    "reflected": lambda x: 2.0 * (1 - x) / (2 + x) + 7 // (x + 1) + 2**x,
    "divmod": lambda x: divmod(x, 2) + divmod(7, x + 1),
    "of arrays": lambda x: np.ones((3, 4)) + x * np.arange(4.0) @ x.T[:, :1],
    "matrix product": lambda x: x.T @ x,
    "unary": lambda x: (-x, +x, abs(x)),
    "comparison": lambda x: (x < 3, x >= 3, x == 3, x != 3),
    "functions": lambda x: (np.sum(x), np.transpose(x), np.add(x, x)),
    "several": lambda x: (np.stack([x, x]), np.concatenate([x, x])),
    "text": lambda x: (repr(x), str(x), f"{x}"),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "copies": lambda x: (copy.copy(x), copy.deepcopy(x)),
    "number": lambda x: [float(x[0, 1:2][0]), int(x[2, 3]), bool(x[0, 0])],
}
OF_SCALARS = (
    int,
    float,
    complex,
    bool,
    str,
    lambda x: [0, 1, 2][x],
    "{}".format,
)


class StoredArrayTest(testing.TestCase):
    def stored(self, array):
        path = os.path.join(self.get_temp_dir(), "values.h5")
        with h5py.File(path, "w") as file:
            file["a"] = array
            if array.dtype == ml_dtypes.bfloat16:
                file["a"].attrs["dtype"] = "bfloat16"
        with h5py.File(path) as file:
            return StoredArray(H5Array(file["a"]))

    def test_is_used_like_the_array(self):
        array = np.arange(12.0).reshape(3, 4)
        for name, use in USES.items():
            expected, result = use(array), use(self.stored(array))
            if not isinstance(expected, (tuple, list)):
                expected, result = [expected], [result]
            self.assertEqual(len(expected), len(result), name)
            for a, b in zip(expected, result):
                self.assertIs(type(a), type(b), name)
                np.testing.assert_array_equal(a, b, err_msg=name)

    @pytest.mark.skipif(
        backend.backend() == "openvino", reason="takes no array-likes"
    )
    def test_is_taken_by_ops(self):
        array = np.arange(12.0).reshape(3, 4)
        transposed = ops.convert_to_numpy(ops.transpose(self.stored(array)))
        np.testing.assert_array_equal(transposed, array.T)

    def test_scalars_are_used_like_scalars(self):
        for use in OF_SCALARS:
            stored = self.stored(np.array(2))
            self.assertEqual(use(stored), use(np.array(2)))

    def test_bits(self):
        array = np.arange(6).reshape(2, 3)
        stored = self.stored(array)
        for a, b in (
            (~array, ~stored),
            (array & 3, stored & 3),
            (3 | array, 3 | stored),
            (array ^ 1, stored ^ 1),
            (array << 1, stored << 1),
            (array >> 1, stored >> 1),
        ):
            np.testing.assert_array_equal(a, b)

    def test_what_needs_no_values(self):
        for array in (np.zeros((3, 4)), np.zeros((2,), ml_dtypes.bfloat16)):
            stored = self.stored(array)
            with mock.patch.object(H5Array, "read", side_effect=AssertionError):
                for name in ("shape", "dtype", "ndim", "size"):
                    self.assertEqual(
                        getattr(stored, name), getattr(array, name)
                    )
                self.assertEqual(len(stored), len(array))

    def test_what_is_changed_stays_changed(self):
        stored = self.stored(np.zeros((3, 4)))
        self.assertIsInstance(stored.host_data(), H5Array)
        stored[1] = 5
        stored[2:][0, 0] = 7
        np.testing.assert_array_equal(np.asarray(stored)[:, 0], [0, 5, 7])
        np.testing.assert_array_equal(stored.host_data()[:, 0], [0, 5, 7])
        np.array(stored)[0] = 9
        self.assertEqual(stored[0, 0], 0)

    def test_as_arrays_it_has_no_hash_and_no_truth(self):
        stored = self.stored(np.zeros((3, 4)))
        with self.assertRaisesRegex(TypeError, "unhashable"):
            hash(stored)
        with self.assertRaisesRegex(ValueError, "ambiguous"):
            bool(stored)
        with self.assertRaises(AttributeError):
            stored.no_attribute
        with self.assertRaises(TypeError):
            len(self.stored(np.array(2)))
