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
import jax.numpy as jnp
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

# Programs of initializers that are traced, by their text and sharding.
_programs = {}
_MAX_PROGRAMS = 256

# JAX primitives that call back to Python.
_CALLBACKS = {"pure_callback", "io_callback"}

# JAX primitives that need a whole matrix.
_FACTORIZATIONS = {
    "cholesky",
    "eig",
    "eigh",
    "geqp3",
    "geqrf",
    "hessenberg",
    "householder_product",
    "lu",
    "qr",
    "schur",
    "svd",
    "triangular_solve",
    "tridiagonal",
}

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
    if np.shape(value) != tuple(shape):
        raise ValueError(
            "An initializer must return a value of the shape that it is "
            f"called with. Received: path='{name}', shape={tuple(shape)}, "
            f"layout={layout}, initializer={initializer}, whose value has "
            f"shape={np.shape(value)}"
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
        with _birth(shape, None), jax.default_device(_host()):
            value = _call(initializer, shape, dtype)
        return placement.place(value, sharding)
    value = results[-1]
    is_traced = isinstance(value, jax.core.Tracer)
    if np.shape(value) != tuple(shape):
        return value  # For `initial_value` to refuse.
    if device := _device_to_run_on(traced):
        outputs = _run_on_one_device(traced, device)
        if is_traced:
            outputs[0] = placement.place(outputs[0], sharding)
    else:
        outputs = _run_sharded(traced, is_traced, sharding)
    for (variable, _), state in zip(scope.updates(), outputs[is_traced:]):
        variable.assign(np.asarray(state))
    return outputs[0] if is_traced else placement.place(value, sharding)


def _run_sharded(traced, has_value, sharding):
    """Runs a traced initializer as one program, laid out by `sharding`.

    Returns its outputs: the value, if it `has_value`, and random states.
    """

    def call(consts):
        zero = rounding.unknown_zero()
        return rounding.replay(
            traced.jaxpr, consts, [], each=lambda x: rounding.fence(x, zero)
        )

    states = len(traced.out_avals) - has_value
    program = jax.jit(
        call,
        out_shardings=[sharding] * has_value
        + [layouts.replicated(sharding)] * states,
    )
    consts = [programs.as_input(const, sharding) for const in traced.consts]
    lowered = program.lower(consts)
    # Layers make initializers of their own, so many an initializer is another
    # object with the same program.
    key = (lowered.as_text(), sharding)
    if key not in _programs:
        if len(_programs) >= _MAX_PROGRAMS:
            _programs.clear()
        _programs[key] = lowered.compile()
    return _programs[key](consts)


def _run_on_one_device(traced, device):
    """Runs a traced initializer one operation at a time."""

    def gathered(x):
        is_spread = isinstance(x, jax.Array) and len(x.sharding.device_set) > 1
        return jnp.asarray(np.asarray(x)) if is_spread else x

    with jax.default_device(device):
        consts = [np.asarray(const) for const in traced.consts]
        return rounding.replay(traced.jaxpr, consts, [], each=gathered)


def _device_to_run_on(traced):
    """The one device that a traced initializer has to run on, or `None`.

    Host data that it closes over should not become constants of a program,
    and a call back to Python takes whole arrays: both are for the host. A
    matrix factorization is not partitioned by XLA, which would do all of it
    on each device; it runs where it would without a layout.
    """
    names, has_big_constants = set(), False
    pending = [(traced.jaxpr, traced.consts)]
    while pending:
        jaxpr, consts = pending.pop()
        has_big_constants |= any(c.nbytes > _MAX_CONSTANT_BYTES for c in consts)
        names.update(equation.primitive.name for equation in jaxpr.eqns)
        pending.extend(_inner_jaxprs(jaxpr))
    if has_big_constants or names & _CALLBACKS:
        return _host()
    return jax.devices()[0] if names & _FACTORIZATIONS else None


def _inner_jaxprs(jaxpr):
    """The functions that a traced function calls, with their constants."""
    for equation in jaxpr.eqns:
        for param in jax.tree.leaves(list(equation.params.values())):
            inner = getattr(param, "jaxpr", param)
            if hasattr(inner, "eqns"):
                yield inner, getattr(param, "consts", ())


def _host():
    return jax.local_devices(backend="cpu")[0]
