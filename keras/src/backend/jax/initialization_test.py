import contextlib

import jax
import numpy as np
import pytest
from absl.testing import parameterized
from jax.sharding import SingleDeviceSharding

from keras.src import backend
from keras.src import testing
from keras.src.backend.jax import initialization_testing as cases

pytestmark = [
    pytest.mark.multi_device,
    pytest.mark.skipif(
        backend.backend() != "jax", reason="tests the JAX backend"
    ),
]


class InitializationTest(testing.TestCase):
    def check(self, make, layout, context=None, rtol=0):
        wanted = cases.values_of_two(make)
        with cases.in_mesh(context):
            got = cases.values_of_two(make, layout)
        for value in got[0]:
            self.assertEqual(
                {shard.data.shape for shard in value.addressable_shards},
                {cases.SHARD_SHAPE},
            )
        for want, have in zip(jax.tree.leaves(wanted), jax.tree.leaves(got)):
            self.assertEqual(want.dtype, have.dtype)
            want, have = np.asarray(want), np.asarray(have)
            if rtol:
                np.testing.assert_allclose(have, want, rtol, rtol)
            else:
                np.testing.assert_array_equal(have, want)
        self.assertEqual(len(wanted[1]), len(got[1]))

    @parameterized.product(
        kind=[*cases.LEGACY], axes=["auto", "explicit", None]
    )
    def test_large_legacy_initializer(self, kind, axes):
        # How XLA sums in a product of matrices depends on the size of a shard
        # and on the processor.
        rtol = 1e-5 if kind == "matrix product" else 0
        with cases.large():
            self.check(
                cases.LEGACY[kind], *cases.layout_and_context(axes), rtol
            )

    @parameterized.product(kind=[*cases.LEGACY])
    def test_small_legacy_initializer(self, kind):
        self.check(cases.LEGACY[kind], *cases.layout_and_context(None))

    @parameterized.product(
        kind=[*cases.WITH_LAYOUT], axes=["auto", "explicit", None]
    )
    def test_initializer_that_takes_a_layout(self, kind, axes):
        self.check(cases.WITH_LAYOUT[kind], *cases.layout_and_context(axes))

    @parameterized.product(
        initializer=[
            cases.honours_layout,
            cases.draws_in_layout,
            cases.draws_by_keras_in_layout,
            cases.unseeded,
            cases.Affine(),
        ],
        is_small=[True, False],
    )
    def test_single_device(self, initializer, is_small):
        layout = SingleDeviceSharding(jax.devices()[3])
        with contextlib.nullcontext() if is_small else cases.large():
            value = cases.born(initializer, layout)
        self.assertEqual(value.sharding, layout)
