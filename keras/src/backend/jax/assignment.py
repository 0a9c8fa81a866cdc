"""How host data gets into a variable of the JAX backend."""

import contextlib
import functools

import jax
import numpy as np

from keras.src.backend.common import global_state
from keras.src.backend.common.h5_array import H5Array
from keras.src.backend.common.stateless_scope import in_stateless_scope
from keras.src.backend.common.stored_array import StoredArray
from keras.src.backend.jax import deferral
from keras.src.backend.jax import layouts
from keras.src.backend.jax import placement
from keras.src.backend.jax import programs


def straight_from_host(convert):
    """Decorates `_convert_to_tensor` of variables.

    Host data becomes an array in the layout of the variable at once, instead
    of a whole one on the default device that is split afterwards.

    Args:
        convert: A method `_convert_to_tensor(self, value, dtype=None)`.

    Returns:
        A method of the same arguments.
    """

    @functools.wraps(convert)
    def _convert_to_tensor(self, value, dtype=None):
        if self._initializer is not None and not in_stateless_scope():
            # It never had a value. What layout it has is decided now.
            self._initialize_layout()
        if isinstance(value, jax.Array) or not _is_to_be_placed(self, value):
            return convert(self, value, dtype)
        host_data = placement.as_host_data(value, dtype)
        if host_data is None:
            return convert(self, value, dtype)
        if _is_deferred(self, host_data):
            _check_dtype(self, host_data)
            return host_data
        if self._shape is None:
            # The variable is being made of this value. What layout it has
            # may be up to the distribution, which asks for its shape.
            self._shape = tuple(host_data.shape)
            self._initialize_layout()
        if tuple(host_data.shape) != tuple(self._shape):
            # Nothing to send. `assign` says what is wrong with the shape.
            return jax.ShapeDtypeStruct(host_data.shape, self._dtype)
        return _place(self, host_data, dtype)

    return _convert_to_tensor


def transactional(assign):
    """Decorates `_direct_assign` of variables.

    While a model is loaded, what it is assigned from a file is read when all
    of the file turned out to fit, or when something reads the variable.

    Args:
        assign: A method `_direct_assign(self, value)`.

    Returns:
        A method of the same arguments.
    """

    def set_value(self, value):
        assign(self, value)
        # One that is without a value later, as while a step of training runs,
        # must not start again.
        if self._initializer is not None:
            self._initializer = None

    @functools.wraps(assign)
    def _direct_assign(self, value):
        loading = deferral.current_loading()
        if loading is None:
            set_value(self, value)
        elif _is_deferred(self, value):
            loading.defer(
                self,
                lambda: set_value(self, _place(self, value, self._dtype)),
                lambda: _check(self, value),
            )
        else:
            loading.keep(self)
            set_value(self, value)

    return _direct_assign


def _is_deferred(variable, value):
    return (
        isinstance(value, H5Array)
        and variable._shape is not None
        and deferral.current_loading() is not None
        and deferral.can_defer()
    )


def _check_dtype(variable, value):
    is_number = jax.dtypes.issubdtype(value.dtype, np.number)
    if not is_number and value.dtype != bool:
        error = TypeError("It is no number.")
        raise _cast_error(variable, value, variable._dtype, error)


def _check(variable, stored):
    with _naming(variable, stored, variable._dtype):
        placement.check(stored, _sharding(variable, stored))


def _is_to_be_placed(variable, value):
    if in_stateless_scope() or programs.is_tracing():
        return False
    if variable._layout is not None or isinstance(
        value, (H5Array, StoredArray)
    ):
        return True
    if variable._shape is None:
        return global_state.get_global_attribute("distribution") is not None
    # So that errors name the variable, whatever kind of file is loaded.
    return deferral.current_loading() is not None


def _place(variable, value, dtype):
    with _naming(variable, value, dtype):
        return placement.place(value, _sharding(variable, value), dtype)


def _sharding(variable, value):
    return layouts.to_sharding(variable._layout, value.shape, variable.path)


@contextlib.contextmanager
def _naming(variable, value, dtype):
    try:
        yield
    except (TypeError, ValueError) as error:
        raise _cast_error(variable, value, dtype, error) from error
    except OSError as error:
        message = f"{error} It was to be loaded to: path='{variable.path}'."
        raise OSError(message) from error


def _cast_error(variable, value, dtype, error):
    return type(error)(
        "A variable can only be assigned what its dtype can be cast from. "
        f"Received: path='{variable.path}', dtype={dtype}, "
        f"value of shape={tuple(value.shape)}, dtype={value.dtype}. {error}"
    )
