"""Constant and regular arrays that are born in their layout.

Without a layout they are what `jax.numpy` makes. In one, each device fills its
own part, by one program for each (op, dtype, shape, sharding), whose arguments
are the values. What a variable starts with, if it is small, is made on the
host, since biases have many shapes and each would be a program.

All give the same bits.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from keras.src.backend.common import layout_support
from keras.src.backend.config import floatx
from keras.src.backend.jax import layouts
from keras.src.backend.jax import placement
from keras.src.backend.jax import programs
from keras.src.backend.jax import rounding
from keras.src.backend.jax.initialization import is_small
from keras.src.backend.jax.initialization import variable_being_born


def full(shape, fill_value, dtype=None, layout=None):
    """Makes an array of one value, in a layout if there is one.

    Args:
        shape: The shape of the result, a tuple of integers or one integer.
        fill_value: A number, or an array that broadcasts to `shape`.
        dtype: The dtype of the result. `None` stands for
            `keras.config.floatx()`.
        layout: Anything that `layouts.to_sharding` accepts, or `None`.

    Returns:
        A `jax.Array`.
    """
    dtype = dtype or floatx()
    if _is_plain(layout):
        return jnp.full(shape, fill_value, dtype)
    shape = layouts.as_shape(shape)
    if type(fill_value) in (int, float) and fill_value in (0, 1):
        # The same in any dtype, and cheap.
        dtype = jax.dtypes.canonicalize_dtype(dtype)
        fill_value = np.array(fill_value, dtype)
    else:
        # The conversion to `dtype` is JAX's in any case.
        fill_value = jnp.full(np.shape(fill_value), fill_value, dtype)
    return _fill(_full, (shape, fill_value.dtype), (fill_value,), layout)


def eye(N, M=None, k=0, dtype=None, layout=None):
    """Makes a matrix of ones on a diagonal, in a layout if there is one.

    Args:
        N: The number of rows.
        M: The number of columns. `None` stands for `N`.
        k: Which diagonal, an integer, above the main one if it is positive.
        dtype: The dtype of the result. `None` stands for
            `keras.config.floatx()`.
        layout: Anything that `layouts.to_sharding` accepts, or `None`.

    Returns:
        A `jax.Array`.
    """
    make = functools.partial(jnp.eye, N, M=M, k=k, dtype=dtype or floatx())
    if _is_plain(layout):
        return make()
    spec = jax.eval_shape(make)
    if isinstance(k, int):
        # As far as it makes a difference, so that it fits 32 bits.
        k = int(max(-spec.shape[0], min(k, spec.shape[1])))
    return _fill(_eye, (spec.shape, spec.dtype), (k,), layout)


def arange_in_layout(arange):
    """Lets the backend's `arange` take a layout.

    Args:
        arange: A function `arange(start, stop=None, step=None, dtype=None)`.

    Returns:
        A function of the same arguments and `layout`.
    """

    @layout_support.wraps(arange)
    def wrapper(start, stop=None, step=None, dtype=None, layout=None):
        if _is_plain(layout):
            return arange(start, stop, step, dtype)
        start, stop, step = map(_as_number, (start, stop, step))
        make = functools.partial(arange, start, stop, step, dtype)
        spec = jax.eval_shape(make)
        if not isinstance(spec.size, int):  # A dimension that is not known yet.
            sharding = layouts.to_sharding(layout, spec.shape)
            return programs.partitioned(make, (), spec.shape, sharding)
        if spec.size > 2**32:
            raise ValueError(
                "An `arange` that is laid out has at most 2**32 elements. "
                f"Received: shape={spec.shape}, layout={layout}"
            )
        working = spec.dtype
        if step is not None and jnp.issubdtype(working, np.floating):
            if working.itemsize < 4:
                working = np.float32  # As JAX does.
        first, step = 0 if stop is None else start, 1 if step is None else step
        params = [lax.convert_element_type(x, working) for x in (first, step)]
        return _fill(_arange, (spec.shape, spec.dtype), params, layout)

    return wrapper


def _full(xp, shape, dtype, fill_value):
    return xp.full(shape, fill_value, dtype)


def _eye(xp, shape, dtype, k):
    return xp.eye(*shape, k=k, dtype=dtype)


def _arange(xp, shape, dtype, start, step):
    # Counted in integers: when XLA partitions a count in a 16-bit type, it adds
    # up rounded numbers.
    index = xp.arange(*shape, dtype=np.uint32).astype(start.dtype)
    return (start + step * index).astype(dtype)


def _fill(formula, statics, params, layout):
    """Computes `formula(xp, *statics, *params)`, laid out by `layout`.

    Args:
        formula: One of the functions above.
        statics: The shape and the dtype of the result.
        params: The other arguments, a sequence of numbers and arrays.
        layout: Anything that `layouts.to_sharding` accepts, or `None`.

    Returns:
        A `jax.Array`.
    """
    shape, _ = statics
    sharding = layouts.to_sharding(layout, shape)
    if programs.is_tracing(*params):
        return _traced(formula, statics, sharding, *params)
    if variable_being_born() and is_small(shape):
        with np.errstate(all="ignore"):
            value = formula(np, *statics, *map(np.asarray, params))
        return placement.place(value, sharding)
    return programs.run(_traced, (formula, statics, sharding), params, sharding)


def _traced(formula, statics, sharding, *params):
    fn = rounding.stepwise(functools.partial(formula, jnp, *statics))
    return programs.partitioned(fn, params, statics[0], sharding)


def _is_plain(layout):
    """Whether JAX's own function will do."""
    if layout is not None:
        return False
    return not variable_being_born() or programs.is_tracing()


def _as_number(x):
    """Takes a scalar array to the host, so that it is concrete anywhere."""
    is_array = isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer)
    return np.asarray(x)[()] if is_array else x
