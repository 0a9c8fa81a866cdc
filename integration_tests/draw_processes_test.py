"""Several processes draw, each its own part, and agree on the whole."""

import numpy as np
import pytest

import keras
from keras.src.backend.jax import processes_testing as processes

SHAPE = (64, 48)
AXES = [["model", None], [None, "model"], [None, None]]

WORKER = """
import numpy as np

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
np.savez(os.path.join(task["folder"], f"{task['process']}.npz"), **parts)
"""


def run(count, folder):
    task = {"shape": SHAPE, "axes": AXES, "folder": str(folder)}
    processes.run(WORKER, count, **task)
    return [np.load(folder / f"{process}.npz") for process in range(count)]


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


@pytest.mark.parametrize("count", [2, 4])
def test_processes_hold_parts_of_one_array(count, tmp_path):
    results = run(count, tmp_path)
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
                    assert part.size * count == whole.size
            assert seen.all()
