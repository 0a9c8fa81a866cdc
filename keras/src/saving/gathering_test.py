"""Several processes save a model that none of them has all of."""

import os

import numpy as np
import pytest
from absl.testing import parameterized

from keras.src import backend
from keras.src import testing
from keras.src.backend.jax import processes_testing as processes
from keras.src.saving import saving_lib

SET_UP = """
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
"""

SAVE = """
model.save_weights(os.path.join(folder, "a.weights.h5"))
model.save_weights(os.path.join(folder, "a.weights.json"), max_shard_size=1e-6)
model.save(os.path.join(folder, "a.keras"))
print("saved")
try:
    model.save_weights(os.path.join(folder, "missing", "a.weights.h5"))
except (OSError, RuntimeError) as error:
    print(type(error).__name__)
print("end")
"""

FAIL = """
import tempfile

if task["process"] == 1:
    tempfile.tempdir = os.path.join(folder, "missing")
try:
    model.save_weights(os.path.join(folder, "a.weights.h5"))
except (OSError, RuntimeError) as error:
    print(type(error).__name__)
if task["process"] == 1:
    # As at an interrupt in the middle.
    first = model.layers[0]
    tempfile.tempdir = None
    def interrupt(store):
        raise SystemExit
    first.save_own_variables = interrupt
try:
    model.save_weights(os.path.join(folder, "a.weights.h5"))
except (SystemExit, RuntimeError) as error:
    print(type(error).__name__)
print("end")
"""

SAVE_NPZ = """
path = os.path.join(folder, "npz.keras")
saving_lib.save_model(model, path, weights_format="npz")
"""


@pytest.mark.skipif(backend.backend() != "jax", reason="tests the JAX backend")
class GatheringTest(testing.TestCase):
    @parameterized.parameters(2, 4)
    def test_one_process_writes_what_all_have(self, count):
        folder = self.get_temp_dir()
        script = SET_UP + SAVE
        outputs = processes.run(script, count, devices=2, folder=folder)
        for i, output in enumerate(outputs):
            failure = "RuntimeError" if i else "FileNotFoundError"
            words = [word for word in output.split() if "Gloo" not in word]
            self.assertEqual(words[-3:], ["saved", failure, "end"])

        model = self.load(folder, "a.keras")
        for name in ("a.weights.h5", "a.weights.json"):
            model.set_weights([np.zeros(v.shape) for v in model.weights])
            model.load_weights(os.path.join(folder, name))
            self.check(model.weights)

    def test_one_that_fails_keeps_nobody_waiting(self):
        folder = self.get_temp_dir()
        outputs = processes.run(SET_UP + FAIL, 4, devices=2, folder=folder)
        for i, output in enumerate(outputs):
            failures = ["RuntimeError", "RuntimeError"]
            if i == 1:
                failures = ["FileNotFoundError", "SystemExit"]
            # Gloo says something in between.
            words = {*failures, "end"}
            words = [word for word in output.split() if word in words]
            self.assertEqual(words, [*failures, "end"])

    def test_npz(self):
        folder = self.get_temp_dir()
        processes.run(SET_UP + SAVE_NPZ, 2, devices=2, folder=folder)
        self.load(folder, "npz.keras")

    def load(self, folder, name):
        model = saving_lib.load_model(os.path.join(folder, name))
        self.check(model.weights + model.optimizer.variables[2:])
        return model

    def check(self, variables):
        for i, variable in enumerate(variables):
            expected = np.arange(np.prod(variable.shape)) + i
            np.testing.assert_array_equal(
                np.asarray(variable.value), expected.reshape(variable.shape)
            )
