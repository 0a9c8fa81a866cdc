"""Brings tensors that are sharded over processes to the host of one."""

import contextlib
import functools

import jax
import numpy as np
from jax import lax
from jax.experimental import multihost_utils

from keras.src.backend.common import global_state
from keras.src.backend.jax import layouts
from keras.src.backend.jax import programs

# A device has so many bytes of a tensor at a time, beyond its own part.
_BLOCK_BYTES = 2**24

_WRITER = 0

_SCOPE = "jax_gathering"


def is_spread(value):
    """Whether no single process has all of an array."""
    return (
        isinstance(value, jax.Array)
        and not value.is_fully_addressable
        and not value.is_fully_replicated
    )


def is_writer():
    """Whether this is the process that gets the values."""
    return jax.process_index() == _WRITER


def is_gathering():
    """Whether this thread is in a `gathering` scope."""
    return bool(global_state.get_global_attribute(_SCOPE))


@contextlib.contextmanager
def gathering():
    """A scope in which all processes gather the same arrays in one order.

    They leave it together. If the process that gets the values fails, the
    others do so too, instead of waiting for it.

    Raises:
        RuntimeError: In the other processes, if that one failed.
    """
    global_state.set_global_attribute(_SCOPE, True)
    goes_well = True
    try:
        yield
    except Exception:
        goes_well = False
        raise
    finally:
        global_state.set_global_attribute(_SCOPE, False)
        if is_writer() or goes_well:
            _agree(goes_well)


def _agree(goes_well=True):
    """Tells the other processes whether the one that writes goes on."""
    flag = multihost_utils.broadcast_one_to_all(
        np.int32(goes_well), is_source=is_writer()
    )
    if not flag and not is_writer():
        raise RuntimeError(
            f"Process {_WRITER}, which saves for all processes, failed. Its "
            "error tells why."
        )


def gather(value):
    """Returns a sharded array in host memory, to one process.

    All processes have to call it in a `gathering` scope.

    Args:
        value: A `jax.Array`.

    Returns:
        A NumPy array. In processes that do not write, its values are zeros
        that take no memory.
    """
    if not is_spread(value):
        return np.asarray(value)
    _agree()
    if is_writer():
        whole = np.empty(value.shape, value.dtype)
    else:
        whole = np.broadcast_to(np.zeros((), value.dtype), value.shape)
    axis = _axis(value)
    size = value.shape[axis]
    step = max(1, _BLOCK_BYTES * size // value.nbytes)
    for start in range(0, size, step):
        # The last block overlaps, so that one program serves all.
        start = max(0, min(start, size - step))
        block = _block(value, start, min(step, size), axis)
        if is_writer():
            rows = (slice(None),) * axis + (slice(start, start + step),)
            whole[rows] = block
        else:
            block.block_until_ready()
    return whole


def _axis(value):
    """The axis to cut blocks along, if possible one that is not sharded."""
    shard = value.sharding.shard_shape(value.shape)
    whole = [n if n == part else 0 for n, part in zip(value.shape, shard)]
    sizes = whole if max(whole) > 1 else value.shape
    return int(np.argmax(sizes))


def _block(value, start, size, axis):
    sharding = layouts.replicated(value.sharding)
    mesh = getattr(sharding, "mesh", None)
    with jax.set_mesh(mesh) if mesh is not None else contextlib.nullcontext():
        return _cut(sharding, size, axis)(value, start)


@functools.lru_cache(maxsize=256)
def _cut(sharding, size, axis):
    def cut(value, start):
        block = lax.dynamic_slice_in_dim(value, start, size, axis)
        return programs.constrain(block, sharding)

    return jax.jit(cut, out_shardings=sharding)
