"""Puts tensors in a layout, sending to each device only its own part."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Format

from keras.src import tree
from keras.src.backend.common.h5_array import H5Array
from keras.src.backend.common.h5_array import is_dataset
from keras.src.backend.common.stored_array import StoredArray
from keras.src.backend.jax import layouts
from keras.src.backend.jax import programs

# On the CPU, JAX takes over memory that is aligned like this without a copy.
_ALIGNMENT = 64


def place(value, sharding, dtype=None):
    """Makes a JAX array of host data, laid out by `sharding`.

    Each device of this process is sent its own part and no other, cast on its
    way, and nothing is exchanged with other processes, which have to hold the
    same data.

    Args:
        value: An array-like in host memory, or an `H5Array`, of which only
            those parts are read.
        sharding: A `jax.sharding.Sharding` on concrete devices, or `None` for
            JAX's default device.
        dtype: The dtype of the result. Defaults to that of `value`, with 32
            bits where JAX does not use 64.

    Returns:
        A `jax.Array` of the shape of `value`.
    """
    if not isinstance(value, H5Array):
        value = np.asarray(value)
    dtype = jax.dtypes.canonicalize_dtype(dtype or value.dtype)
    dtype = dtype.newbyteorder("=")
    indices = _indices(value, sharding)
    parts = _copy_parts(value, indices, dtype)
    if sharding is None:
        return jax.device_put(parts[0])
    keys = [_key(index, value.shape) for index in indices]
    parts = dict(zip(keys, parts))
    return jax.make_array_from_callback(
        value.shape,
        sharding,
        lambda index: parts[_key(index, value.shape)],
        dtype=dtype,
    )


def check(stored, sharding):
    """Finds out before an `H5Array` is placed whether it can be read.

    Args:
        stored: The `H5Array`.
        sharding: As for `place`.

    Raises:
        OSError: If it cannot.
    """
    stored.check(_indices(stored, sharding))


def _indices(value, sharding):
    """The parts that the devices of this process need, each of them once."""
    if sharding is None:
        return [(slice(None),) * value.ndim]
    indices = sharding.addressable_devices_indices_map(value.shape).values()
    return list({_key(index, value.shape): index for index in indices}.values())


def _key(index, shape):
    return tuple(rows.indices(size) for rows, size in zip(index, shape))


def distribute(tensor, layout):
    """Lays out a tensor, wherever it is now.

    Args:
        tensor: Host data or a JAX array, which may be traced, or a dict, list
            or tuple of arrays, which are all laid out alike. `None`, the
            value of NNX variables that have none yet, is returned as it is.
        layout: Anything that `layouts.to_sharding` accepts.

    Returns:
        A `jax.Array`, or a structure of them.

    Raises:
        ValueError: If the layout does not fit the shape.
    """
    if tensor is None or _is_laid_out(tensor, layout):
        return tensor
    if _is_structure(tensor):
        return tree.map_structure(lambda x: distribute(x, layout), tensor)
    host_data = as_host_data(tensor)
    tensor = jnp.asarray(tensor) if host_data is None else host_data
    sharding = layouts.to_sharding(layout, tensor.shape)
    if programs.is_tracing(tensor):
        return programs.constrain(jnp.asarray(tensor), sharding)
    if host_data is not None:
        tensor = place(host_data, sharding)
    return _reshard(tensor, sharding, layouts.memory_order(layout))


def _is_laid_out(tensor, layout):
    """Tells soon, since variables are assigned often, what costs nothing."""
    if not isinstance(tensor, jax.Array) or programs.is_tracing(tensor):
        return False
    if getattr(layout, "device_mesh", None) is not None:
        layout = layout.backend_layout
    return tensor.sharding == layout


def _is_structure(value):
    """Whether these are several arrays, such as the outputs of a layer.

    Nested lists of numbers are one.
    """
    if isinstance(value, dict):
        return True
    return isinstance(value, (list, tuple)) and any(
        isinstance(x, jax.Array) or getattr(x, "shape", ())
        for x in tree.flatten(value)
    )


def as_host_data(value, dtype=None):
    """Returns an array of the host that has the values of `value`.

    Args:
        value: Anything.
        dtype: The dtype of the result if `value` is a list or a Python
            scalar, which have none.

    Returns:
        A NumPy array, or an `H5Array` if `value` is an HDF5 dataset or a
        `StoredArray`. `None` if `value` is not host data: it is, or contains,
        an array of JAX or a Keras variable, or it is no array at all.
    """
    if isinstance(value, (np.ndarray, np.generic, H5Array)):
        return value
    if isinstance(value, StoredArray):
        return value.host_data()
    if isinstance(value, jax.Array):
        return None
    if is_dataset(value):
        return H5Array(value)
    leaves = [value]
    if isinstance(value, (list, tuple)):
        leaves = tree.flatten(value)
    elif not isinstance(value, (bool, int, float, complex)):
        dtype = None
    if any(
        hasattr(x, "__jax_array__") or isinstance(x, jax.Array) for x in leaves
    ):
        return None
    try:
        array = np.asarray(value, dtype)
    except (TypeError, ValueError, RuntimeError):
        return _from_dlpack(value)
    return None if array.dtype.kind in "OSU" else array


def _from_dlpack(value):
    """Takes what NumPy cannot, as `bfloat16` tensors of PyTorch."""
    if not hasattr(value, "__dlpack__"):
        return None
    if hasattr(value, "contiguous"):
        value = value.contiguous()
    try:
        return np.asarray(jax.dlpack.from_dlpack(value))
    except Exception:
        return None


def _copy_parts(value, indices, dtype):
    """Copies parts of host data, cast to a dtype.

    They are always copies, since JAX goes on using the memory it is given.
    """
    parts = []
    for index in indices:
        bounds = _key(index, value.shape)
        shape = [stop - start for start, stop, _ in bounds]
        parts.append((index, _aligned_empty(shape, dtype)))
    if isinstance(value, H5Array):
        value.read(parts)
    else:
        for index, part in parts:
            np.copyto(part, value[index], casting="unsafe")
    return [part for _, part in parts]


def _aligned_empty(shape, dtype):
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    address, _ = memory.__array_interface__["data"]
    start = -address % _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def _reshard(array, sharding, order):
    if order is None and array.sharding.is_equivalent_to(sharding, array.ndim):
        return array
    if array.is_fully_addressable and not sharding.is_fully_addressable:
        # Each process has all of it, and JAX would compare them.
        array = place(np.asarray(array), sharding)
    if order is not None:
        sharding = Format(order, sharding)
    return jax.device_put(array, sharding)
