"""Several processes save a model that none of them has all of."""

import json
import socket
import subprocess
import sys

import numpy as np
import pytest

WORKER = """
import json
import os
import sys

task = json.loads(sys.argv[1])
os.environ["KERAS_BACKEND"] = "jax"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax
import numpy as np

jax.distributed.initialize(
    task["coordinator"], task["processes"], task["process"]
)

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
print("saved", flush=True)
try:
    model.save_weights(os.path.join(folder, "missing", "a.weights.h5"))
except (OSError, RuntimeError) as error:
    print(type(error).__name__, flush=True)
print("end", flush=True)
os._exit(0)
"""


def run(folder, processes):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        coordinator = f"localhost:{free.getsockname()[1]}"
    task = {
        "processes": processes,
        "coordinator": coordinator,
        "folder": str(folder),
    }
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, json.dumps(task | {"process": i})],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(processes)
    ]
    try:
        outputs = [worker.communicate(timeout=300) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    for i, (output, error) in enumerate(outputs):
        failure = "RuntimeError" if i else "FileNotFoundError"
        words = [word for word in output.split() if "Gloo" not in word]
        assert words[-3:] == ["saved", failure, "end"], error[-3000:]


@pytest.mark.parametrize("processes", [2, 4])
def test_one_process_writes_what_all_have(tmp_path, processes):
    run(tmp_path, processes)

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
