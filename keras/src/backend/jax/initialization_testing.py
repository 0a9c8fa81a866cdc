"""What tests of initial values in layouts share."""

import contextlib
import functools
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec

from keras.src import backend
from keras.src import initializers
from keras.src import ops
from keras.src import random as keras_random
from keras.src.backend.common import global_state
from keras.src.backend.jax import initialization
from keras.src.distribution import distribution_lib
from keras.src.random.seed_generator import GLOBAL_SEED_GENERATOR
from keras.src.random.seed_generator import SeedGenerator
from keras.src.utils import rng_utils

SHAPE = (16, 24)
SPEC = PartitionSpec("batch", "model")
SHARD_SHAPE = (8, 6)
BIG = np.arange(1000 * 16 * 24, dtype="float32").reshape(1000, *SHAPE)


def make_mesh(axis_type=AxisType.Auto):
    sizes = (2, jax.device_count() // 2)
    return jax.make_mesh(sizes, ("batch", "model"), (axis_type,) * 2)


def large():
    """Makes values of all sizes take the way of large ones."""
    return mock.patch.object(initialization, "SMALL", -1)


def in_mesh(mesh):
    return contextlib.nullcontext() if mesh is None else jax.set_mesh(mesh)


def born(initializer, layout=None, shape=SHAPE, dtype="float32"):
    return backend.Variable(
        initializer, shape, dtype, name="weight", layout=layout
    ).value


class Affine:
    """A callable object, whose sums XLA would contract to `x * a + b`."""

    def __call__(self, shape, dtype=None):
        x = backend.random.normal(shape, dtype=dtype, seed=5)
        return x * 0.3 + 1.7

    def method(self, shape, dtype):
        return backend.random.uniform(shape, dtype=dtype, seed=5) * 0.3 + 1.7


class SeveralGenerators:
    def __init__(self):
        self.a, self.b = SeedGenerator(1), SeedGenerator(2)

    def __call__(self, shape, dtype=None):
        x = backend.random.normal(shape, dtype=dtype, seed=self.a)
        y = backend.random.uniform(shape, dtype=dtype, seed=self.b)
        return x + y * backend.random.normal(shape, dtype=dtype, seed=self.a)


class LateGenerator:
    generator = None

    def __call__(self, shape, dtype=None):
        if self.generator is None:
            self.generator = SeedGenerator(4)
        return backend.random.uniform(shape, dtype=dtype, seed=self.generator)


class Scaled(initializers.RandomNormal):
    def __call__(self, shape, dtype=None):
        return super().__call__(shape, dtype=dtype) * 1.1 + 0.7


class TakesLayoutItself(initializers.RandomNormal):
    def __call__(self, shape, dtype=None, layout=None):
        return super().__call__(shape, dtype, layout=layout) * 1.1 + 0.7


def with_generator():
    generator = SeedGenerator(7)
    return lambda shape, dtype: (
        backend.random.normal(shape, dtype=dtype, seed=generator) + 1
    )


def unseeded(shape, dtype):
    return backend.random.truncated_normal(shape, 0.1, 0.3, dtype=dtype)


def takes_the_sign(shape, dtype):
    x = backend.random.normal(shape, dtype=dtype, seed=1)
    return x if x[0, 0] > 0 else -x


def calls_back(shape, dtype):
    result = jax.ShapeDtypeStruct(shape, dtype)
    return 2 * jax.pure_callback(lambda: np.full(shape, 3, dtype), result)


def calls_back_in_order(shape, dtype):
    result = jax.ShapeDtypeStruct(shape, dtype)
    return 2 * jax.experimental.io_callback(
        lambda: np.full(shape, 3, dtype), result, ordered=True
    )


def prints(shape, dtype):
    jax.debug.callback(lambda: None, ordered=True)
    return jnp.ones(shape, dtype)


def factorizes(shape, dtype):
    x = jax.random.normal(jax.random.key(3), shape[::-1], dtype)
    return jnp.linalg.qr(x)[0].T


def jitted(shape, dtype):
    @jax.jit
    def draw(key):
        return jax.random.normal(key, shape, dtype) * 3.3 + 1.1

    return draw(jax.random.key(3))


def low_rank(shape, dtype):
    a = jax.random.normal(jax.random.key(1), (shape[0], 4), dtype)
    return a @ jax.random.normal(jax.random.key(2), (4, shape[1]), dtype)


def on_the_first_device(shape, dtype):
    return jax.device_put(jnp.ones(shape, dtype), jax.devices()[0]) * 3


# Initializers that know of no layout. Each entry makes one anew.
LEGACY = {
    "object": Affine,
    "bound method": lambda: Affine().method,
    "lambda": lambda: lambda shape, dtype: jnp.full(shape, 2, dtype),
    "other names": lambda: (
        lambda a, b: jax.random.normal(jax.random.PRNGKey(3), a, b) * 0.7 + 0.1
    ),
    "positional only": lambda: eval(
        "lambda shape, dtype, /: np.ones(shape, dtype)", {"np": np}
    ),
    "kwargs": lambda: (
        lambda shape, **kwargs: backend.random.normal(shape, seed=3, **kwargs)
    ),
    "args and kwargs": lambda: (
        lambda *args, **kwargs: backend.random.normal(*args, seed=3, **kwargs)
    ),
    "partial of JAX": lambda: functools.partial(
        jax.random.normal, jax.random.key(3)
    ),
    "partial of Keras": lambda: functools.partial(
        keras_random.normal, seed=4, mean=1.3, stddev=0.37
    ),
    "partial of a built-in": lambda: functools.partial(
        initializers.GlorotUniform(seed=3)
    ),
    "subclass of a built-in": lambda: Scaled(seed=3),
    "NumPy function": lambda: np.ones,
    "NumPy method": lambda: np.random.default_rng(0).standard_normal,
    "JAX function": lambda: jnp.ones,
    "jitted call": lambda: jitted,
    "jitted function": lambda: jax.jit(
        lambda shape, dtype: (
            jax.random.normal(jax.random.key(3), shape, dtype) * 3.3 + 1.1
        ),
        static_argnums=0,
        static_argnames="dtype",
    ),
    "control flow": lambda: takes_the_sign,
    "pure callback": lambda: calls_back,
    "ordered callback": lambda: calls_back_in_order,
    "ordered effect": lambda: prints,
    "factorization": lambda: factorizes,
    "matrix product": lambda: low_rank,
    "puts on a device": lambda: on_the_first_device,
    "big host data": lambda: lambda shape, dtype: jnp.asarray(BIG)[1] * 2 + 1,
    "big host data and a key": lambda key=jax.random.key: (
        lambda shape, dtype: (
            jnp.asarray(BIG)[2] * jax.random.normal(key(1), shape, dtype)
        )
    ),
    "big JAX array": lambda x=jnp.asarray: (
        lambda array: lambda shape, dtype: array[3] * 2 + 1
    )(x(BIG)),
    "returns NumPy": lambda: lambda shape, dtype: BIG[4].astype(dtype),
    "returns lists": lambda: lambda shape, dtype: BIG[5].tolist(),
    "returns a JAX array": lambda x=jnp.asarray: (
        lambda array: lambda shape, dtype: array
    )(x(BIG[6])),
    "returns a variable": lambda: (
        lambda variable: lambda shape, dtype: variable
    )(backend.Variable(BIG[7])),
    "returns another dtype": lambda: (
        lambda shape, dtype: (
            backend.random.normal(shape, dtype="bfloat16", seed=3) * 0.3 + 1.7
        )
    ),
    "returns integers": lambda: (
        lambda shape, dtype: backend.random.randint(shape, 0, 1000, seed=3)
    ),
    "Keras ops": lambda: (
        lambda shape, dtype: (
            ops.reshape(ops.arange(16 * 24, dtype=dtype), shape) * 1.1 + 0.3
        )
    ),
    "rejection sampler": lambda: (
        lambda shape, dtype: (
            backend.random.gamma(shape, 2.0, dtype=dtype, seed=3) * 1.3 + 0.2
        )
    ),
    "generator": with_generator,
    "several generators": SeveralGenerators,
    "late generator": LateGenerator,
    "unseeded": lambda: unseeded,
}

# JAX computes otherwise on meshes with explicit axes: it is the compiler's
# choice how a function that the user jits is rounded.
SEES_AXIS_TYPES = {"jitted call", "jitted function"}


def honours_layout(shape, dtype=None, layout=None):
    """As the documentation has it."""
    if isinstance(layout, distribution_lib.TensorLayout):
        layout = layout.backend_layout
    return jnp.ones(shape, dtype=dtype, out_sharding=layout)


def draws_in_layout(shape, dtype=None, layout=None):
    key = jax.random.key(3)
    x = jax.random.normal(key, shape, dtype, out_sharding=layout)
    return x * 3.3 + 1.1


def draws_by_keras_in_layout(shape, dtype=None, layout=None):
    x = backend.random.uniform(shape, dtype=dtype, seed=3, layout=layout)
    return x * 3.3 + backend.numpy.ones(shape, dtype, layout=layout)


def ignores_layout(shape, dtype=None, layout=None):
    return backend.random.normal(shape, dtype=dtype, seed=3) * 0.3 + 1


def ignores_layout_on_the_host(shape, dtype=None, layout=None):
    return BIG[8]


def takes_layout_unseeded(shape, dtype=None, layout=None):
    return backend.random.normal(shape, dtype=dtype, layout=layout)


def takes_layout_and_sign(shape, dtype, *, layout=None):
    x = honours_layout(shape, dtype, layout)
    return x if x[0, 0] > 0 else -x


def takes_layout_and_factorizes(shape, dtype, layout=None):
    return factorizes(shape, dtype)


WITH_LAYOUT = {
    "as documented": lambda: honours_layout,
    "jax.random": lambda: draws_in_layout,
    "keras.random and ops": lambda: draws_by_keras_in_layout,
    "ignores it": lambda: ignores_layout,
    "ignores it on the host": lambda: ignores_layout_on_the_host,
    "unseeded": lambda: takes_layout_unseeded,
    "control flow": lambda: takes_layout_and_sign,
    "factorization": lambda: takes_layout_and_factorizes,
    "subclass of a built-in": lambda: TakesLayoutItself(seed=3),
}


def generators_of(initializer):
    """The seed generators that an initializer holds, with the global one."""
    cells = getattr(initializer, "__closure__", None) or ()
    held = [cell.cell_contents for cell in cells]
    held += getattr(initializer, "__dict__", {}).values()
    held.append(global_state.get_global_attribute(GLOBAL_SEED_GENERATOR))
    return [x for x in held if isinstance(x, SeedGenerator)]


def values_of_two(make, layout=None):
    """The values of two variables, and the random states after that."""
    rng_utils.set_random_seed(11)
    initializer = make()
    values = [born(initializer, layout) for _ in range(2)]
    return values, [np.asarray(g.state) for g in generators_of(initializer)]


def layout_and_context(axes):
    """A layout on a mesh of auto or explicit axes, or in such a context."""
    if axes is None:
        return SPEC, make_mesh(AxisType.Auto)
    axis_type = AxisType.Explicit if axes == "explicit" else AxisType.Auto
    return NamedSharding(make_mesh(axis_type), SPEC), None
