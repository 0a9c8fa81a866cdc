"""Saves what is sharded over several processes, one variable at a time.

All processes call `save` or `save_weights` with the same model. One of them
gets each value in turn and writes the file; the others only take part.
"""

import functools
import io
import os
import tempfile

from keras.src import backend
from keras.src.backend.config import backend as backend_name

if backend_name() == "jax":
    from keras.src.backend.jax import gathering


def by_one_process(save):
    """Decorates a function that saves a model.

    Args:
        save: A function `save(model, filepath, ...)`.

    Returns:
        A function of the same arguments.
    """

    @functools.wraps(save)
    def wrapper(model, filepath, *args, **kwargs):
        if not _is_spread(model):
            return save(model, filepath, *args, **kwargs)
        with gathering.gathering():
            if gathering.is_writer():
                return save(model, filepath, *args, **kwargs)
            if isinstance(filepath, io.IOBase):
                return save(model, io.BytesIO(), *args, **kwargs)
            with tempfile.TemporaryDirectory() as folder:
                name = os.path.basename(str(filepath))
                save(model, os.path.join(folder, name), *args, **kwargs)

    return wrapper


def gathered(setitem):
    """Decorates `__setitem__` of stores to take values of all processes.

    Args:
        setitem: The method.

    Returns:
        A method of the same arguments.
    """

    @functools.wraps(setitem)
    def __setitem__(self, key, value):
        if not _is_gathering():
            return setitem(self, key, value)
        value = to_host(value)
        if gathering.is_writer():
            setitem(self, key, value)

    return __setitem__


def to_host(value):
    """Returns a NumPy array of what is stored, gathered if need be."""
    if isinstance(value, backend.Variable):
        value = value.value
    if _is_gathering() and gathering.is_spread(value):
        return gathering.gather(value)
    return backend.convert_to_numpy(value)


def _is_gathering():
    return backend_name() == "jax" and gathering.is_gathering()


def _is_spread(model):
    if backend_name() != "jax" or gathering.is_gathering():
        return False
    variables = list(model.variables)
    optimizer = getattr(model, "optimizer", None)
    variables += getattr(optimizer, "variables", [])
    return any(
        isinstance(variable, backend.Variable)
        and gathering.is_spread(variable.value)
        for variable in variables
    )
