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
        self._is_chunked = dataset.chunks is not None
        self._dataset = dataset
        self._filename = dataset.file.filename
        self._name = dataset.name

    @property
    def ndim(self):
        return len(self.shape)

    def read(self, parts):
        """Reads parts, each cast to the dtype of where it goes.

        Args:
            parts: A list of pairs: a part of the array, a tuple with a slice
                for each dimension, and the C-contiguous NumPy array of its
                shape to read it into.

        Raises:
            OSError: If the file cannot be read, with the names of the file
                and of the dataset.
        """
        parts = [(self._bounds(index), out) for index, out in parts if out.size]
        bounds = [part for part, _ in parts]
        with self._opened() as dataset:
            if len(parts) > 1 and _is_box(bounds):
                # One pass over what is contiguous in the file.
                self._read_blocks(dataset, _box(bounds), parts)
                return
            for part, out in parts:
                if self.dtype == out.dtype:
                    _read(dataset, part, out)
                else:
                    self._read_blocks(dataset, part, [(part, out)])

    def check(self, indices):
        """Finds out before parts are read whether they can be.

        What is stored in chunks, which may be compressed or have checksums,
        is read for that and dropped, a block at a time. Other data can be
        read if HDF5 could find it.

        Args:
            indices: A list of parts, tuples with a slice for each dimension.

        Raises:
            OSError: If the file cannot be read, with the names of the file
                and of the dataset.
        """
        if not self._is_chunked:
            return
        parts = [part for part in map(self._bounds, indices) if _size(part)]
        if len(parts) > 1 and _is_box(parts):
            parts = [_box(parts)]
        with self._opened() as dataset:
            for part in parts:
                self._read_blocks(dataset, part, [])

    def _read_blocks(self, dataset, box, parts):
        for block in _blocks(box, self.dtype.itemsize):
            stored = np.empty(
                [stop - start for start, stop in block], self.dtype
            )
            _read(dataset, block, stored)
            for part, out in parts:
                common = [
                    (max(a, c), min(b, d))
                    for (a, b), (c, d) in zip(block, part)
                ]
                if all(start < stop for start, stop in common):
                    np.copyto(
                        out[_slices(common, part)],
                        stored[_slices(common, block)],
                        casting="unsafe",
                    )

    def __array__(self, dtype=None, copy=None):
        out = np.empty(self.shape, self.dtype if dtype is None else dtype)
        self.read([((slice(None),) * self.ndim, out)])
        return out

    def _bounds(self, index):
        return (
            *(rows.indices(size)[:2] for rows, size in zip(index, self.shape)),
        )

    @contextlib.contextmanager
    def _opened(self):
        try:
            if self._dataset:
                yield self._dataset
            else:
                with open_h5(self._filename) as file:
                    yield file[self._name]
        except OSError as error:
            raise OSError(
                f"Could not read dataset '{self._name}' of the file "
                f"'{self._filename}': {error}"
            ) from error


def open_h5(path, file=None):
    """Opens an HDF5 file to read parts of its datasets.

    By default HDF5 reads 64 kB wherever it needs a few bytes, which adds up
    to the whole file for a part that is a range of columns.

    Args:
        path: The path of the file.
        file: A binary file object to read instead of the file at `path`.

    Returns:
        An `h5py.File`.
    """
    if _DRIVER not in h5py.registered_drivers():
        h5py.register_driver(_DRIVER, _read_exactly)
    return h5py.File(path, "r", driver=_DRIVER, file=file)


def _read_exactly(access, file=None):
    access.set_sieve_buf_size(0)
    if file is not None:
        access.set_fileobj_driver(h5py.h5fd.fileobj_driver, file)


def _read(dataset, part, out):
    # HDF5 knows some dtypes only as so many bytes. A view of these has the
    # dtype that the dataset has.
    raw = out if out.dtype == dataset.dtype else out.view(dataset.dtype)
    if out.ndim:
        dataset.read_direct(raw, tuple(slice(*bounds) for bounds in part))
    else:
        raw[...] = dataset[()]


def _size(part):
    return math.prod(stop - start for start, stop in part)


def _box(parts):
    """The bounds of the smallest part that contains all of these."""
    return [
        (min(start for start, _ in axis), max(stop for _, stop in axis))
        for axis in zip(*parts)
    ]


def _is_box(parts):
    """Whether parts that do not overlap leave no gap between them."""
    return _size(_box(parts)) == sum(map(_size, parts))


def _slices(part, origin):
    """The indices of a part in an array that starts at `origin`."""
    return *(
        slice(start - first, stop - first)
        for (start, stop), (first, _) in zip(part, origin)
    ), ...


def _blocks(part, itemsize):
    """Cuts a part into parts of about `_BLOCK_BYTES`, in their order."""
    axis = next((i for i, (a, b) in enumerate(part) if b - a > 1), len(part))
    outer, inner = part[:axis], part[axis + 1 :]
    if axis == len(part):
        yield part
        return
    row = itemsize * math.prod(stop - start for start, stop in inner)
    step = max(1, _BLOCK_BYTES // row)
    first, last = part[axis]
    for start in range(first, last, step):
        rows = (start, min(start + step, last))
        if row <= _BLOCK_BYTES:
            yield [*outer, rows, *inner]
        else:
            for block in _blocks(inner, itemsize):
                yield [*outer, rows, *block]
