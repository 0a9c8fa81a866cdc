"""Runs functions so that their results are born in a sharding."""

import contextlib
import functools

import jax
import numpy as np
from jax.sharding import AxisType
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec

# What tells of meshes and traces is public since then.
_OLDEST_JAX = "0.10.0"

if jax.__version_info__ < tuple(map(int, _OLDEST_JAX.split("."))):
    raise ImportError(
        f"The JAX backend of this Keras needs JAX {_OLDEST_JAX} or newer: "
        f"`pip install --upgrade jax`. Received: jax {jax.__version__}"
    )


def run(fn, statics, arrays, sharding=None):
    """Computes `fn(*statics, *arrays)`, laid out by `sharding`.

    Eagerly, that is one compiled program for each `(fn, statics, sharding)`.
    While JAX traces, it becomes part of what is traced.

    Args:
        fn: A function that JAX can trace and that returns one array, which
            it lays out itself if there is a sharding.
        statics: Its leading arguments, a tuple of hashable values.
        arrays: Its other arguments, a sequence of small arrays and scalars,
            the same in each process.
        sharding: A `jax.sharding.Sharding`, or `None` for JAX's default.

    Returns:
        A `jax.Array`.
    """
    if is_tracing(*arrays):
        return fn(*statics, *arrays)
    if sharding is None:
        return _program(fn, statics, None)(*arrays)
    mesh = getattr(sharding, "mesh", None)
    # Another mesh may be in context, and JAX lets no function use two.
    # `jax.disable_jit` is for the user's functions; this has to be laid out.
    set_mesh = jax.set_mesh(mesh) if mesh is not None else no_mesh()
    with set_mesh, jax.disable_jit(False):
        arrays = [as_input(array, sharding) for array in arrays]
        result = _program(fn, statics, sharding)(*arrays)
    return result if result.size else _empty(result)


@functools.lru_cache(maxsize=1024)
def _program(fn, statics, sharding):
    return jax.jit(functools.partial(fn, *statics), out_shardings=sharding)


def _empty(result):
    """Makes an array without elements again.

    What a program of JAX returns is malformed: each device has all of it,
    whatever its sharding says, and reading it raises an error.
    """
    host_data = np.empty(result.shape, result.dtype)
    return jax.make_array_from_callback(
        result.shape, result.sharding, lambda index: host_data[index]
    )


def is_tracing(*arrays):
    """Whether a result computed from `arrays` would be a tracer."""
    if any(isinstance(array, jax.core.Tracer) for array in arrays):
        return True
    try:
        jax.sharding.get_mesh()
    except ValueError:  # JAX does not tell inside `jit`.
        return True
    return False


def eagerly():
    """Returns a context manager in which JAX does not trace, if it did."""
    return jax.core.eval_context()


def no_mesh():
    """Returns a context manager in which there is no mesh in context.

    Under `jax.set_mesh`, JAX runs all operations on all devices of the mesh.
    While it traces, the mesh stays.
    """
    if jax.sharding.get_abstract_mesh().empty or is_tracing():
        return contextlib.nullcontext()
    return jax.set_mesh(jax.sharding.Mesh(np.empty((), object), ()))


def constrain(x, sharding):
    """Lays out a traced array.

    Args:
        x: A traced array.
        sharding: A `jax.sharding.Sharding`, or `None` to leave it to JAX.

    Returns:
        The array.
    """
    return partitioned(lambda x: x, (x,), x.shape, sharding)


def partitioned(fn, args, shape, sharding):
    """Calls a function so that each device computes its part only; traced.

    XLA finds out how to divide the work. On a mesh with explicit axes, JAX
    would want every operation to say how, and those that cannot would leave
    all of the work to each device. So there, all axes are XLA's meanwhile.

    Args:
        fn: A function that JAX can trace and that returns one array.
        args: Its arguments, a sequence of arrays.
        shape: The shape of its result, a tuple of integers or of dimensions
            that are not known yet.
        sharding: A `jax.sharding.Sharding`, or `None` to leave it to JAX.

    Returns:
        The array, laid out by `sharding`.
    """
    if sharding is None:
        return fn(*args)
    mesh = getattr(sharding, "mesh", None)
    if mesh is None or not mesh.explicit_axes:
        return jax.lax.with_sharding_constraint(fn(*args), sharding)
    auto = mesh.update(axis_types=(AxisType.Auto,) * len(mesh.axis_names))

    def with_auto_axes(*args):
        return jax.lax.with_sharding_constraint(
            fn(*args), NamedSharding(auto, sharding.spec)
        )

    return jax.sharding.auto_axes(
        with_auto_axes,
        axes=mesh.explicit_axes,
        out_sharding=_explicit_part(sharding, shape),
    )(*args)


def _explicit_part(sharding, shape):
    """What the type of an array of this shape says of its sharding."""
    mesh, spec = sharding.mesh, []
    for size, entry in zip(shape, sharding.spec):
        axes = entry if isinstance(entry, tuple) else (entry,)
        axes = tuple(axis for axis in axes if axis in mesh.explicit_axes)
        # JAX cannot tell whether a dimension that is not known yet is divided.
        spec.append(axes if isinstance(size, int) else None)
    return NamedSharding(mesh, PartitionSpec(*spec))


def as_input(array, sharding):
    """Returns what a program on the devices of a sharding can be given.

    Args:
        array: A Python scalar, an array on these devices, or a small array
            on any others, which is the same in each process.
        sharding: A `jax.sharding.Sharding`.

    Returns:
        The scalar or array, as a NumPy array if it was on other devices.
    """
    if not isinstance(array, jax.Array):
        return array
    if array.sharding.device_set == sharding.device_set:
        return array
    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
        data = as_input(jax.random.key_data(array), sharding)
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(array))
    return np.asarray(array)
