"""Loads values from files straight into the layouts of variables.

With the JAX backend, what Keras's own `load_own_variables` assign is handed
down as `H5Array`s, of which each process reads the parts that its devices
need, once all of the file turned out to fit the model. A `load_own_variables`
that a user wrote gets NumPy arrays, as ever.
"""

import contextlib
import functools
import io
import os
import pathlib
import struct
import zipfile

from keras.src.backend.common import global_state
from keras.src.backend.common.h5_array import H5Array
from keras.src.backend.common.h5_array import open_h5
from keras.src.backend.config import backend

_LOADS_LAZILY = "saving_loads_lazily"


def all_or_nothing(load_state):
    """Decorates `_load_state`, which calls itself for what is inside.

    Args:
        load_state: The function.

    Returns:
        A function of the same arguments. The outermost call leaves all
        variables as they were if something cannot be loaded, unless
        mismatches are to be skipped. Errors name the file.
    """

    @functools.wraps(load_state)
    def _load_state(saveable, weights_store, *args, **kwargs):
        if backend() != "jax":
            return load_state(saveable, weights_store, *args, **kwargs)
        outer = global_state.get_global_attribute(_LOADS_LAZILY)
        lazily = _is_loaded_by_keras(saveable)
        global_state.set_global_attribute(_LOADS_LAZILY, lazily)
        try:
            if outer is not None:
                return load_state(saveable, weights_store, *args, **kwargs)
            with _naming_file(weights_store), _loading() as loading:
                load_state(saveable, weights_store, *args, **kwargs)
                error = getattr(weights_store, "open_error", None)
                if error is not None:
                    raise error
                if kwargs.get("failed_saveables"):
                    _name_file_in(kwargs["error_msgs"], weights_store)
                    if not kwargs.get("skip_mismatch"):
                        loading.abandon()
                loading.settle()
        finally:
            global_state.set_global_attribute(_LOADS_LAZILY, outer)

    return _load_state


def without_initial_draws(load_model):
    """Decorates a function that makes a model and loads its variables.

    Initial values that the file overwrites are not made in the first place.

    Args:
        load_model: The function.

    Returns:
        A function of the same arguments.
    """

    @functools.wraps(load_model)
    def wrapper(*args, **kwargs):
        if backend() != "jax":
            return load_model(*args, **kwargs)
        with _loading(initial=True):
            return load_model(*args, **kwargs)

    return wrapper


def _loading(**options):
    # The backend may be another one, which this module must not import.
    from keras.src.backend.jax.deferral import Loading

    return Loading(**options)


def _is_loaded_by_keras(saveable):
    """Whether `saveable` only assigns to variables what it loads.

    Some preprocessing layers keep what they load.
    """
    load = getattr(type(saveable), "load_own_variables", None)
    module = getattr(load, "__module__", "")
    return module.startswith("keras.src.") and not module.startswith(
        "keras.src.layers.preprocessing."
    )


def lazily(getitem):
    """Decorates `__getitem__` of stores to return an array not yet read.

    Args:
        getitem: The method of a store of HDF5 groups.

    Returns:
        A method of the same arguments.
    """

    @functools.wraps(getitem)
    def __getitem__(self, key):
        if not global_state.get_global_attribute(_LOADS_LAZILY):
            return getitem(self, key)
        from keras.src.saving.saving_lib import safe_get_h5_dataset

        return H5Array(safe_get_h5_dataset(self._h5_entry_group, key))

    return __getitem__


def reading_parts(get_h5_file):
    """Decorates `_get_h5_file` of stores to open files for reading parts.

    Args:
        get_h5_file: The method `_get_h5_file(self, path_or_io, mode=None)`.

    Returns:
        A method of the same arguments.
    """

    @functools.wraps(get_h5_file)
    def _get_h5_file(self, path_or_io, mode=None):
        is_path = isinstance(path_or_io, (str, pathlib.Path))
        if (mode or self.mode) != "r" or not is_path or backend() != "jax":
            return get_h5_file(self, path_or_io, mode)
        try:
            with _naming(path_or_io):
                return _open_parts(self, path_or_io)
        except OSError as error:
            # A store without an open file counts as none, and what it should
            # have loaded would be skipped.
            self.open_error = error
            raise

    return _get_h5_file


def _open_parts(store, path):
    if store.archive is None:
        return open_h5(path)
    member = stored_member(store.archive, str(path))
    store.io_file = member or store.archive.open(str(path), "r")
    return open_h5(path, store.io_file)


def unless_read_in_place(is_memory_sufficient):
    """Decorates what decides whether to load a file into memory first.

    Args:
        is_memory_sufficient: The function `is_memory_sufficient(model)`.

    Returns:
        A function of the same arguments. While a model is loaded it raises
        `ReadInPlace`, so that its caller turns to the archive itself.
    """

    @functools.wraps(is_memory_sufficient)
    def wrapper(model):
        if backend() == "jax":
            from keras.src.backend.jax.deferral import current_loading

            if current_loading() is not None:
                raise ReadInPlace
        return is_memory_sufficient(model)

    return wrapper


class ReadInPlace(Exception):
    """The weights are to be read from the archive that they are in."""


class _Member(io.RawIOBase):
    """A range of bytes of a file."""

    def __init__(self, file, start, size):
        self._file = file
        self._start = start
        self._size = size
        self._position = 0

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        return self._position

    def seek(self, offset, whence=os.SEEK_SET):
        base = {
            os.SEEK_SET: 0,
            os.SEEK_CUR: self._position,
            os.SEEK_END: self._size,
        }
        self._position = base[whence] + offset
        return self._position

    def readinto(self, buffer):
        view = memoryview(buffer).cast("B")
        view = view[: max(0, self._size - self._position)]
        # The archive moves the position of the file for its own purposes.
        count = os.preadv(
            self._file.fileno(), [view], self._start + self._position
        )
        self._position += count
        return count


def stored_member(archive, name):
    """Returns a file object for what a zip archive stores uncompressed.

    Unlike the one that `zipfile` returns, it reads nothing but what it is
    asked for.

    Args:
        archive: A `zipfile.ZipFile` that is open to read.
        name: The name of the member.

    Returns:
        A file object, or `None` if the member is not stored as it is in a
        file on this machine.
    """
    info = archive.getinfo(name)
    is_encrypted = info.flag_bits & 1
    if info.compress_type != zipfile.ZIP_STORED or is_encrypted:
        return None
    if not hasattr(os, "preadv"):  # On Windows.
        return None
    try:
        descriptor = archive.fp.fileno()
    except (AttributeError, OSError):
        return None
    # A local header of 30 bytes, with the lengths of what follows it.
    header = os.pread(descriptor, 30, info.header_offset)
    lengths = struct.unpack("<HH", header[26:])
    start = info.header_offset + len(header) + sum(lengths)
    return _Member(archive.fp, start, info.file_size)


def naming_its_file(load_weights):
    """Decorates `load_weights_only` to name the file in errors that lack it.

    Args:
        load_weights: The function `load_weights_only(model, filepath, ...)`.

    Returns:
        A function of the same arguments.
    """

    @functools.wraps(load_weights)
    def load_weights_only(model, filepath, *args, **kwargs):
        with _naming(filepath):
            return load_weights(model, filepath, *args, **kwargs)

    return load_weights_only


@contextlib.contextmanager
def _naming(file):
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, zipfile.BadZipFile) as error:
        if str(file) in str(error):
            raise
        raise type(error)(f"Could not read '{file}': {error}") from error


def _file_of(store):
    archive = getattr(store, "archive", None)
    for name in (
        getattr(archive, "filename", None),
        getattr(store, "path", None),
        getattr(store, "path_or_io", None),
        getattr(store, "root_path", None),
    ):
        if isinstance(name, (str, pathlib.Path)):
            return name
    return None


@contextlib.contextmanager
def _naming_file(store):
    try:
        yield
    except Exception as error:
        file = _file_of(store)
        if file is not None and str(file) not in str(error):
            error.add_note(f"While loading the file '{file}'.")
        raise


def _name_file_in(failures, store):
    file = _file_of(store)
    if not failures or file is None:
        return
    for key, (saveable, error) in failures.items():
        message = f"{_message(error)}\n\nReceived: file='{file}'"
        failures[key] = saveable, ValueError(message)


def _message(error):
    if isinstance(error, KeyError):
        return f"The file has no variable {error}."
    return str(error)
