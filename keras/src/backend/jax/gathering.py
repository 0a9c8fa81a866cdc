"""Brings tensors that are sharded over processes to the host of one."""

import collections
import contextlib
import functools
import math

import jax
import numpy as np
from jax import lax
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec

from keras.src.backend.common import global_state
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


def is_costly_to_show(value):
    """Whether an array has to be put together for a few of its elements.

    NumPy prints no more than the corners of a large array, but wants all of it.
    """
    return (
        isinstance(value, jax.Array)
        and not isinstance(value, jax.core.Tracer)
        and not value.is_fully_replicated
        and value.size > np.get_printoptions()["threshold"]
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

    They leave it together. If one of them fails, the others do so too, instead
    of waiting for it.

    Raises:
        RuntimeError: In the other processes, if one failed.
    """
    global_state.set_global_attribute(_SCOPE, True)
    try:
        yield
        _agree()
    except BaseException:
        if is_gathering():  # The others do not know yet.
            _agree(goes_well=False)
        raise
    finally:
        global_state.set_global_attribute(_SCOPE, False)


def _agree(goes_well=True):
    """Waits for all processes; if one failed, the scope is over for all."""
    flags = multihost_utils.process_allgather(np.int32(goes_well))
    failed = np.flatnonzero(flags == 0).tolist()
    if not failed:
        return
    global_state.set_global_attribute(_SCOPE, False)
    if goes_well:
        raise RuntimeError(
            f"Process {failed[0]} failed while all of them saved a model. Its "
            "error tells why."
        )


def gather(value):
    """Returns a sharded array in host memory, to one process.

    All processes have to call it in a `gathering` scope. If that one lacks a
    part, each device sends its own once to each process, a block at a time.

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
    if not value.size:
        return whole
    places = value.sharding.devices_indices_map(value.shape)
    if not _is_all_here(places):
        _receive(value, places, whole)
    elif is_writer():
        for shard in value.addressable_shards:
            whole[shard.index] = shard.data
    return whole


def _receive(value, places, whole):
    """Sends all shards to each process, and writes them into `whole` of one.

    Args:
        value: A `jax.Array`.
        places: The index of each device's shard in it, a dict.
        whole: A NumPy array of its shape.
    """
    mesh = _mesh_by_process(frozenset(places))
    shards = _side_by_side(value, mesh)
    shard_shape = value.sharding.shard_shape(value.shape)
    axis = int(np.argmax(shard_shape))
    size = shard_shape[axis]
    rows_bytes = value.dtype.itemsize * math.prod(shard_shape) // size
    step = min(size, max(1, _BLOCK_BYTES // (rows_bytes * mesh.shape["from"])))
    for start in range(0, size, step):
        # The last block overlaps, so that one program serves all.
        start = min(start, size - step)
        with programs.no_mesh():  # Another one may be in context.
            blocks = _exchange(mesh, step, axis)(shards, start)
        if not is_writer():
            blocks.block_until_ready()
            continue
        rows = (slice(None),) * axis + (slice(start, start + step),)
        for devices, column in _received(mesh, blocks):
            for device, block in zip(devices, column):
                whole[places[device]][rows] = block


def _is_all_here(places):
    """Whether the process that gets the values has each part itself."""
    held = {
        str(index)
        for device, index in places.items()
        if device.process_index == _WRITER
    }
    return held == set(map(str, places.values()))


@functools.lru_cache(maxsize=None)
def _mesh_by_process(devices):
    """A mesh with a row of devices for each process.

    Where processes have different numbers of these devices, each device has
    a row of its own.
    """
    devices = sorted(devices, key=lambda d: (d.process_index, d.id))
    counts = collections.Counter(d.process_index for d in devices).values()
    columns = max(counts) if len(set(counts)) == 1 else 1
    return jax.sharding.Mesh(
        np.reshape(devices, (-1, columns)), ("from", "column")
    )


def _side_by_side(value, mesh):
    """The shards of an array, joined as they are along their first axis."""
    of_device = {s.device: s.data for s in value.addressable_shards}
    sharding = NamedSharding(mesh, PartitionSpec(("from", "column")))
    first, *others = value.sharding.shard_shape(value.shape)
    return jax.make_array_from_single_device_arrays(
        (first * mesh.size, *others),
        sharding,
        [of_device[device] for device in sharding.addressable_devices],
    )


@functools.lru_cache(maxsize=256)
def _exchange(mesh, size, axis):
    """A program that sends a block of each shard along the mesh's columns."""

    def exchange(shard, start):
        block = lax.dynamic_slice_in_dim(shard, start, size, axis)
        return lax.all_gather(block, "from")

    return jax.jit(
        jax.shard_map(
            exchange,
            mesh=mesh,
            in_specs=(PartitionSpec(("from", "column")), PartitionSpec()),
            out_specs=PartitionSpec(None, "column"),
            check_vma=False,
        )
    )


def _received(mesh, blocks):
    """Yields the devices of each column and what they sent."""
    columns = {
        int(np.argwhere(mesh.devices == shard.device)[0, 1]): shard.data
        for shard in blocks.addressable_shards
    }
    for column, data in columns.items():
        yield mesh.devices[:, column], np.asarray(data)
