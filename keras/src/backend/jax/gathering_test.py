import jax
import pytest
from absl.testing import parameterized

from keras.src import backend
from keras.src import testing
from keras.src.backend import config
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


@pytest.mark.multi_device
@pytest.mark.skipif(
    backend.backend() != "jax" or config.is_nnx_enabled(),
    reason="Others show variables in their own way.",
)
class ShowTest(testing.TestCase):
    @parameterized.parameters(
        ((64, 64), ("x",), False),
        ((64, 64), (None, None), True),
        ((64, 64), None, True),
        ((8, 2), ("x",), True),
    )
    def test_shows_what_need_not_be_gathered(self, shape, axes, is_shown):
        mesh = jax.make_mesh((jax.device_count(),), ("x",))
        with jax.set_mesh(mesh):
            variable = backend.Variable("ones", shape, layout=axes, name="v")
        self.assertEqual(", value=[[1. 1." in str(variable), is_shown)
        self.assertIn(f"path=v, shape={shape}, dtype=float32", str(variable))
        with self.assertRaisesRegex(ValueError, "path=v") as error:
            variable.assign([1.0])
        self.assertEqual("[[1. 1." in str(error.exception), is_shown)

    def test_shows_no_traced_values(self):
        variable = backend.Variable("ones", (64, 64), name="v")

        @jax.jit
        def assign_wrong(value):
            variable.assign(value)
            variable.assign(value[0])

        with self.assertRaisesRegex(ValueError, "path=v, shape=.64, 64."):
            assign_wrong(jax.numpy.ones((64, 64)))
