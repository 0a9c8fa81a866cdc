import os

import h5py
import numpy as np
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from keras.src import testing
from keras.src.backend.common import h5_array


@st.composite
def parts(draw):
    """A shape of up to three dimensions and a part of it."""
    shape = draw(st.lists(st.integers(1, 9), max_size=3))
    index = []
    for n in shape:
        start = draw(st.integers(0, n - 1))
        index.append(slice(start, draw(st.integers(start, n))))
    return tuple(shape), tuple(index)


class H5ArrayTest(testing.TestCase):
    @settings(deadline=None, max_examples=60)
    @given(parts(), st.sampled_from(["float32", "int16"]), st.integers(1, 64))
    def test_reads_parts(self, part, dtype, block_bytes):
        shape, index = part
        array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        array = array.astype("float32")
        path = os.path.join(self.get_temp_dir(), "values.h5")
        with h5py.File(path, "w") as file:
            file["a"] = array
        usual, h5_array._BLOCK_BYTES = h5_array._BLOCK_BYTES, block_bytes
        try:
            with h5_array.open_h5(path) as file:
                out = np.empty(array[index].shape, dtype)
                h5_array.H5Array(file["a"]).read([(index, out)])
        finally:
            h5_array._BLOCK_BYTES = usual
        np.testing.assert_array_equal(out, array[index].astype(dtype))

    def test_outlives_its_file_object(self):
        path = os.path.join(self.get_temp_dir(), "values.h5")
        with h5py.File(path, "w") as file:
            file["group/a"] = np.arange(6.0).reshape(2, 3)
        with h5_array.open_h5(path) as file:
            stored = h5_array.H5Array(file["group/a"])
        np.testing.assert_array_equal(
            np.asarray(stored), np.arange(6.0).reshape(2, 3)
        )

    def test_file_that_is_not_there(self):
        with self.assertRaisesRegex(FileNotFoundError, "missing.h5"):
            h5_array.open_h5("missing.h5")

    def test_file_that_cannot_be_read(self):
        path = os.path.join(self.get_temp_dir(), "values.h5")
        with h5py.File(path, "w") as file:
            dataset = file.create_dataset(
                "group/a", data=np.arange(2.0**12), compression="gzip"
            )
            start = dataset.id.get_chunk_info(0).byte_offset
        with open(path, "r+b") as file:
            file.seek(start)
            file.write(b"damaged")
        with h5_array.open_h5(path) as file:
            stored = h5_array.H5Array(file["group/a"])
            with self.assertRaisesRegex(OSError, "'/group/a'.*values.h5"):
                np.asarray(stored)

    def test_reads_only_the_bytes_of_a_part(self):
        path = os.path.join(self.get_temp_dir(), "values.h5")
        array = np.arange(2.0**18).reshape(512, 512)
        with h5py.File(path, "w") as file:
            file["a"] = array
        out = np.empty((512, 8))
        with h5_array.open_h5(path) as file:
            stored = h5_array.H5Array(file["a"])
            before = bytes_read()
            stored.read([((slice(0, 512), slice(16, 24)), out)])
            count = bytes_read() - before
        np.testing.assert_array_equal(out, array[:, 16:24])
        self.assertLess(count, 1.1 * out.nbytes + 4096)


def bytes_read():
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])
