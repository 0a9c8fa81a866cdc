"""Every op on meshes whose axes are explicit, all or some of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from absl.testing import parameterized
from jax import export
from jax.sharding import AxisType
from jax.sharding import Mesh
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec

import keras
from keras.src import backend
from keras.src import testing

if backend.backend() != "jax":
    pytest.skip("The JAX backend's own modules.", allow_module_level=True)

from keras.src.backend.jax.draws_testing import assert_laid_out  # noqa: E402
from keras.src.backend.jax.draws_testing import assert_same_bits  # noqa: E402

SHAPE = (64, 32)
SPEC = PartitionSpec("model", "batch")
ROW = np.linspace(-3, 3, 32, dtype="float32")
VALUES = np.arange(64 * 32, dtype="float32").reshape(SHAPE)

OPS = {
    "beta": lambda **kw: keras.random.beta(SHAPE, 2.0, 0.7, seed=1, **kw),
    "binomial": lambda **kw: keras.random.binomial(
        SHAPE, 5.0, 0.3, seed=1, **kw
    ),
    "categorical": lambda **kw: keras.random.categorical(
        VALUES[:, :16], 32, seed=1, **kw
    ),
    "dropout": lambda **kw: keras.random.dropout(
        jnp.asarray(VALUES), 0.3, noise_shape=(64, 1), seed=1, **kw
    ),
    "dropout of host data": lambda **kw: keras.random.dropout(
        VALUES, 0.3, seed=1, **kw
    ),
    "eye": lambda **kw: keras.ops.eye(*SHAPE, **kw),
    "full": lambda **kw: keras.ops.full(SHAPE, ROW, **kw),
    "normal": lambda **kw: keras.random.normal(SHAPE, ROW, 0.3, seed=1, **kw),
    "randint": lambda **kw: keras.random.randint(SHAPE, 0, 77, seed=1, **kw),
    "shuffle": lambda **kw: keras.random.shuffle(VALUES, 0, seed=1, **kw),
}


def make_mesh(kind):
    first = AxisType.Explicit if kind == "explicit" else AxisType.Auto
    return Mesh(
        np.reshape(jax.devices(), (2, 4)),
        ("batch", "model"),
        (first, AxisType.Explicit),
    )


@pytest.mark.multi_device
class MeshKindsTest(testing.TestCase):
    @parameterized.product(op=[*OPS], kind=["explicit", "mixed"])
    def test_op(self, op, kind):
        expected = OPS[op]()
        sharding = NamedSharding(make_mesh(kind), SPEC)
        result = OPS[op](layout=sharding)
        assert_same_bits(result, expected)
        assert_laid_out(result, sharding)
        with jax.set_mesh(sharding.mesh):
            result = jax.jit(lambda: OPS[op](layout=SPEC))()
        assert_same_bits(result, expected)
        assert_laid_out(result, sharding)

    @parameterized.parameters("explicit", "mixed")
    def test_dimension_that_is_not_known_yet(self, kind):
        mesh = make_mesh(kind)
        size, _ = export.symbolic_shape("n, 4")
        spec = jax.ShapeDtypeStruct((size, 4), "float32")

        def made(x):
            layout = NamedSharding(mesh, PartitionSpec(None, "model"))
            noise = keras.random.normal(x.shape, seed=1, layout=layout)
            ones = keras.ops.ones(x.shape, layout=layout)
            counts = keras.random.binomial(
                x.shape, 5.0, 0.3, seed=1, layout=layout
            )
            kept = keras.random.dropout(ones, 0.3, seed=1, layout=layout)
            return noise, counts, kept

        with jax.set_mesh(mesh):
            traced = jax.eval_shape(made, spec)
        exported = export.export(jax.jit(made))(spec)
        for result in (*traced, *exported.out_avals):
            self.assertEqual(result.shape, (size, 4))
