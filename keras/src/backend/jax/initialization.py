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

from keras.src.backend.common import global_state
from keras.src.backend.common.random_state_scope import RandomStateScope
from keras.src.backend.jax import layouts
from keras.src.backend.jax import placement
from keras.src.backend.jax import programs
from keras.src.backend.jax import rounding

# Up to this many elements, a value costs less to make on the host and to send
# than a program of its own costs to compile, even if it runs just once.
SMALL = 2**22

# A program is not given more bytes of constants than this.
_MAX_CONSTANT_BYTES = 2**20

# Programs of initializers that are traced, by their text and sharding.
_programs = {}
_MAX_PROGRAMS = 256

_SCOPE = "jax_variable_being_born"


class Birth(NamedTuple):
    """What a variable that is being initialized will be.

    Attributes:
        shape: Its shape, a tuple of integers.
        sharding: Its `jax.sharding.Sharding`, or `None`.
    """

    shape: tuple
    sharding: object


def variable_being_born():
    """Returns the `Birth` that is in progress in this thread, or `None`."""
    return global_state.get_global_attribute(_SCOPE)


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
    value = _laid_out(initializer, shape, dtype, sharding)
    if tuple(value.shape) != tuple(shape):
        raise ValueError(
            "An initializer must return a value of the shape that it is "
            f"called with. Received: path='{name}', shape={tuple(shape)}, "
            f"layout={layout}, initializer={initializer}, whose value has "
            f"shape={tuple(value.shape)}"
        )
    order = layouts.memory_order(layout)
    return value if order is None else jax.device_put(value, layout)


def _laid_out(initializer, shape, dtype, sharding):
    takes_layout = "layout" in _parameters(initializer)
    if takes_layout and _is_built_in(initializer):
        with _birth(shape, sharding):
            return _call(initializer, shape, dtype, layout=sharding)
    if programs.is_tracing():
        layout = {"layout": sharding} if takes_layout else {}
        with _birth(shape, sharding):
            return _call(initializer, shape, dtype, **layout)
    if takes_layout:
        return _with_explicit_layout(initializer, shape, dtype, sharding)
    if is_small(shape):
        with _birth(shape, None):
            value = _call(initializer, shape, dtype)
        return placement.place(value, sharding)
    return _traced(initializer, shape, dtype, sharding)


@contextlib.contextmanager
def _birth(shape, sharding):
    outer = variable_being_born()
    global_state.set_global_attribute(_SCOPE, Birth(tuple(shape), sharding))
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
    parameters = _parameters(initializer)
    keyword = "dtype" in parameters or any(
        p.kind is p.VAR_KEYWORD for p in parameters.values()
    )
    if keyword or not parameters:
        return initializer(shape, dtype=dtype, **layout)
    return initializer(shape, dtype, **layout)


def _is_built_in(initializer):
    """Whether it is Keras's own `__call__` that would run.

    Those take a concrete sharding and compile no program for themselves. A
    user's may hand its layout to `jax.numpy` as `out_sharding`.
    """
    module = getattr(type(initializer).__call__, "__module__", None) or ""
    return module.startswith("keras.src.initializers.")


def _with_explicit_layout(initializer, shape, dtype, sharding):
    """Calls an initializer that takes a layout and is not Keras's.

    JAX honours `out_sharding` on meshes with explicit axes only. Run eagerly
    there, its random draws make a copy of the array on each device, so the
    call is traced.
    """
    if not isinstance(sharding, jax.sharding.NamedSharding):
        with _birth(shape, sharding):
            return _call(initializer, shape, dtype, layout=sharding)

    @jax.sharding.explicit_axes
    def explicit():
        mesh = jax.sharding.get_abstract_mesh()
        layout = jax.sharding.NamedSharding(mesh, sharding.spec)
        return _call(initializer, shape, dtype, layout=layout)

    with jax.set_mesh(sharding.mesh):
        return _traced(
            lambda *_, **__: explicit(in_sharding=None), shape, dtype, sharding
        )


def _traced(initializer, shape, dtype, sharding):
    """Calls an initializer while tracing it, and runs what it did.

    The random state that it draws from, whether the global generator's or
    some `SeedGenerator`'s, comes out of the program as a value.
    """
    scope = RandomStateScope(jax.ensure_compile_time_eval)
    results = []

    def call():
        with scope, _birth(shape, sharding):
            value = _call(initializer, shape, dtype)
        results.append(value)
        states = [state for _, state in scope.updates()]
        is_traced = isinstance(value, jax.core.Tracer)
        return ([value] if is_traced else []) + states

    try:
        traced = jax.make_jaxpr(call)()
    except Exception:
        # Whatever it is that cannot be traced: if it is wrong eagerly too,
        # it is raised again here.
        with _birth(shape, None), _on_host():
            value = _call(initializer, shape, dtype)
        return placement.place(value, sharding)
    is_traced = isinstance(results[-1], jax.core.Tracer)
    variables = [variable for variable, _ in scope.updates()]
    if _belongs_on_host(traced.jaxpr, traced.consts):
        with _on_host():
            consts = [programs.as_host_data(const) for const in traced.consts]
            outputs = jax.extend.core.jaxpr_as_fun(
                jax.extend.core.ClosedJaxpr(traced.jaxpr, consts)
            )()
        if is_traced:
            outputs[0] = placement.place(outputs[0], sharding)
    else:
        outputs = _run(traced, [sharding] * is_traced, sharding)
    states = outputs[is_traced:]
    for variable, state in zip(variables, states):
        variable.assign(np.asarray(state))
    return outputs[0] if is_traced else placement.place(results[-1], sharding)


def _on_host():
    return jax.default_device(jax.local_devices(backend="cpu")[0])


def _belongs_on_host(jaxpr, consts):
    """Whether a program would embed much host data or call back to Python."""
    if any(const.nbytes > _MAX_CONSTANT_BYTES for const in consts):
        return True
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name.endswith("callback") and name != "debug_callback":
            return True
    return any(
        _belongs_on_host(inner, getattr(outer, "consts", ()))
        for outer, inner in _inner_jaxprs(jaxpr)
    )


def _inner_jaxprs(jaxpr):
    for equation in jaxpr.eqns:
        for param in jax.tree.leaves(list(equation.params.values())):
            if hasattr(param, "eqns"):
                yield param, param
            elif hasattr(getattr(param, "jaxpr", None), "eqns"):
                yield param, param.jaxpr


def _run(traced, value_shardings, sharding):
    states = len(traced.out_avals) - len(value_shardings)
    program = jax.jit(
        functools.partial(rounding.replay, traced.jaxpr, inputs=[]),
        out_shardings=value_shardings + [layouts.replicated(sharding)] * states,
    )
    consts = [programs.as_host_data(const) for const in traced.consts]
    lowered = program.lower(consts)
    # Layers make initializers of their own, so many an initializer is another
    # object with the same program.
    key = (lowered.as_text(), sharding)
    if key not in _programs:
        if len(_programs) >= _MAX_PROGRAMS:
            _programs.clear()
        _programs[key] = lowered.compile()
    return _programs[key](consts)
