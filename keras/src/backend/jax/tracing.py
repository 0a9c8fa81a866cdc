"""Runs an initializer once, as JAX traces it, and then what it did."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from keras.src.backend.common.random_state_scope import RandomStateScope
from keras.src.backend.jax import layouts
from keras.src.backend.jax import programs
from keras.src.backend.jax import rounding

# A program is not given more bytes of constants than this.
_MAX_CONSTANT_BYTES = 2**20

# Compiled programs by their text and sharding.
_programs = {}
_MAX_PROGRAMS = 256

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


class Traced(NamedTuple):
    """What a function did.

    Attributes:
        program: A `jax.extend.core.ClosedJaxpr` without inputs. Its outputs
            are the value, unless that is known already, and random states.
        value: The value, if it did not depend on the program, else `None`.
        shape: The shape of the value.
        states: The variables that the random states are for.
    """

    program: object
    value: object
    shape: tuple
    states: list


def trace(fn, sharding):
    """Traces a function.

    The random state that it draws from, whether the global generator's or
    some `SeedGenerator`'s, comes out of the program as a value.

    Args:
        fn: A function without arguments that returns a tensor.
        sharding: The `jax.sharding.Sharding` that its value is for.

    Returns:
        A `Traced`, or `None` if JAX cannot trace the function, or if the user
        wants nothing traced (`jax.disable_jit`).
    """
    if jax.config.jax_disable_jit:
        return None
    known = []

    def call():
        # No tracer is kept when this is over.
        with RandomStateScope(jax.ensure_compile_time_eval) as scope:
            value = fn()
        updates = scope.updates()
        is_known = not isinstance(value, jax.core.Tracer)
        known[:] = [
            value if is_known else None,
            np.shape(value),
            [variable for variable, _ in updates],
        ]
        return [value] * (not is_known) + [state for _, state in updates]

    try:
        with _mesh_in_context(sharding):
            program = jax.make_jaxpr(call)()
    except Exception:
        return None
    return Traced(program, *known)


def run(traced, shape, sharding):
    """Runs what a traced function did, and assigns the random states.

    Args:
        traced: A `Traced`.
        shape: The shape that its value has to be of, a tuple of integers.
        sharding: A `jax.sharding.Sharding` for the value.

    Returns:
        The value: a JAX array, laid out by `sharding` if that is possible,
        or whatever the function returned. If it is of another shape, its
        `jax.ShapeDtypeStruct` only.
    """
    if traced.shape != tuple(shape):
        return jax.ShapeDtypeStruct(traced.shape, np.float32)
    device = device_to_run_on(traced, sharding)
    if device is None:
        outputs = _run_sharded(traced, sharding)
    else:
        outputs = _run_on_one_device(traced.program, device)
    first_state = len(outputs) - len(traced.states)
    for variable, state in zip(traced.states, outputs[first_state:]):
        variable.assign(np.asarray(state))
    return outputs[0] if first_state else traced.value


def device_to_run_on(traced, sharding):
    """Returns the one device that a program has to run on, or `None`.

    Host data that it closes over should not become constants of a program,
    and a call back to Python takes whole arrays: both are for the host. A
    matrix factorization is not partitioned by XLA, which would do all of it
    on each device; it runs where it would without a layout.

    Args:
        traced: A `Traced`.
        sharding: A `jax.sharding.Sharding` for the value.

    Returns:
        A JAX device, or `None` if the program can be partitioned.
    """
    names, has_big_constants = set(), False
    pending = [(traced.program.jaxpr, traced.program.consts)]
    while pending:
        jaxpr, consts = pending.pop()
        has_big_constants |= any(
            const.nbytes > _MAX_CONSTANT_BYTES
            for const in consts
            if getattr(const, "sharding", None) is None
            or const.sharding.device_set != sharding.device_set
        )
        names.update(equation.primitive.name for equation in jaxpr.eqns)
        pending.extend(_inner_jaxprs(jaxpr))
    # Of effects, JAX orders those on one device only.
    if has_big_constants or traced.program.effects or "pure_callback" in names:
        return host()
    if names & _FACTORIZATIONS:
        return jax.device_put(np.zeros(())).device
    return None


def host():
    """Returns the CPU device of this process."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:  # JAX was told to use an accelerator only.
        return jax.local_devices()[0]


def _mesh_in_context(sharding):
    mesh = getattr(sharding, "mesh", None)
    return programs.no_mesh() if mesh is None else jax.set_mesh(mesh)


def _run_sharded(traced, sharding):
    """Runs a program so that the value is laid out by `sharding`."""
    program, states = traced.program, len(traced.states)

    def call(consts):
        each = rounding.fences()
        return rounding.replay(program.jaxpr, consts, [], each=each)

    out_shardings = [sharding] * (len(program.out_avals) - states)
    out_shardings += [layouts.replicated(sharding)] * states
    consts = [programs.as_input(const, sharding) for const in program.consts]
    with _mesh_in_context(sharding):
        lowered = jax.jit(call, out_shardings=out_shardings).lower(consts)
        # Layers make initializers of their own, so many an initializer is
        # another object with the same program.
        key = (lowered.as_text(), sharding)
        compiled = _programs.get(key)
        if compiled is None:
            if len(_programs) >= _MAX_PROGRAMS:
                _programs.clear()
            compiled = _programs[key] = lowered.compile()
        return compiled(consts)


def _run_on_one_device(program, device):
    """Runs a program there, one operation after the other."""
    sharding = jax.sharding.SingleDeviceSharding(device)
    with programs.no_mesh(), jax.default_device(device):
        consts = [
            programs.as_input(const, sharding) for const in program.consts
        ]
        return rounding.replay(program.jaxpr, consts, [], each=_gathered)


def _gathered(x):
    """A copy on the default device of what the program laid out."""
    if not isinstance(x, jax.Array) or len(x.sharding.device_set) == 1:
        return x
    if not x.is_fully_addressable:
        x = jax.device_put(x, layouts.replicated(x.sharding)).addressable_data(
            0
        )
    return jnp.asarray(np.asarray(x))


def _inner_jaxprs(jaxpr):
    """The functions that a traced function calls, with their constants."""
    for equation in jaxpr.eqns:
        for param in jax.tree.leaves(list(equation.params.values())):
            inner = getattr(param, "jaxpr", param)
            if hasattr(inner, "eqns"):
                yield inner, getattr(param, "consts", ())
