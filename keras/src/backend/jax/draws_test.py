import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from jax.sharding import AxisType
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec

import keras
from keras.src import backend
from keras.src import testing

if backend.backend() != "jax":
    pytest.skip("The JAX backend's own modules.", allow_module_level=True)

from keras.src.backend.jax import draws  # noqa: E402
from keras.src.backend.jax import programs  # noqa: E402
from keras.src.backend.jax import windows  # noqa: E402
from keras.src.backend.jax.draws_testing import assert_laid_out  # noqa: E402
from keras.src.backend.jax.draws_testing import assert_same_bits  # noqa: E402
from keras.src.backend.jax.draws_testing import mesh  # noqa: E402

FLOATS = ("float32", "bfloat16", "float16")
INTEGERS = ("int32", "uint8", "int16", "uint32", "int8")


# Each draw of `keras.random`, and what it computes without a layout.
def _normal(key, shape, dtype, mean, stddev):
    return jax.random.normal(key, shape, dtype) * stddev + mean


def _truncated_normal(key, shape, dtype, mean, stddev):
    draw = jax.random.truncated_normal(key, -2.0, 2.0, shape, dtype)
    return draw * stddev + mean


def _uniform(key, shape, dtype, minval, maxval):
    return jax.random.uniform(key, shape, dtype, minval, maxval)


def _randint(key, shape, dtype, minval, maxval):
    return jax.random.randint(key, shape, minval, maxval, dtype)


def _gamma(key, shape, dtype, alpha):
    return jax.random.gamma(key, alpha, shape, dtype)


def _beta(key, shape, dtype, alpha, beta):
    return jax.random.beta(key, jnp.array(alpha), jnp.array(beta), shape, dtype)


def _binomial(key, shape, dtype, counts, probabilities):
    counts, probabilities = jnp.array(counts), jnp.array(probabilities)
    return jax.random.binomial(key, counts, probabilities, shape, dtype)


REFERENCES = {
    "normal": _normal,
    "truncated_normal": _truncated_normal,
    "uniform": _uniform,
    "randint": _randint,
    "gamma": _gamma,
    "beta": _beta,
    "binomial": _binomial,
}

numbers = st.sampled_from([0, 1, -0.3, 0.017, 1.7, 1e-3, -250.0])
positive = st.sampled_from([0.02, 1, 0.7, 3.5, 1e-4])
PARAMS = {
    "normal": {"mean": numbers, "stddev": positive},
    "truncated_normal": {"mean": numbers, "stddev": positive},
    "uniform": {
        "minval": st.sampled_from([-1.5, 0, -0.05]),
        "maxval": positive,
    },
    "randint": {
        "minval": st.sampled_from([0, 3]),
        "maxval": st.sampled_from([4, 100, 128]),
    },
    "gamma": {"alpha": st.sampled_from([0.5, 1.0, 4.2])},
    "beta": {"alpha": positive, "beta": positive},
    "binomial": {
        "counts": st.sampled_from([1, 5, 40]),
        "probabilities": st.sampled_from([0.1, 0.5, 0.9]),
    },
}


@st.composite
def layouts(draw, max_rank=6):
    """A mesh of 8 devices, a shape and a layout that fits both."""
    mesh_shape = draw(
        st.sampled_from([(8,), (2, 4), (4, 2), (1, 8), (2, 2, 2)])
    )
    axes = list(mesh(mesh_shape).axis_names)
    axes = draw(st.permutations(axes))
    sizes = dict(zip(mesh(mesh_shape).axis_names, mesh_shape))
    shape, spec = [], []
    for _ in range(draw(st.integers(0, max_rank))):
        names = tuple(
            axes.pop() for _ in range(draw(st.integers(0, len(axes))))
        )
        parts = int(np.prod([sizes[name] for name in names]))
        per_part = draw(
            st.sampled_from([1, 2, 3, 5] if len(shape) < 4 else [1])
        )
        shape.append(parts * per_part)
        spec.append(names if len(names) > 1 else names[0] if names else None)
    return mesh_shape, tuple(shape), tuple(spec)


def check(op, dtype, params, mesh_shape, shape, spec, seed):
    sharding = NamedSharding(mesh(mesh_shape), PartitionSpec(*spec))
    key = jnp.array([seed, 0], jnp.uint32)
    expected = REFERENCES[op](key, shape, dtype, **params)
    result = getattr(keras.random, op)(
        shape, **params, dtype=dtype, seed=seed, layout=sharding
    )
    assert_laid_out(result, sharding)
    assert_same_bits(result, expected)


@pytest.mark.multi_device
class LayoutPropertyTest(testing.TestCase):
    @settings(deadline=None, max_examples=280)
    @given(st.data(), layouts(), st.integers(0, 2**32 - 1))
    def test_windowed_draws_equal_unsharded_ones(self, data, layout, seed):
        op = data.draw(
            st.sampled_from(
                ["normal", "truncated_normal", "uniform", "randint"]
            )
        )
        dtypes = INTEGERS if op == "randint" else FLOATS
        dtype = data.draw(st.sampled_from(dtypes))
        params = data.draw(st.fixed_dictionaries(PARAMS[op]))
        check(op, dtype, params, *layout, seed)

    @settings(deadline=None, max_examples=12)
    @given(st.data(), layouts(max_rank=2), st.integers(0, 2**32 - 1))
    def test_rejection_samplers_equal_unsharded_ones(self, data, layout, seed):
        op = data.draw(st.sampled_from(["gamma", "beta", "binomial"]))
        params = data.draw(st.fixed_dictionaries(PARAMS[op]))
        check(op, "float32", params, *layout, seed)

    @settings(deadline=None, max_examples=12)
    @given(st.data(), layouts(max_rank=3), st.integers(0, 2**32 - 1))
    def test_float64(self, data, layout, seed):
        op = data.draw(
            st.sampled_from(["normal", "truncated_normal", "uniform"])
        )
        params = data.draw(st.fixed_dictionaries(PARAMS[op]))
        with jax.enable_x64(True):
            check(op, "float64", params, *layout, seed)


def normal(key, shape=(16, 8), **kwargs):
    kwargs = {"mean": 0.3, "stddev": 0.017, "seed": key, **kwargs}
    return keras.random.normal(shape, **kwargs)


@pytest.mark.multi_device
class DrawAnywhereTest(testing.TestCase):
    key = jnp.array([7, 0], jnp.uint32)
    spec = PartitionSpec("model", "batch")

    def expected(self, shape=(16, 8)):
        return _normal(self.key, shape, "float32", 0.3, 0.017)

    def test_under_jit(self):
        sharding = NamedSharding(mesh((2, 4)), self.spec)
        result = jax.jit(lambda key: normal(key, layout=sharding))(self.key)
        assert_same_bits(result, self.expected())
        assert_laid_out(result, sharding)

    def test_under_jit_with_a_constant_seed(self):
        sharding = NamedSharding(mesh((2, 4)), self.spec)
        result = jax.jit(lambda: normal(7, layout=sharding))()
        assert_same_bits(result, self.expected())

    def test_under_vmap(self):
        sharding = NamedSharding(mesh((2, 4)), self.spec)
        keys = jnp.stack([self.key, self.key + jnp.uint32(1)])
        result = jax.vmap(lambda key: normal(key, layout=sharding))(keys)
        assert_same_bits(result[0], self.expected())

    def test_shapes_only(self):
        sharding = NamedSharding(mesh((2, 4)), self.spec)
        result = jax.eval_shape(lambda k: normal(k, layout=sharding), self.key)
        self.assertEqual((result.shape, result.dtype), ((16, 8), "float32"))

    def test_symbolic_scope(self):
        sharding = NamedSharding(mesh((2, 4)), self.spec)
        result = backend.compute_output_spec(
            lambda x: x + normal(7, layout=sharding),
            keras.KerasTensor((16, 8)),
        )
        self.assertEqual(result.shape, (16, 8))

    def test_mesh_in_context(self):
        for axis_type in (AxisType.Auto, AxisType.Explicit):
            in_context = mesh((2, 4), axis_type)
            with jax.set_mesh(in_context):
                eager = normal(self.key, layout=("model", "batch"))
                traced = jax.jit(lambda k: normal(k, layout=self.spec))(
                    self.key
                )
            for result in (eager, traced):
                assert_same_bits(result, self.expected())
                assert_laid_out(result, NamedSharding(in_context, self.spec))

    def test_layout_on_a_mesh_of_other_axis_types_than_in_context(self):
        kinds = (AxisType.Auto, AxisType.Explicit)
        for kind, other in (kinds, kinds[::-1]):
            sharding = NamedSharding(mesh((2, 4), kind), self.spec)
            with jax.set_mesh(mesh((2, 4), other)):
                eager = normal(self.key, layout=sharding)
                traced = jax.jit(lambda k: normal(k, layout=sharding))(self.key)
            assert_same_bits(eager, self.expected())
            assert_same_bits(traced, self.expected())

    def test_another_mesh_in_context(self):
        sharding = NamedSharding(mesh((2, 4)), self.spec)
        with jax.set_mesh(mesh((8,))):
            result = normal(self.key, layout=sharding)
        assert_same_bits(result, self.expected())
        assert_laid_out(result, sharding)

    def test_single_device_sharding(self):
        device = jax.devices()[5]
        sharding = jax.sharding.SingleDeviceSharding(device)
        result = normal(self.key, layout=sharding)
        assert_same_bits(result, self.expected())
        self.assertEqual(result.devices(), {device})

    def test_empty_and_scalar_shapes(self):
        split = ("model", "batch")
        for shape, spec in (((), ()), ((0, 8), split), ((8, 0), split)):
            layout = NamedSharding(mesh((2, 4)), PartitionSpec(*spec))
            result = normal(self.key, shape, layout=layout)
            assert_laid_out(result, layout)
            assert_same_bits(result, self.expected(shape))

    def test_typed_keys_and_seed_generators(self):
        layout = NamedSharding(mesh((2, 4)), self.spec)
        typed = jax.random.wrap_key_data(self.key, impl="threefry2x32")
        assert_same_bits(normal(typed, layout=layout), self.expected())
        assert_same_bits(normal(7, layout=layout), self.expected())
        generator = keras.random.SeedGenerator(7)
        assert_same_bits(normal(generator, layout=layout), self.expected())
        second = normal(generator, layout=layout)
        key = self.key.at[1].add(1)
        assert_same_bits(second, _normal(key, (16, 8), "float32", 0.3, 0.017))

    def test_no_seed(self):
        keras.utils.set_random_seed(3)
        layout = NamedSharding(mesh((2, 4)), self.spec)
        first, second = normal(None, layout=layout), normal(None, layout=layout)
        self.assertFalse(np.array_equal(first, second))
        keras.utils.set_random_seed(3)
        assert_same_bits(normal(None), first)
        assert_same_bits(normal(None), second)

    def test_other_random_number_generators(self):
        layout = NamedSharding(mesh((2, 4)), self.spec)
        for impl in ("rbg", "unsafe_rbg"):
            key = jax.random.key(3, impl=impl)
            result = normal(key, layout=layout)
            assert_laid_out(result, layout)
            self.assertLess(abs(float(jnp.mean(result)) - 0.3), 0.01)
        with jax.threefry_partitionable(False):
            result = normal(self.key, layout=layout)
            assert_laid_out(result, layout)
            assert_same_bits(result, self.expected())

    def test_parameters_that_are_arrays(self):
        layout = NamedSharding(mesh((2, 4)), self.spec)
        key = self.key
        for mean in (np.arange(8.0, dtype="float32"), jnp.float32(2.5)):
            result = normal(key, mean=mean, layout=layout)
            expected = _normal(key, (16, 8), "float32", mean, 0.017)
            assert_same_bits(result, expected)
        # What is not of the draw's dtype promotes the result.
        wide = np.float32(0.1)
        result = normal(key, mean=wide, dtype="bfloat16", layout=layout)
        expected = _normal(key, (16, 8), "bfloat16", wide, 0.017)
        assert_same_bits(result, expected)

    def test_an_error_draws_no_seed(self):
        generator = keras.random.SeedGenerator(7)
        layout = NamedSharding(mesh((2, 4)), PartitionSpec("model"))
        with self.assertRaisesRegex(ValueError, "cannot be split"):
            normal(generator, (3, 3), layout=layout)
        self.assertAllEqual(generator.state, self.key)

    def test_no_device_holds_more_than_its_part(self):
        sharding = NamedSharding(mesh((2, 4)), self.spec)
        statics = (draws.normal, (512, 512), np.dtype("float32"), sharding)
        program = programs._program(draws._windowed, statics, sharding)
        memory = program.lower(self.key, 0.0, 1.0).compile().memory_analysis()
        self.assertEqual(memory.output_size_in_bytes, 512 * 512 * 4 // 8)
        self.assertLess(memory.temp_size_in_bytes, 1024)

    def test_large_rejection_samplers_take_windows(self):
        alpha, beta = jnp.float32(0.7), jnp.float32(1.3)
        # Sizes of a shard among them that are numbers of keys in a split.
        cases = (((16, 8), ("model",)), ((4, 3), (None,)), ((8, 2), ("model",)))
        for shape, spec in cases:
            layout = NamedSharding(mesh((2, 4)), PartitionSpec(*spec))
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(draws, "is_small", lambda shape: False)
                gamma = keras.random.gamma(shape, 0.7, seed=7, layout=layout)
                betas = keras.random.beta(
                    shape, alpha, beta, seed=7, layout=layout
                )
            assert_laid_out(gamma, layout)
            assert_same_bits(gamma, jax.random.gamma(self.key, 0.7, shape))
            expected = jax.random.beta(self.key, alpha, beta, shape)
            assert_same_bits(betas, expected)

    def test_windows_of_several_rows(self):
        # As for arrays of billions of elements, with smaller numbers.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(windows, "_MAX_RUN", 64)
            patch.setattr(windows, "_MAX_SPAN", 128)
            for spec in ((), ("model",), (None, "model"), ("batch", "model")):
                layout = NamedSharding(mesh((2, 4)), PartitionSpec(*spec))
                result = normal(self.key, (16, 48), layout=layout)
                assert_same_bits(result, self.expected((16, 48)))


class DrawWithoutLayoutTest(testing.TestCase):
    def test_large_draws(self):
        key = jnp.array([7, 0], jnp.uint32)
        shape = (draws.LARGE // 4, 5)
        for op in ("normal", "truncated_normal", "uniform", "randint"):
            params = {
                "randint": {"minval": -3, "maxval": 900},
                "uniform": {"minval": -0.3, "maxval": 0.2},
            }.get(op, {"mean": 0.3, "stddev": 0.017})
            for dtype in ("int32",) if op == "randint" else FLOATS:
                expected = REFERENCES[op](key, shape, dtype, **params)
                draw = getattr(keras.random, op)
                before = programs._program.cache_info().misses
                result = draw(shape, **params, dtype=dtype, seed=7)
                assert_same_bits(result, expected)
                after = programs._program.cache_info().misses
                self.assertEqual(after, before + 1, f"{op} took no windows")

    def test_an_integer_as_shape(self):
        key = jnp.array([7, 0], jnp.uint32)
        for size in (5, np.int64(draws.LARGE)):
            assert_same_bits(
                keras.random.uniform(size, seed=7),
                _uniform(key, (int(size),), "float32", 0, 1),
            )

    def test_traced_draws_are_left_to_the_partitioner(self):
        shape = (draws.LARGE, 2)
        before = programs._program.cache_info().misses
        jax.eval_shape(lambda: keras.random.normal(shape, seed=7))
        self.assertEqual(programs._program.cache_info().misses, before)

    def test_what_variables_start_with_shares_programs(self):
        programs._program.cache_clear()
        key = jnp.array([7, 0], jnp.uint32)
        for size in (1, 7, 1000, 1025, 9000, 70000, 600000):
            initializer = keras.initializers.RandomNormal(0.3, 0.017, seed=7)
            for shape in ((size,), (1, size)):
                variable = keras.Variable(initializer, shape, "float32")
                expected = _normal(key, shape, "float32", 0.3, 0.017)
                assert_same_bits(variable.value, expected)
        self.assertLessEqual(
            programs._program.cache_info().misses, len(draws._LENGTHS)
        )
