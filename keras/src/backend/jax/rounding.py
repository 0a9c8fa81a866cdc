"""Keeps one program to the bits of the same operations run one by one.

Run eagerly, each JAX operation is a program of its own and rounds its result.
In one program the compiler may contract `x * a + b` into a single rounding,
reassociate constants, or keep more precision than a 16-bit type has.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Literal


def unknown_zero():
    """Returns a `uint32` zero that the compiler does not know to be one.

    A constant is folded, and so is one behind `lax.optimization_barrier`,
    which XLA removes before it generates code. It does not evaluate a loop.
    """
    return lax.fori_loop(
        0, 2, lambda i, zero: zero * jnp.uint32(i), jnp.uint32(0)
    )


def fence(x, zero):
    """Makes the compiler round `x` to its dtype and go on from those bits.

    The bits of `x` are combined with a zero that the compiler does not know,
    so it can neither look through the operation nor drop it. That costs one
    instruction for each element, and it fuses.

    Args:
        x: An array of any shape. Unless it is of a floating-point or complex
            dtype, it is returned as it is.
        zero: The result of `unknown_zero`.

    Returns:
        An array equal to `x` in all bits, whose derivative is that of `x`.
    """
    if jnp.issubdtype(x.dtype, np.complexfloating):
        return lax.complex(fence(lax.real(x), zero), fence(lax.imag(x), zero))
    if not jnp.issubdtype(x.dtype, np.floating):
        return x
    if x.dtype.itemsize == 2:
        # Exact both ways, and cheaper than to switch between lanes of 32 and
        # 16 bits: compilers compute with 16-bit floats in 32 bits.
        return _fence_bits(x.astype(np.float32), zero).astype(x.dtype)
    return _fence_bits(x, zero)


@jax.custom_jvp
def _fence_bits(x, zero):
    unsigned = np.dtype(f"uint{8 * x.dtype.itemsize}")
    bits = lax.bitcast_convert_type(x, unsigned)
    # Not `^`, of which two in a row would cancel each other.
    return lax.bitcast_convert_type(bits | zero.astype(unsigned), x.dtype)


@_fence_bits.defjvp
def _differentiate(primals, tangents):
    # To JAX, what is made of bits depends on nothing.
    return _fence_bits(*primals), tangents[0]


def fences():
    """Returns a function `fence(x)` for a function that is being traced."""
    zeros = {}

    def fence_with_zero(x):
        # JAX can change the types of a mesh's axes on the way, and combines
        # no values of different ones.
        mesh = jax.typeof(x).sharding.mesh
        with jax.sharding.use_abstract_mesh(mesh):
            if mesh not in zeros:
                zeros[mesh] = unknown_zero()
            return fence(x, zeros[mesh])

    return fence_with_zero


def separate(x, zero):
    """Keeps the compiler from fusing what makes `x` with what uses it.

    Args:
        x: An array.
        zero: The result of `unknown_zero`.

    Returns:
        The array.
    """
    return lax.cond(zero > 0, jnp.zeros_like, lambda x: x, x)


def stepwise(fn):
    """Makes a function round under `jit` as it does when it runs eagerly.

    Args:
        fn: A function of arrays that can be traced.

    Returns:
        A function of the same arguments, whose result has the structure of
        that of `fn` and, inside `jit` too, the bits that `fn` gives outside.
    """

    def stepwise_fn(*args):
        traced, shape = jax.make_jaxpr(fn, return_shape=True)(*args)
        each = fences()
        # The compiler would fold what is computed from constants.
        inputs = [each(jnp.asarray(x)) for x in jax.tree.leaves(args)]
        outputs = replay(traced.jaxpr, traced.consts, inputs, each)
        return jax.tree.unflatten(jax.tree.structure(shape), outputs)

    return stepwise_fn


def replay(jaxpr, consts, inputs, each):
    """Evaluates a traced function, one of its equations after the other.

    What eager JAX runs as one program, a jitted function such as
    `jax.random.normal`, is one equation here.

    Args:
        jaxpr: A `jax.extend.core.Jaxpr`.
        consts: The values of its constants, a list of arrays.
        inputs: The values of its inputs, a list of arrays.
        each: A function that is applied to each result of an equation.

    Returns:
        The list of its outputs.
    """
    values = dict(zip(jaxpr.constvars, consts))
    values.update(zip(jaxpr.invars, inputs))
    last_uses = _last_uses(jaxpr)

    def read(atom):
        return atom.val if isinstance(atom, Literal) else values[atom]

    for i, equation in enumerate(jaxpr.eqns):
        primitive = equation.primitive
        with equation.ctx.manager:
            outputs = primitive.bind(
                *map(read, equation.invars),
                **primitive.get_bind_params(equation.params),
            )
            if not primitive.multiple_results:
                outputs = [outputs]
            values.update(zip(equation.outvars, map(each, outputs)))
        del outputs
        for atom in [*equation.invars, *equation.outvars]:
            if not isinstance(atom, Literal) and last_uses.get(atom, i) == i:
                values.pop(atom, None)
    return [read(atom) for atom in jaxpr.outvars]


def _last_uses(jaxpr):
    """By which equation each variable is used last, to free what it holds."""
    uses = [equation.invars for equation in jaxpr.eqns] + [jaxpr.outvars]
    return {
        atom: i
        for i, atoms in enumerate(uses)
        for atom in atoms
        if not isinstance(atom, Literal)
    }
