import jax
import jax.numpy as jnp
import numpy as np
import pytest

from keras.src import backend
from keras.src import testing

if backend.backend() != "jax":
    pytest.skip("The JAX backend's own modules.", allow_module_level=True)

from keras.src.backend.jax import rounding  # noqa: E402


def bits(x):
    return np.asarray(x).view(np.uint8)


class RoundingTest(testing.TestCase):
    def numbers(self, dtype):
        x = np.random.default_rng(0).standard_normal(4096)
        return jnp.asarray(x, dtype)

    def test_fence_keeps_every_bit(self):
        for dtype in ("float16", "bfloat16", "float32"):
            every = np.arange(2**16, dtype=np.uint16).view(np.uint8)
            values = every.view(dtype)
            finite = values[~np.isnan(values.astype("float32"))]
            fenced = jax.jit(
                lambda x: rounding.fence(x, rounding.unknown_zero())
            )(finite)
            self.assertEqual(fenced.dtype, finite.dtype)
            self.assertAllEqual(bits(fenced), bits(finite))

    def test_fence_leaves_other_dtypes_alone(self):
        for x in (jnp.arange(3), jnp.array([True])):
            self.assertIs(rounding.fence(x, jnp.uint32(0)), x)

    def test_fence_keeps_derivatives(self):
        zero = jnp.uint32(0)
        for dtype in ("float32", "bfloat16"):
            tangent = jnp.asarray(0.5, dtype)
            _, result = jax.jvp(
                lambda x: 3 * rounding.fence(x, zero), (tangent,), (tangent,)
            )
            self.assertEqual(result, 1.5)

    def test_a_contraction_that_jit_makes_is_undone(self):
        def affine(x):
            return x * 0.017 + 0.3

        x = self.numbers("float32")
        eager = affine(x)
        # Otherwise this test would show nothing.
        self.assertTrue((bits(jax.jit(affine)(x)) != bits(eager)).any())
        stepwise = jax.jit(rounding.stepwise(affine))(x)
        self.assertAllEqual(bits(stepwise), bits(eager))

    def test_what_comes_between_does_not_undo_a_fence(self):
        def affine(x):
            return jnp.reshape(x * 0.017, (64, 64)) + 0.3

        x = self.numbers("float32")
        stepwise = jax.jit(rounding.stepwise(affine))(x)
        self.assertAllEqual(bits(stepwise), bits(affine(x)))

    def test_constants_are_not_folded(self):
        def power(a):
            return jnp.power(a, 1.0 / a) * jnp.log1p(a)

        a = np.linspace(0.1, 9.0, 64, dtype="float32")
        stepwise = jax.jit(lambda: rounding.stepwise(power)(a))()
        self.assertAllEqual(bits(stepwise), bits(power(jnp.asarray(a))))

    def test_stepwise_keeps_16_bit_results_16_bit(self):
        def twice(x):
            return (x * 1.01 + 0.3) * 0.7 - 0.1

        for dtype in ("float16", "bfloat16"):
            x = self.numbers(dtype)
            stepwise = jax.jit(rounding.stepwise(twice))(x)
            self.assertAllEqual(bits(stepwise), bits(twice(x)))

    def test_stepwise_keeps_the_structure_of_results(self):
        def several(x, y):
            return {"sum": x + y, "pair": (x, jnp.sort(y))}

        x, y = self.numbers("float32"), self.numbers("float32")[::-1]
        result = jax.jit(rounding.stepwise(several))(x, y)
        self.assertAllEqual(result["sum"], x + y)
        self.assertAllEqual(result["pair"][0], x)
        self.assertAllEqual(result["pair"][1], jnp.sort(y))

    def test_stepwise_runs_control_flow_and_jitted_functions(self):
        @jax.jit
        def inner(x):
            return x * 3.0 + 1.0

        def outer(x):
            x = jax.lax.fori_loop(0, 3, lambda i, x: x * 0.9 + 0.1, x)
            return jax.lax.cond(x[0] > 0, inner, jnp.negative, x)

        x = self.numbers("float32")
        self.assertAllEqual(
            bits(jax.jit(rounding.stepwise(outer))(x)), bits(outer(x))
        )

    def test_separate_keeps_values(self):
        x = self.numbers("float32")
        separated = jax.jit(
            lambda x: rounding.separate(x, rounding.unknown_zero())
        )(x)
        self.assertAllEqual(bits(separated), bits(x))
