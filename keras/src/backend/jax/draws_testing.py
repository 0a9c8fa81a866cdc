"""What tests of draws in layouts share."""

import jax
import numpy as np
from jax.sharding import AxisType


def mesh(shape, axis_type=AxisType.Auto):
    names = ("batch", "model", "expert")[: len(shape)]
    return jax.make_mesh(shape, names, axis_types=(axis_type,) * len(shape))


def assert_same_bits(result, expected):
    result, expected = np.asarray(result), np.asarray(expected)
    np.testing.assert_equal(result.dtype, expected.dtype)
    np.testing.assert_equal(result.shape, expected.shape)
    np.testing.assert_array_equal(
        result.reshape(-1).view(np.uint8), expected.reshape(-1).view(np.uint8)
    )


def assert_laid_out(result, sharding):
    np.testing.assert_(result.sharding.is_equivalent_to(sharding, result.ndim))
    shard_shape = sharding.shard_shape(result.shape)
    for shard in result.addressable_shards:
        np.testing.assert_equal(shard.data.shape, shard_shape)
