"""How a variable gets its first value, in its layout from the start.

`initial_value` is the one road for every variable of the JAX backend. While
it calls an initializer, random draws ask `variable_being_born` what for, which
is how an initializer that knows no layout draws into one all the same.
"""

import contextlib
import functools
import inspect
import math
from typing import NamedTuple

import jax
import numpy as np
from jax.experimental.layout import Format
from jax.extend.core import get_opaque_trace_state

from keras.src.backend.common import global_state
from keras.src.backend.jax import layouts
from keras.src.backend.jax import placement
from keras.src.backend.jax import programs
from keras.src.backend.jax import tracing

# Up to this many elements, a value costs less to make on the host and to send
# than a program of its own costs to compile, even if it runs just once.
SMALL = 2**20

# Where Keras defines its initializers.
_BUILT_IN = {
    "keras.src.initializers.constant_initializers",
    "keras.src.initializers.random_initializers",
}

_SCOPE = "jax_variable_being_born"


class Birth(NamedTuple):
    """What a variable that is being initialized will be.

    Attributes:
        shape: Its shape, a tuple of integers.
        sharding: Its `jax.sharding.Sharding`, or `None`.
        trace: What JAX was tracing when its initializer was called.
    """

    shape: tuple
    sharding: object
    trace: object


def variable_being_born():
    """Returns the `Birth` that is in progress in this thread, or `None`.

    Inside a function that the initializer jits, it has no sharding: JAX keeps
    what it traced there for the next call, which may be for another variable.
    """
    birth = global_state.get_global_attribute(_SCOPE)
    if birth is None or birth.sharding is None:
        return birth
    if birth.trace == get_opaque_trace_state():
        return birth
    return birth._replace(sharding=None)


def layout_checked(initialize_layout):
    """Decorates `_initialize_layout` of variables.

    Whatever the layout is, it fits the shape from then on, and has its mesh:
    what is in context when the variable is assigned no longer matters.

    Args:
        initialize_layout: A method without arguments that sets `self._layout`.

    Returns:
        Such a method.
    """

    @functools.wraps(initialize_layout)
    def _initialize_layout(self):
        initialize_layout(self)
        self._layout = layouts.with_mesh(self._layout, self._shape, self.path)

    return _initialize_layout


def is_small(shape):
    """Whether values of this shape are made on the host."""
    return math.prod(shape) <= SMALL


def initial_value(initializer, shape, dtype, layout=None, name=None):
    """Calls an initializer so that its result is born in a layout.

    Args:
        initializer: A callable `initializer(shape, dtype)`, which may take
            `layout` too.
        shape: The shape of the variable, a tuple of integers.
        dtype: Its dtype, a string.
        layout: Its layout, anything `layouts.to_sharding` accepts, or `None`.
        name: Its path, for errors.

    Returns:
        The value: a JAX array laid out by `layout`, or whatever the
        initializer returns if there is no layout.

    Raises:
        ValueError: If the layout does not fit the shape, or the value that
            the initializer returns has another shape.
    """
    sharding = layouts.to_sharding(layout, shape, name)
    if sharding is None:
        with _birth(shape, None):
            return _call(initializer, shape, dtype)
    value = _made_for(initializer, shape, dtype, sharding)
    if np.shape(value) != tuple(shape):
        raise ValueError(
            "An initializer must return a value of the shape that it is "
            f"called with. Received: path='{name}', shape={tuple(shape)}, "
            f"layout={layout}, initializer={initializer}, whose value has "
            f"shape={np.shape(value)}"
        )
    value = _spread(value, sharding)
    order = layouts.memory_order(layout)
    if order is None:
        return value
    return jax.device_put(value, Format(order, sharding))


def computed_as_a_whole(initializer, shape, dtype, layout):
    """Calls an initializer whose algorithm needs all of its result.

    It runs on one device, as it does without a layout, and its result is sent
    to each device in parts.

    Args:
        initializer: A callable `initializer(shape, dtype)`.
        shape: The shape of its value, a tuple of integers.
        dtype: The dtype of its value, a string.
        layout: Anything `layouts.to_sharding` accepts.

    Returns:
        A JAX array laid out by `layout`.

    Raises:
        ValueError: If the layout does not fit the shape.
    """
    sharding = layouts.to_sharding(layout, shape)
    return _spread(_as_a_whole(initializer, shape, dtype), sharding)


def _made_for(initializer, shape, dtype, sharding):
    """Calls an initializer for what will be laid out by `sharding`.

    Returns:
        The value, which can still be anywhere if it is small or if it could
        only be made as a whole.
    """
    if _is_built_in(initializer):
        with programs.no_mesh(), _birth(shape, sharding):
            return _call(initializer, shape, dtype, layout=sharding)
    if "layout" in _parameters(initializer):
        value = _with_explicit_layout(initializer, shape, dtype, sharding)
        if value is not None:
            return value
        initializer = functools.partial(initializer, layout=None)
    if programs.is_tracing():
        with _birth(shape, sharding):
            return _call(initializer, shape, dtype)
    if is_small(shape):
        return _as_a_whole(initializer, shape, dtype)
    return _by_tracing(initializer, shape, dtype, sharding)


def _spread(value, sharding):
    """Lays out the value of an initializer, which may be anywhere."""
    if programs.is_tracing():
        return placement.distribute(value, sharding)
    if hasattr(value, "__jax_array__"):
        value = value.__jax_array__()
    if isinstance(value, jax.Array) and value.sharding == sharding:
        return value
    if not isinstance(value, jax.Array) or len(value.sharding.device_set) == 1:
        return placement.place(value, sharding)
    return jax.device_put(value, sharding)


@contextlib.contextmanager
def _birth(shape, sharding):
    outer = global_state.get_global_attribute(_SCOPE)
    birth = Birth(tuple(shape), sharding, get_opaque_trace_state())
    global_state.set_global_attribute(_SCOPE, birth)
    try:
        yield
    finally:
        global_state.set_global_attribute(_SCOPE, outer)


def _parameters(initializer):
    try:
        return inspect.signature(initializer).parameters
    except (TypeError, ValueError):  # Some built-in functions do not tell.
        return {}


def _call(initializer, shape, dtype, **layout):
    if _is_built_in(initializer):
        return initializer(shape, dtype=dtype, **layout)
    parameters = _parameters(initializer)
    by_name = not parameters or any(
        p.kind is p.VAR_KEYWORD
        or (p.name == "dtype" and p.kind is not p.POSITIONAL_ONLY)
        for p in parameters.values()
    )
    if by_name:
        return initializer(shape, dtype=dtype, **layout)
    return initializer(shape, dtype, **layout)


def _is_built_in(initializer):
    """Whether it is Keras's own `__call__` that would run.

    Those take a concrete sharding and compile no program for themselves. A
    user's may hand its layout to `jax.numpy` as `out_sharding`.
    """
    module = getattr(type(initializer).__call__, "__module__", None)
    return module in _BUILT_IN


def _with_explicit_layout(initializer, shape, dtype, sharding):
    """Calls an initializer that takes a layout and is not Keras's.

    JAX honours `out_sharding` on meshes with explicit axes only. Run eagerly
    there, its random draws make a copy of the array on each device, so the
    call is traced.

    Returns:
        The value, or `None` if it cannot be had like this.
    """
    if not isinstance(sharding, jax.sharding.NamedSharding):
        return None
    if programs.is_tracing():
        mesh = getattr(sharding.mesh, "abstract_mesh", sharding.mesh)

        @jax.sharding.explicit_axes
        def explicit():
            mesh = jax.sharding.get_abstract_mesh()
            layout = jax.sharding.NamedSharding(mesh, sharding.spec)
            with _birth(shape, None):
                return _call(initializer, shape, dtype, layout=layout)

        with jax.sharding.use_abstract_mesh(mesh):
            return explicit(in_sharding=None)

    sharding = layouts.with_axis_type(sharding, jax.sharding.AxisType.Explicit)

    def call():
        with _birth(shape, sharding):
            return _call(initializer, shape, dtype, layout=sharding)

    traced = tracing.trace(call, sharding)
    if traced is None or tracing.device_to_run_on(traced, sharding):
        return None
    return tracing.run(traced, shape, sharding)


def _by_tracing(initializer, shape, dtype, sharding):
    """Calls an initializer that knows of no layout."""
    if isinstance(sharding, jax.sharding.NamedSharding):
        # It could not cope with explicit axes, and need not know of others.
        sharding = layouts.with_axis_type(sharding, jax.sharding.AxisType.Auto)

    def call():
        with _birth(shape, sharding):
            return _call(initializer, shape, dtype)

    traced = tracing.trace(call, sharding)
    if traced is None:
        return _as_a_whole(initializer, shape, dtype, tracing.host())
    return tracing.run(traced, shape, sharding)


def _as_a_whole(initializer, shape, dtype, device=None):
    """Calls an initializer eagerly, on one device if it is all the same to it.

    If something is wrong with the initializer, that is raised here.
    """
    has_mesh = not jax.sharding.get_abstract_mesh().empty
    with _birth(shape, None):
        try:
            with programs.no_mesh(), _on(device):
                return _call(initializer, shape, dtype)
        except Exception:
            if not has_mesh:
                raise
        # It may count on the mesh in context.
        return _call(initializer, shape, dtype)


def _on(device):
    return jax.default_device(device) if device else contextlib.nullcontext()
