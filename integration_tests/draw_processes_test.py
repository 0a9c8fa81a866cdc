"""Several processes draw, each its own part, and agree on the whole."""

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest

import keras

SHAPE = (64, 48)
AXES = [["model", None], [None, "model"], [None, None]]

WORKER = """
import json
import os
import sys

task = json.loads(sys.argv[1])
os.environ["KERAS_BACKEND"] = "jax"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=1"

import jax
import numpy as np

jax.distributed.initialize(
    task["coordinator"],
    task["processes"],
    task["process"],
    initialization_timeout=60,
)

import keras

mesh = keras.distribution.DeviceMesh(
    (task["processes"],), ["model"], keras.distribution.list_devices()
)
parts = {}


def keep(name, value):
    (shard,) = value.addressable_shards
    start = [rows.start or 0 for rows in shard.index]
    parts[name] = np.asarray(shard.data)
    parts[name + " start"] = np.array(start)


for i, axes in enumerate(task["axes"]):
    layout = keras.distribution.TensorLayout(axes, mesh)
    keep(f"draw {i}", keras.random.normal(task["shape"], seed=3, layout=layout))
    generator = keras.random.SeedGenerator(4)
    for j in range(2):
        value = keras.random.randint(
            task["shape"], 0, 1000, seed=generator, layout=layout
        )
        keep(f"generated {i} {j}", value)
    keep(
        f"gamma {i}",
        keras.random.gamma(task["shape"], 0.7, seed=3, layout=layout),
    )

    def legacy(shape, dtype):
        return keras.random.uniform(shape, dtype=dtype, seed=5) * 2 + 0.1

    for name, initializer in {
        "built-in": keras.initializers.GlorotNormal(seed=6),
        "legacy": legacy,
    }.items():
        variable = keras.Variable(initializer, task["shape"], layout=layout)
        keep(f"{name} {i}", variable.value)
np.savez(task["file"], **parts)
jax.distributed.shutdown()
"""


def run(processes, folder):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        coordinator = f"localhost:{free.getsockname()[1]}"
    workers, files = [], []
    for process in range(processes):
        files.append(folder / f"{process}.npz")
        task = {
            "coordinator": coordinator,
            "processes": processes,
            "process": process,
            "shape": SHAPE,
            "axes": AXES,
            "file": str(files[-1]),
        }
        workers.append(
            subprocess.Popen(
                [sys.executable, "-c", WORKER, json.dumps(task)],
                env=os.environ,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    try:
        outputs = [worker.communicate(timeout=300)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    for worker, output in zip(workers, outputs):
        assert worker.returncode == 0, output
    return [np.load(file) for file in files]


def expected():
    generator = keras.random.SeedGenerator(4)
    values = {
        "draw": keras.random.normal(SHAPE, seed=3),
        "gamma": keras.random.gamma(SHAPE, 0.7, seed=3),
        "built-in": keras.initializers.GlorotNormal(seed=6)(SHAPE),
        "legacy": keras.random.uniform(SHAPE, seed=5) * 2 + 0.1,
    }
    for j in range(2):
        values[f"generated {j}"] = keras.random.randint(
            SHAPE, 0, 1000, seed=generator
        )
    return {name: np.asarray(value) for name, value in values.items()}


@pytest.mark.parametrize("processes", [2, 4])
def test_processes_hold_parts_of_one_array(processes, tmp_path):
    results = run(processes, tmp_path)
    for name, whole in expected().items():
        kind, *rest = name.split()
        for i, axes in enumerate(AXES):
            key = " ".join([kind, str(i), *rest])
            seen = np.zeros(SHAPE, bool)
            for parts in results:
                part, start = parts[key], parts[key + " start"]
                window = tuple(
                    slice(first, first + size)
                    for first, size in zip(start, part.shape)
                )
                np.testing.assert_array_equal(
                    part.view(np.uint8), whole[window].copy().view(np.uint8)
                )
                seen[window] = True
                if "model" in axes:
                    assert part.size * processes == whole.size
            assert seen.all()
