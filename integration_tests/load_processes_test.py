"""Several processes assign and load, each its own part and on its own."""

import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

from keras.src.backend.jax import processes_testing as processes

SHAPE = (1024, 512)

SET_UP = """
import numpy as np

import keras

mesh = keras.distribution.DeviceMesh(
    (task["processes"],), ["model"], keras.distribution.list_devices()
)
layouts = keras.distribution.LayoutMap(mesh)
layouts[".*kernel"] = tuple(task["axes"])
keras.distribution.set_distribution(
    keras.distribution.ModelParallel(layout_map=layouts)
)
shape = tuple(task["shape"])
array = np.arange(shape[0] * shape[1], dtype="float64").reshape(shape)


def make_model():
    inputs = keras.Input(shape[:1])
    outputs = keras.layers.Dense(shape[1], name="dense")(inputs)
    return keras.Model(inputs, outputs)


def check(variable, expected):
    shards = variable.value.addressable_shards
    assert len(shards) == 1
    whole = expected.astype(variable.dtype)
    np.testing.assert_array_equal(
        np.asarray(shards[0].data), whole[shards[0].index]
    )
    assert shards[0].data.nbytes < whole.nbytes


def bytes_read():
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])
"""

WORKER = """
def assign():
    model = make_model()
    model.layers[1].kernel.assign(array)
    check(model.layers[1].kernel, array)
    model.set_weights([2 * array, np.ones(shape[1])])
    check(model.layers[1].kernel, 2 * array)
    layout = keras.distribution.TensorLayout(task["axes"], mesh)
    check(keras.Variable(array, layout=layout, dtype="bfloat16"), array)
    values = keras.distribution.distribute_tensor(array, layout)
    assert values.addressable_shards[0].data.size < array.size


def load():
    model = make_model()
    model.load_weights(task["weights"])
    reads = []
    for _ in range(3):
        before = bytes_read()
        model.load_weights(task["weights"])
        reads.append(bytes_read() - before)
    # The process reads other things too, now and then; loading reads this.
    read = min(reads)
    check(model.layers[1].kernel, array)
    shard = model.layers[1].kernel.value.addressable_shards[0].data
    assert read < 1.1 * shard.nbytes + 2**14, (read, shard.nbytes)


def load_keras():
    model = keras.saving.load_model(task["model"])
    check(model.layers[1].kernel, array)


def load_faulty():
    model = make_model()
    model.layers[1].kernel.assign(array)
    try:
        model.load_weights(task["faulty"])
    except ValueError as error:
        assert "faulty.weights.h5" in str(error), error
        assert "dense/bias" in str(error), error
    else:
        raise AssertionError("A wrong shape was loaded.")
    check(model.layers[1].kernel, array)


# Nothing of this needs the others, so those that are to do nothing are gone.
if task["process"] in task["gone"]:
    os._exit(0)
for step in (assign, load, load_keras, load_faulty):
    step()
    print(step.__name__)
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    array = np.arange(SHAPE[0] * SHAPE[1], dtype="float32").reshape(SHAPE)
    script = """
import sys
import keras
import numpy as np

inputs = keras.Input((1024,))
outputs = keras.layers.Dense(512, name="dense")(inputs)
model = keras.Model(inputs, outputs)
array = np.arange(1024 * 512, dtype="float32").reshape((1024, 512))
model.set_weights([array, array[0]])
for path in sys.argv[1:]:
    (model.save if path.endswith(".keras") else model.save_weights)(path)
"""
    files = {
        "weights": str(folder / "good.weights.h5"),
        "model": str(folder / "good.keras"),
        "faulty": str(folder / "faulty.weights.h5"),
    }
    subprocess.run(
        [sys.executable, "-c", script, *files.values()], check=True, timeout=300
    )
    with h5py.File(files["faulty"], "a") as file:
        np.testing.assert_array_equal(file["layers/dense/vars/0"], array)
        del file["layers/dense/vars/1"]
        file["layers/dense/vars/1"] = np.zeros(7)
    return files


def run(files, count, axes, gone=()):
    task = files | {"axes": axes, "shape": SHAPE, "gone": gone}
    outputs = processes.run(SET_UP + WORKER, count, **task)
    for i, output in enumerate(outputs):
        steps = ["assign", "load", "load_keras", "load_faulty"]
        assert output.split() == ([] if i in gone else steps)


@pytest.mark.parametrize("axes", [("model", None), (None, "model")])
@pytest.mark.parametrize("count", [2, 4])
def test_each_process_gets_its_part(files, count, axes):
    run(files, count, axes)


def test_processes_load_while_another_is_gone(files):
    # Process 0 is the coordinator, without which JAX ends the others.
    run(files, 4, (None, "model"), gone=(1, 3))


DYING = """
import time

from keras.src.backend.common.h5_array import H5Array

me = str(task["process"])
model = make_model()
read = H5Array.read


def read_and_wait(self, parts):
    read(self, parts)
    with open(task["folder"] + "/" + me, "w"):
        pass
    # The one that is to die sleeps until it does, the others until it has.
    limit = time.monotonic() + 60
    while not os.path.exists(task["folder"] + "/killed"):
        assert time.monotonic() < limit
        time.sleep(0.05)


H5Array.read = read_and_wait
model.load_weights(task["weights"])
check(model.layers[1].kernel, array)
print("loaded")
"""


@pytest.mark.parametrize("victim", [0, 1])
def test_process_that_dies_in_the_middle_of_loading(files, tmp_path, victim):
    task = files | {"axes": (None, "model"), "shape": SHAPE}
    task["folder"] = str(tmp_path)
    with processes.started(SET_UP + DYING, 2, **task) as workers:
        limit = time.monotonic() + 120
        while len(list(tmp_path.iterdir())) < 2:
            assert time.monotonic() < limit
            assert all(worker.poll() is None for worker in workers)
            time.sleep(0.05)
        workers[victim].kill()
        workers[victim].wait()
        (tmp_path / "killed").touch()
        done = processes.finished(workers, timeout=120)
    survivor = done[1 - victim]
    if victim == 1 or survivor.returncode == 0:
        assert survivor.returncode == 0, survivor.stderr[-3000:]
        assert survivor.stdout.split() == ["loaded"]
    else:
        # JAX ends all processes when it misses the first, its coordinator.
        assert "coordination service" in survivor.stderr
