"""The one place that turns whatever a user calls a layout into a sharding.

Everything else in the JAX backend takes the `jax.sharding.Sharding` that
`to_sharding` returns and never asks what it was made from.
"""

import functools
import math
import numbers
import operator

import jax
from jax import export as jax_export
from jax.experimental.layout import Format

from keras.src.backend.common import global_state
from keras.src.backend.jax import programs

_UNCONSTRAINED = jax.sharding.PartitionSpec.UNCONSTRAINED


def to_sharding(layout, shape=None, name=None):
    """Returns the JAX sharding that `layout` stands for.

    Args:
        layout: `None` or one of
            - a `keras.distribution.TensorLayout`, where one without a mesh
              takes the mesh of the current distribution;
            - a `jax.sharding.Sharding`, on a mesh with auto or explicit axes
              or on an abstract mesh;
            - a `jax.sharding.PartitionSpec` or a tuple of axis names, `None`
              for a dimension that is not sharded and a tuple for one that is
              sharded over several axes. The mesh is the one in context
              (`jax.set_mesh`), or else the current distribution's.
              `PartitionSpec.UNCONSTRAINED` is `None`, except while JAX traces;
            - a `jax.experimental.layout.Format`, of which this is the
              sharding: `memory_order` gives the rest.
        shape: The shape of the tensor, a tuple of integers, to check the
            layout against. It is not checked if `shape` is `None`.
        name: The path of the variable that is to be laid out, for errors.

    Returns:
        A `jax.sharding.Sharding`, or `None` if `layout` is. Its mesh is
        concrete, except inside a traced function that only knows an
        abstract one.

    Raises:
        ValueError: If `layout` is of another kind, has no mesh to refer to,
            has more entries than `shape` has dimensions, names an axis that
            the mesh lacks or names one twice, or shards a dimension into
            parts that are not equal.

    Example:

    >>> mesh = jax.make_mesh((jax.device_count(),), ("model",))
    >>> with jax.set_mesh(mesh):
    ...     to_sharding(("model", None), (1024, 64)).spec
    PartitionSpec('model', None)
    """
    if layout is None:
        return None
    # Imported here because `keras.distribution` imports the backend.
    from keras.src.distribution.distribution_lib import TensorLayout

    # Said in errors only: variables are born and assigned too often for more.
    describe = functools.partial(_describe, layout, shape, name)
    if isinstance(layout, Format):
        layout = layout.sharding
    if isinstance(layout, TensorLayout):
        mesh = layout.device_mesh
        mesh = mesh.backend_mesh if mesh else _current_mesh(describe)
        sharding = _named(mesh, layout.axes, describe)
    elif isinstance(layout, jax.sharding.NamedSharding):
        sharding = layout
    elif isinstance(layout, jax.sharding.Sharding):
        _check_parts(layout, shape, describe)
        return layout
    elif isinstance(layout, (tuple, jax.sharding.PartitionSpec)):
        sharding = _named(_current_mesh(describe), layout, describe)
    else:
        raise ValueError(
            "`layout` must be a `keras.distribution.TensorLayout`, a "
            "`jax.sharding.Sharding`, a `jax.sharding.PartitionSpec`, a "
            "`jax.experimental.layout.Format` or a tuple of axis names. "
            f"Received: {describe()}"
        )
    _check_spec(sharding, shape, describe)
    return _in_context(sharding, describe)


def as_shape(shape):
    """Returns a shape as the functions of this backend compute with it.

    Args:
        shape: A sequence of integers of any kind, or one integer.

    Returns:
        A tuple of Python integers and of JAX's dimensions that are not known
        yet.
    """
    try:
        sizes = tuple(shape)
    except TypeError:  # One integer.
        sizes = (shape,)
    return tuple(
        size if jax_export.is_symbolic_dim(size) else int(operator.index(size))
        for size in sizes
    )


def abstract_sharding(axes, mesh_shape, shape, name=None):
    """Returns the sharding of a tensor over devices that need not be there.

    Args:
        axes: A tuple of axis names, as for `to_sharding`.
        mesh_shape: The size of each axis of the mesh, a dict of integers.
        shape: The shape of the tensor, a tuple of integers.
        name: The path of the variable, for errors.

    Returns:
        A `jax.sharding.NamedSharding` on an abstract mesh, which tells the
        shape of a shard.

    Raises:
        ValueError: As `to_sharding`.

    Example:

    >>> sharding = abstract_sharding(("x", None), {"x": 256}, (1024, 64))
    >>> sharding.shard_shape((1024, 64))
    (4, 64)
    """
    mesh = jax.sharding.AbstractMesh(tuple(mesh_shape.values()), (*mesh_shape,))
    describe = functools.partial(_describe, axes, shape, name)
    sharding = _named(mesh, axes, describe)
    _check_spec(sharding, shape, describe)
    return sharding


def memory_order(layout):
    """Returns the device-local memory layout that a `Format` asks for.

    Args:
        layout: Anything that `to_sharding` accepts.

    Returns:
        A `jax.experimental.layout.Layout`, or `None` where `layout` leaves
        the order of elements in memory to JAX.
    """
    return layout.layout if isinstance(layout, Format) else None


def with_mesh(layout, shape, name=None):
    """Returns a layout that means the same wherever it is used later.

    Args:
        layout: Anything that `to_sharding` accepts.
        shape: As for `to_sharding`.
        name: As for `to_sharding`.

    Returns:
        `layout`, or the sharding that it stands for here if that depends on
        the mesh in context or the current distribution.

    Raises:
        ValueError: As `to_sharding`.
    """
    sharding = to_sharding(layout, shape, name)
    is_abstract = isinstance(
        getattr(layout, "mesh", None), jax.sharding.AbstractMesh
    )
    if isinstance(layout, jax.sharding.Sharding) and not is_abstract:
        return layout
    if isinstance(layout, Format) or getattr(layout, "device_mesh", None):
        return layout
    return sharding


def with_axis_type(sharding, axis_type):
    """Returns the same sharding on a mesh whose axes are of another type.

    Args:
        sharding: A `NamedSharding` on a concrete mesh.
        axis_type: A `jax.sharding.AxisType`.

    Returns:
        A `NamedSharding`.
    """
    mesh = sharding.mesh
    types = (axis_type,) * len(mesh.axis_names)
    if mesh.axis_types == types:
        return sharding
    mesh = jax.sharding.Mesh(mesh.devices, mesh.axis_names, types)
    return jax.sharding.NamedSharding(
        mesh, sharding.spec, memory_kind=sharding.memory_kind
    )


def distribution_mesh():
    """Returns the JAX mesh of the current distribution, or `None`."""
    distribution = global_state.get_global_attribute("distribution")
    mesh = getattr(distribution, "device_mesh", None)
    return mesh.backend_mesh if mesh is not None else None


def replicated(sharding):
    """Returns the sharding of a whole copy on each device of `sharding`."""
    if isinstance(sharding, jax.sharding.NamedSharding):
        return jax.sharding.NamedSharding(
            sharding.mesh, jax.sharding.PartitionSpec()
        )
    if len(sharding.device_set) == 1:
        return sharding
    mesh = jax.sharding.Mesh(list(sharding.device_set), ("devices",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())


def _current_mesh(describe):
    context = jax.sharding.get_abstract_mesh()
    if not context.empty:
        return _concrete(context) or context
    mesh = distribution_mesh()
    if mesh is None:
        raise ValueError(
            "A layout without a mesh needs one in context: use it under "
            "`jax.set_mesh(mesh)` or set a distribution with a device mesh "
            "by `keras.distribution.set_distribution`. "
            f"Received: {describe()}"
        )
    return mesh


def _named(mesh, axes, describe):
    try:
        spec = jax.sharding.PartitionSpec(*axes)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "A layout must have for each dimension `None`, the name of a "
            "mesh axis or a tuple of such names. "
            f"Received: {describe(mesh)}"
        ) from error
    _check_axes(mesh, spec, describe)
    return jax.sharding.NamedSharding(mesh, spec)


def _axes_of(entry):
    """The mesh axes that one entry of a `PartitionSpec` names."""
    if entry is None or entry is _UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def _check_axes(mesh, spec, describe):
    seen = set()
    for axis in (axis for entry in spec for axis in _axes_of(entry)):
        problem = None
        if axis not in mesh.shape:
            problem = f"The mesh has no axis {axis!r}"
        elif axis in seen:
            problem = f"The mesh axis {axis!r} can shard one dimension only"
        if problem:
            raise ValueError(f"{problem}. Received: {describe(mesh)}")
        seen.add(axis)


def _check_spec(sharding, shape, describe):
    mesh = sharding.mesh
    problem = shape is not None and _misfit(mesh, sharding.spec, shape)
    if problem:
        raise ValueError(f"{problem}. Received: {describe(mesh)}")


def _misfit(mesh, spec, shape):
    """Says why a spec does not fit a shape, or returns `None` if it does."""
    if len(spec) > len(shape):
        return (
            f"A layout of {len(spec)} entries does not fit a tensor of "
            f"{len(shape)} dimensions"
        )
    for dimension, (size, entry) in enumerate(zip(shape, spec)):
        parts = math.prod(mesh.shape[axis] for axis in _axes_of(entry))
        if isinstance(size, numbers.Integral) and size % parts:
            axes = " * ".join(repr(axis) for axis in _axes_of(entry))
            return (
                f"Dimension {dimension} of size {size} cannot be split into "
                f"the {parts} equal parts that mesh axis {axes} asks for"
            )
    return None


def _check_parts(sharding, shape, describe):
    if shape is None:
        return
    try:
        sharding.shard_shape(tuple(shape))
    except ValueError as error:
        raise ValueError(
            f"The layout does not fit the shape: {error} Received: {describe()}"
        ) from error


def _in_context(sharding, describe):
    """Puts `sharding` where it can be used: on the mesh in context, if equal.

    The same devices under the same axis names can be in context with axes of
    other types (auto or explicit) than in the layout, or as an abstract mesh.
    JAX refuses to mix them, so the mesh in context wins.
    """
    mesh, context = sharding.mesh, jax.sharding.get_abstract_mesh()
    axis_types, is_tracing = mesh.axis_types, programs.is_tracing()
    if not context.empty and _same_axes(context, mesh):
        axis_types = context.axis_types
        if isinstance(mesh, jax.sharding.AbstractMesh):
            mesh = _concrete(context) or context
    elif isinstance(mesh, jax.sharding.AbstractMesh):
        mesh = _concrete(mesh)
        if mesh is None:
            raise ValueError(
                "The layout is on an abstract mesh, and neither the mesh in "
                "context (`jax.set_mesh`) nor the current distribution's has "
                "its shape and axes. "
                f"Received: {describe(sharding.mesh)}"
            )
    if is_tracing and context.empty:
        # In a traced function, axes are explicit by the context or not at all.
        axis_types = (jax.sharding.AxisType.Auto,) * len(axis_types)
    if mesh.axis_types != axis_types:
        mesh = jax.sharding.Mesh(mesh.devices, mesh.axis_names, axis_types)
    spec = sharding.spec
    if not is_tracing and _UNCONSTRAINED in spec:
        spec = [None if axes is _UNCONSTRAINED else axes for axes in spec]
        spec = jax.sharding.PartitionSpec(*spec)
    if mesh is sharding.mesh and spec is sharding.spec:
        return sharding
    return jax.sharding.NamedSharding(
        mesh, spec, memory_kind=sharding.memory_kind
    )


def _concrete(abstract):
    """The devices behind an abstract mesh, or `None` if nothing tells them."""
    try:
        in_context = jax.sharding.get_mesh()
    except ValueError:  # JAX does not tell while it traces.
        in_context = None
    for mesh in (in_context, distribution_mesh()):
        if mesh is not None and _same_axes(mesh, abstract):
            return jax.sharding.Mesh(
                mesh.devices, mesh.axis_names, abstract.axis_types
            )
    return None


def _same_axes(a, b):
    return tuple(a.shape.items()) == tuple(b.shape.items())


def _describe(layout, shape, name, mesh=None):
    """Says in errors what was asked for, and on which mesh if that matters."""
    if hasattr(layout, "axes") and hasattr(layout, "device_mesh"):
        layout = f"TensorLayout(axes={tuple(layout.axes)})"
    parts = [f"path='{name}'"] if name else []
    if shape is not None:
        parts.append(f"shape={tuple(shape)}")
    parts.append(f"layout={layout}")
    if mesh is not None:
        sizes = ", ".join(f"{axis}={n}" for axis, n in mesh.shape.items())
        parts.append(f"mesh=({sizes})")
    return ", ".join(parts)
