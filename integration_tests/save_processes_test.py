"""Several processes save a model that none of them has all of."""

import numpy as np
import processes
import pytest

WORKER = """
import numpy as np

import keras
from keras.src.saving import saving_lib

mesh = keras.distribution.DeviceMesh(
    (task["processes"], 2), ["a", "b"], keras.distribution.list_devices()
)
layouts = keras.distribution.LayoutMap(mesh)
layouts[".*first.kernel"] = (None, "a")
layouts[".*second.kernel"] = ("b", "a")
layouts[".*third.kernel"] = ("a", "b")
layouts[".*third.bias"] = ("a",)
keras.distribution.set_distribution(
    keras.distribution.ModelParallel(layout_map=layouts)
)
model = keras.Sequential([keras.Input((8,))])
for name in ("first", "second", "third"):
    model.add(keras.layers.Dense(8, name=name))
model.compile("adam", "mse")
model.optimizer.build(model.trainable_variables)
variables = model.weights + model.optimizer.variables[2:]
for i, variable in enumerate(variables):
    size = int(np.prod(variable.shape))
    variable.assign(np.arange(size).reshape(variable.shape) + i)
folder = task["folder"]
if task["process"]:
    # Whoever else opens the file would spoil it.
    real_open = open
    def refuse(file, mode="r", *args, **kwargs):
        assert not str(file).startswith(folder) or mode.startswith("r"), file
        return real_open(file, mode, *args, **kwargs)
    __builtins__.open = refuse
model.save_weights(os.path.join(folder, "a.weights.h5"))
model.save_weights(os.path.join(folder, "a.weights.json"), max_shard_size=1e-6)
model.save(os.path.join(folder, "a.keras"))
saving_lib.save_model(
    model, os.path.join(folder, "npz.keras"), weights_format="npz"
)
print("saved")
try:
    model.save_weights(os.path.join(folder, "missing", "a.weights.h5"))
except (OSError, RuntimeError) as error:
    print(type(error).__name__)
print("end")
"""


def run(folder, count):
    outputs = processes.run(WORKER, count, devices=2, folder=str(folder))
    for i, output in enumerate(outputs):
        failure = "RuntimeError" if i else "FileNotFoundError"
        words = [word for word in output.split() if "Gloo" not in word]
        assert words[-3:] == ["saved", failure, "end"]


@pytest.mark.parametrize("count", [2, 4])
def test_one_process_writes_what_all_have(tmp_path, count):
    run(tmp_path, count)

    import keras

    for name in ("a.keras", "npz.keras"):
        model = keras.saving.load_model(tmp_path / name)
        check(model, model.weights + model.optimizer.variables[2:])
    for name in ("a.weights.h5", "a.weights.json"):
        model.set_weights([np.zeros(v.shape) for v in model.weights])
        model.load_weights(tmp_path / name)
        check(model, model.weights)


def check(model, variables):
    for i, variable in enumerate(variables):
        expected = np.arange(np.prod(variable.shape)) + i
        np.testing.assert_array_equal(
            np.asarray(variable.value), expected.reshape(variable.shape)
        )


GATHERER = """
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


@pytest.mark.parametrize("count", [2, 4])
def test_gathers_in_blocks_from_any_devices(count):
    for output in processes.run(GATHERER, count, devices=2):
        assert output.split()[-1] == "end"
