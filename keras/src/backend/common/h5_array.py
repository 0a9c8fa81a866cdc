"""Arrays in HDF5 files, of which only the parts that are needed are read."""

import contextlib
import math

import ml_dtypes
import numpy as np

from keras.src.utils.module_utils import h5py

# Values that have to be cast are read so many bytes at a time.
_BLOCK_BYTES = 2**22

_DRIVER = "keras_exact"


def is_dataset(value):
    """Whether `value` is an HDF5 dataset, without importing h5py to tell."""
    module = type(value).__module__
    return module.startswith("h5py.") and isinstance(value, h5py.Dataset)


class H5Array:
    """An array in an HDF5 file, as Keras stores it.

    Unlike the dataset it outlives the file object that it came from, if that
    was opened by a path.

    Args:
        dataset: An `h5py.Dataset`.

    Attributes:
        shape: The shape, a tuple of integers.
        dtype: The dtype. Keras marks `bfloat16`, which HDF5 does not know.
    """

    def __init__(self, dataset):
        self.shape = dataset.shape
        self.dtype = dataset.dtype
        if dataset.attrs.get("dtype") == "bfloat16":
            self.dtype = np.dtype(ml_dtypes.bfloat16)
        self._dataset = dataset
        self._filename = dataset.file.filename
        self._name = dataset.name

    @property
    def ndim(self):
        return len(self.shape)

    def read(self, index, out):
        """Reads a part, cast to the dtype of where it goes.

        Args:
            index: A tuple of slices, one for each dimension.
            out: A C-contiguous NumPy array of the shape of the part.

        Raises:
            OSError: If the file cannot be read, with the names of the file
                and of the dataset.
        """
        if out.size == 0:
            return
        starts = [part.indices(n)[0] for part, n in zip(index, self.shape)]
        try:
            with self._opened() as dataset:
                if self.dtype == out.dtype:
                    _read(dataset, index, out)
                    return
                for block in _blocks(out.shape, self.dtype.itemsize):
                    stored = np.empty(out[block].shape, self.dtype)
                    _read(dataset, _shifted(block, starts), stored)
                    np.copyto(out[(*block, ...)], stored, casting="unsafe")
        except OSError as error:
            raise OSError(
                f"Could not read dataset '{self._name}' of the file "
                f"'{self._filename}': {error}"
            ) from error

    def __array__(self, dtype=None, copy=None):
        out = np.empty(self.shape, self.dtype if dtype is None else dtype)
        self.read((slice(None),) * self.ndim, out)
        return out

    @contextlib.contextmanager
    def _opened(self):
        if self._dataset:
            yield self._dataset
        else:
            with open_h5(self._filename) as file:
                yield file[self._name]


def open_h5(path):
    """Opens an HDF5 file to read parts of its datasets.

    By default HDF5 reads 64 kB wherever it needs a few bytes, which adds up
    to the whole file for a part that is a range of columns.

    Args:
        path: The path of the file.

    Returns:
        An `h5py.File`.
    """
    if _DRIVER not in h5py.registered_drivers():
        h5py.register_driver(_DRIVER, _read_exactly)
    return h5py.File(path, "r", driver=_DRIVER)


def _read_exactly(access):
    access.set_sieve_buf_size(0)


def _read(dataset, index, out):
    # HDF5 knows some dtypes only as so many bytes. A view of these has the
    # dtype that the dataset has.
    raw = out if out.dtype == dataset.dtype else out.view(dataset.dtype)
    if out.ndim:
        dataset.read_direct(raw, index)
    else:
        raw[...] = dataset[()]


def _blocks(shape, itemsize):
    """Cuts an array into contiguous blocks of about `_BLOCK_BYTES`."""
    axis = next((i for i, n in enumerate(shape) if n > 1), len(shape))
    outer, inner = shape[:axis], shape[axis + 1 :]
    outer = tuple(slice(0, n) for n in outer)
    if axis == len(shape):
        yield outer
        return
    row = itemsize * math.prod(inner)
    step = max(1, _BLOCK_BYTES // row)
    for start in range(0, shape[axis], step):
        rows = slice(start, min(start + step, shape[axis]))
        if row <= _BLOCK_BYTES:
            yield *outer, rows, *(slice(0, n) for n in inner)
        else:
            for block in _blocks(inner, itemsize):
                yield *outer, rows, *block


def _shifted(block, starts):
    """A block of a part, as a block of the whole array."""
    return tuple(
        slice(start + rows.start, start + rows.stop)
        for rows, start in zip(block, starts)
    )
