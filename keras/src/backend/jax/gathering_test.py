import pytest
from absl.testing import parameterized

from keras.src import backend
from keras.src import testing
from keras.src.backend.jax import processes_testing as processes

WORKER = """
import numpy as np

import keras
from keras.src.backend.jax import gathering

# The last block of a shard overlaps with the one before.
gathering._BLOCK_BYTES = 100
for sizes, axes in (
    ((task["processes"], 2), ("a", "b")),
    ((task["processes"], 2), ("b", None)),
    ((task["processes"], 2), (None, ("b", "a"))),
    # One device fewer than there are.
    ((2 * task["processes"] - 1, 1), ("a", None)),
):
    devices = np.array(jax.devices()[::-1])[: np.prod(sizes)]
    mesh = jax.sharding.Mesh(devices.reshape(sizes), ("a", "b"))
    sharding = jax.sharding.NamedSharding(
        mesh, jax.sharding.PartitionSpec(*axes)
    )
    expected = np.arange(12 * 7 * 8 * 3.0).reshape(12 * 7, 8, 3)
    value = jax.make_array_from_callback(
        expected.shape, sharding, lambda index: expected[index]
    )
    assert gathering.is_spread(value)
    with gathering.gathering():
        gathered = gathering.gather(value)
    if task["process"] == 0:
        np.testing.assert_array_equal(gathered, expected)
empty = jax.make_array_from_callback(
    (0, 24), sharding, lambda index: np.zeros((0, 24))[index]
)
with gathering.gathering():
    assert gathering.gather(empty).shape == (0, 24)
print("end")
"""


@pytest.mark.skipif(backend.backend() != "jax", reason="tests the JAX backend")
class GatherTest(testing.TestCase):
    @parameterized.parameters(2, 4)
    def test_gathers_in_blocks_from_any_devices(self, count):
        for output in processes.run(WORKER, count, devices=2):
            self.assertEqual(output.split()[-1], "end")
