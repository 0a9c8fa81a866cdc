"""Loads values from files straight into the layouts of variables.

With the JAX backend, what Keras's own `load_own_variables` assign is handed
down as `H5Array`s, of which each process reads the parts that its devices
need, once all of the file turned out to fit the model. A `load_own_variables`
that a user wrote gets `StoredArray`s to the same effect if there are layouts,
else NumPy arrays.
"""

import contextlib
import functools
import json
import pathlib
import weakref
import zipfile

from keras.src.backend.common import global_state
from keras.src.backend.common.h5_array import H5Array
from keras.src.backend.common.h5_array import open_h5
from keras.src.backend.common.stored_array import StoredArray
from keras.src.backend.config import backend
from keras.src.saving import loading_archives

# What makes arrays of datasets for the `load_own_variables` that is called.
# `None` while nothing is loaded.
_MAKE_ARRAY = "saving_make_array"
_BY_STORE = False

# The store of the file that is being loaded.
_STORE = "saving_store"

_WHILE = "While loading the variables"


def all_or_nothing(load_state):
    """Decorates `_load_state`, which calls itself for what is inside.

    Args:
        load_state: The function.

    Returns:
        A function of the same arguments. The outermost call for a file leaves
        all variables as they were if something cannot be loaded, unless
        mismatches are to be skipped. Errors name the file.
    """

    @functools.wraps(load_state)
    def _load_state(saveable, weights_store, *args, **kwargs):
        if backend() != "jax":
            return load_state(saveable, weights_store, *args, **kwargs)
        outer = {
            name: global_state.get_global_attribute(name)
            for name in (_MAKE_ARRAY, _STORE)
        }
        failed = kwargs.get("failed_saveables")
        load = functools.partial(
            load_state, saveable, weights_store, *args, **kwargs
        )
        load = functools.partial(
            _load_one, load, saveable, weights_store, failed
        )
        try:
            if outer[_STORE] is weights_store:
                load()
                return
            global_state.set_global_attribute(_STORE, weights_store)
            # A method that is called for one file may load another.
            _load_file(load, weights_store, kwargs, outer[_STORE] is not None)
        finally:
            for name, value in outer.items():
                global_state.set_global_attribute(name, value)

    return _load_state


def _load_file(load, store, options, is_nested):
    """Calls `load()`, which loads all of the file of a store."""
    try:
        with _naming_file(store), _loading() as loading:
            with loading.apart() if is_nested else contextlib.nullcontext():
                load()
                if options.get("failed_saveables"):
                    _name_file_in(options["error_msgs"], store)
                    if not options.get("skip_mismatch"):
                        loading.abandon()
            if not is_nested:
                loading.settle()
    except BaseException:
        store.close()
        raise


def _load_one(load, saveable, store, failed):
    """Calls `load()` for `saveable` and what is inside."""
    make_array = _array_maker(saveable)
    global_state.set_global_attribute(_MAKE_ARRAY, make_array)
    with _naming_variables(saveable):
        load()
        error = getattr(store, "open_error", None)
        if error is not None:
            raise error
        if not isinstance(make_array, _HandedOut):
            return
        if id(saveable) in (failed or ()):
            # A method may do what takes no less than a NumPy array.
            global_state.set_global_attribute(_MAKE_ARRAY, _BY_STORE)
            load()
        else:
            make_array.read_what_is_kept()


def _array_maker(saveable):
    load = getattr(type(saveable), "load_own_variables", None)
    module = getattr(load, "__module__", "")
    if module.startswith("keras.src."):
        # Some preprocessing layers keep what they load. All else assigns it.
        keeps = module.startswith("keras.src.layers.preprocessing.")
        return _BY_STORE if keeps else _stored_array
    variables = getattr(saveable, "variables", ())
    if any(getattr(v, "_layout", None) is not None for v in variables):
        return _HandedOut()
    return _BY_STORE


def _stored_array(dataset):
    return StoredArray(H5Array(dataset))


class _HandedOut:
    """Makes arrays for a user's `load_own_variables`."""

    def __init__(self):
        self._arrays = []

    def __call__(self, dataset):
        array = _stored_array(dataset)
        self._arrays.append(weakref.ref(array))
        return array

    def read_what_is_kept(self):
        """Reads what outlives the call, as the file may soon be another."""
        for reference in self._arrays:
            array = reference()
            if array is not None:
                array.whole()


def without_initial_draws(load_model):
    """Decorates a function that makes a model and loads its variables.

    Initial values that the file overwrites are not made in the first place.

    Args:
        load_model: A function `load_model(file, ...)` of a path or a file
            object.

    Returns:
        A function of the same arguments. Errors name the file.
    """

    @functools.wraps(load_model)
    def wrapper(file, *args, **kwargs):
        if backend() != "jax":
            return load_model(file, *args, **kwargs)
        with _naming(getattr(file, "name", file)), _loading(initial=True):
            return load_model(file, *args, **kwargs)

    return wrapper


def _loading(**options):
    # The backend may be another one, which this module must not import.
    from keras.src.backend.jax.deferral import Loading

    return Loading(**options)


def lazily(getitem):
    """Decorates `__getitem__` of stores to return an array not yet read.

    Args:
        getitem: The method of a store of HDF5 groups.

    Returns:
        A method of the same arguments.
    """

    @functools.wraps(getitem)
    def __getitem__(self, key):
        make_array = global_state.get_global_attribute(_MAKE_ARRAY)
        if not make_array:
            return getitem(self, key)
        from keras.src.saving.saving_lib import safe_get_h5_dataset

        return make_array(safe_get_h5_dataset(self._h5_entry_group, key))

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
    if _is_alone():
        # Several processes do not read all of it, so that they cannot tell.
        loading_archives.check_sum(store.archive, str(path))
    member = loading_archives.stored_member(store.archive, str(path))
    store.io_file = member or loading_archives.extracted(
        store.archive, str(path)
    )
    return open_h5(path, store.io_file)


def _is_alone():
    from keras.src.backend.jax import distribution_lib

    return distribution_lib.num_processes() == 1


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
        is_path = isinstance(file, (str, pathlib.Path))
        if not is_path or str(file) in str(error):
            raise
        if type(error) not in (OSError, zipfile.BadZipFile) or error.args[1:]:
            # It has more to say than a text, and may be of another file.
            error.add_note(f"While reading '{file}'.")
            raise
        named = type(error)(f"Could not read '{file}': {error}")
        named.__notes__ = getattr(error, "__notes__", [])
        raise named from error
    except json.JSONDecodeError as error:
        raise ValueError(f"Could not read '{file}': {error}") from error


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


@contextlib.contextmanager
def _naming_variables(saveable):
    try:
        yield
    except Exception as error:
        notes = getattr(error, "__notes__", [])
        # Only what is furthest inside, not what contains it.
        if not any(note.startswith(_WHILE) for note in notes):
            paths = _paths(saveable)
            error.add_note(f"{_WHILE} {paths} of {saveable}.")
        raise


def _paths(saveable):
    return [
        getattr(variable, "path", str(variable))
        for variable in getattr(saveable, "variables", ())
    ]


def _name_file_in(failures, store):
    file = _file_of(store)
    if not failures or file is None:
        return
    for key, (saveable, error) in failures.items():
        message = str(error)
        if isinstance(error, KeyError):
            message = (
                "The file has no value for one of the variables "
                f"{_paths(saveable)}: {error}."
            )
        message = f"{message}\n\nReceived: file='{file}'"
        failures[key] = saveable, ValueError(message)
