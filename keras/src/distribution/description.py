"""What a distribution makes of the variables of a model, before it does."""

import collections
import dataclasses
import io
import math
import re

import rich.box
import rich.console
import rich.markup
import rich.table

from keras.src import backend
from keras.src.api_export import keras_export
from keras.src.distribution import distribution_lib
from keras.src.distribution.description_plot import plot_description
from keras.src.utils import dtype_utils
from keras.src.utils import io_utils
from keras.src.utils import summary_utils


@dataclasses.dataclass(frozen=True)
class VariableDescription:
    """Where a variable is or will be.

    Attributes:
        path: The path of the variable, a string.
        shape: Its shape, a tuple of integers.
        dtype: Its dtype, a string.
        axes: For each dimension the mesh axis that shards it, a tuple of
            axis names, tuples of them and `None`.
        rule: The key of the `LayoutMap` that gave it its layout, or `None`.
            An optimizer's slot has the one of its variable.
        shard_bytes: What it takes on each device that has a part of it, in
            bytes, an integer.
        devices: These devices, a tuple of strings.
    """

    path: str
    shape: tuple
    dtype: str
    axes: tuple
    rule: str | None
    shard_bytes: int
    devices: tuple


@dataclasses.dataclass(frozen=True)
class DistributionDescription:
    """Where all variables of a model are or will be.

    Attributes:
        variables: A list of `VariableDescription`.
        device_bytes: What they take on each device, in bytes, a dictionary
            of integers by the name of the device.
        unmatched_variables: The paths of the variables that no rule of the
            `LayoutMap` matches and that have no layout of their own, a list
            of strings. Each device has all of them.
        unused_rules: The keys of the `LayoutMap` that match no variable, a
            list of strings.
    """

    variables: list
    device_bytes: dict
    unmatched_variables: list
    unused_rules: list

    plot = plot_description

    def __str__(self):
        # The table is as wide as it has to be: a path or a rule in two parts
        # cannot be searched for, or copied.
        console = rich.console.Console(
            file=io.StringIO(), highlight=False, width=10_000
        )
        console.print(self._table())
        by_size = collections.defaultdict(list)
        for device, size in self.device_bytes.items():
            by_size[size].append(device)
        for size, devices in by_size.items():
            lines = [f"{_readable(size)} on each of:", ", ".join(devices)]
            console.print("\n  ".join(lines), markup=False, width=120)
        for title, names in (
            ("Variables that no rule matches:", self.unmatched_variables),
            ("Rules that match no variable:", self.unused_rules),
        ):
            if names:
                console.print("\n  ".join([title, *names]), markup=False)
        return console.file.getvalue().rstrip()

    def _table(self):
        table = rich.table.Table(box=rich.box.SIMPLE_HEAD)
        for heading in ("variable", "shape", "dtype", "layout", "rule"):
            table.add_column(heading, overflow="fold")
        table.add_column("on each device", justify="right")
        for variable in self.variables:
            cells = (
                variable.path,
                str(variable.shape),
                variable.dtype,
                str(variable.axes),
                variable.rule or "",
                _readable(variable.shard_bytes),
            )
            table.add_row(*map(rich.markup.escape, cells))
        return table


@keras_export("keras.distribution.describe")
def describe(model, distribution=None, print_fn=None):
    """Tells what each device holds of a model, and which rule says so.

    Nothing has to be in memory yet: a model that is built in a
    `keras.StatelessScope(initialize_variables=False)` has variables without
    values, so whether it fits can be seen before it is made.

    Args:
        model: A model, a layer, an optimizer, or a list of variables, built.
        distribution: The distribution to describe it under. By default the
            current one. A variable that was made under another one keeps the
            layout that it has from that.
        print_fn: A function that is called with the text instead of printing
            it.

    Returns:
        A `DistributionDescription`, with the attributes `variables`,
        `device_bytes`, `unmatched_variables` and `unused_rules`, and a
        method `plot(to_file)` that draws them.

    Raises:
        ValueError: If there are no variables, the layout of one does not fit
            its shape or its mesh, or there is a distribution and the backend
            is not JAX.

    Example:

    >>> devices = keras.distribution.list_devices()
    >>> mesh = keras.distribution.DeviceMesh(
    ...     (len(devices),), ["model"], devices
    ... )
    >>> layouts = keras.distribution.LayoutMap(mesh)
    >>> layouts[".*kernel"] = (None, "model")
    >>> distribution = keras.distribution.ModelParallel(layout_map=layouts)
    >>> without_values = keras.StatelessScope(initialize_variables=False)
    >>> with without_values, distribution.scope():
    ...     dense = keras.layers.Dense(4096, name="dense")
    ...     dense.build((None, 8192))
    >>> description = keras.distribution.describe(
    ...     dense, distribution, print_fn=lambda text: None
    ... )
    >>> description.variables[0].rule
    '.*kernel'
    >>> description.unmatched_variables
    ['dense/bias']
    """
    variables = getattr(model, "variables", model)
    if not isinstance(variables, (list, tuple)) or not variables:
        raise ValueError(
            "`model` must have variables: build it first, or call it on data. "
            f"Received: model={model}"
        )
    distribution = distribution or distribution_lib.distribution()
    if distribution is not None and backend.backend() != "jax":
        raise ValueError(
            f"The {backend.backend()} backend does not distribute tensors, so "
            "each variable is on one device. Use the JAX backend "
            f'(`KERAS_BACKEND="jax"`). Received: distribution={distribution}'
        )
    layout_map = getattr(distribution, "_layout_map", None) or {}
    described = [_describe(v, distribution, layout_map) for v in variables]
    device_bytes = collections.Counter()
    for one in described:
        for device in one.devices:
            device_bytes[device] += one.shard_bytes
    unmatched = [
        one.path
        for one in described
        if layout_map and one.rule is None and not any(one.axes)
    ]
    used = {one.rule for one in described}
    unused = [rule for rule in layout_map if rule not in used]
    description = DistributionDescription(
        described, dict(device_bytes), unmatched, unused
    )
    (print_fn or io_utils.print_msg)(str(description))
    return description


def _readable(size):
    return summary_utils.readable_memory_size(size)


def _describe(variable, distribution, layout_map):
    layout = getattr(variable, "_layout", None)
    if layout is None and distribution is not None:
        layout = distribution.get_variable_layout(variable)
    path, shape = variable.path, tuple(variable.shape)
    axes, shard_shape, devices = (), shape, ("the default device",)
    if layout is not None and backend.backend() == "jax":
        mesh = getattr(distribution, "device_mesh", None)
        sharding, devices = _sharding(layout, mesh, shape, path)
        axes = tuple(getattr(sharding, "spec", ()))
        shard_shape = sharding.shard_shape(shape)
    dtype = backend.standardize_dtype(variable.dtype)
    return VariableDescription(
        path,
        shape,
        dtype,
        (*axes, *(None,) * (len(shape) - len(axes))),
        _rule(layout_map, path, layout),
        math.prod(shard_shape) * dtype_utils.dtype_size(dtype) // 8,
        devices,
    )


def _sharding(layout, mesh, shape, path):
    """The JAX sharding of a layout, and the names of its devices."""
    # The backend may be another one, which this module must not import.
    from keras.src.backend.jax import layouts

    mesh = getattr(layout, "device_mesh", None) or mesh
    if isinstance(layout, distribution_lib.TensorLayout) and mesh is not None:
        sizes = dict(zip(mesh.axis_names, mesh.shape))
        # The devices need not be those of this machine.
        sharding = layouts.abstract_sharding(layout.axes, sizes, shape, path)
        return sharding, tuple(map(str, mesh.devices.flatten()))
    sharding = layouts.to_sharding(layout, shape, path)
    devices = sorted(sharding.device_set, key=lambda device: device.id)
    return sharding, tuple(f"{each.platform}:{each.id}" for each in devices)


def _rule(layout_map, path, layout):
    """The key that a layout is from, or `None`."""
    keys = [key for key in layout_map if layout_map[key] is layout]
    for key in keys:
        if key == path or re.fullmatch(key, path):
            return key
    # An optimizer's slot has the layout of its variable, but another path.
    return keys[0] if len(keys) == 1 else None
