"""One process of `load.py`: assigns or loads, and tells what it took.

It is run by any Python that has Keras, JAX and h5py, with a task as JSON.
"""

import json
import os
import sys
from pathlib import Path

from measure import forget_peak
from measure import resident_bytes
from measure import timed

# A load of this shape comes first, and what it costs is not counted.
WARM_UP = (64, 64)


def main():
    task = json.loads(sys.argv[1])
    devices = task["devices"]
    os.environ["KERAS_BACKEND"] = "jax"
    os.environ["XLA_FLAGS"] = (
        f"--xla_force_host_platform_device_count={devices}"
    )
    import jax

    processes = task["processes"]
    if processes > 1:
        jax.distributed.initialize(
            task["coordinator"], processes, task["process"]
        )

    import keras

    mesh = keras.distribution.DeviceMesh(
        (processes * devices,), ["model"], keras.distribution.list_devices()
    )
    layouts = keras.distribution.LayoutMap(mesh)
    layouts[".*kernel"] = tuple(task["axes"])
    keras.distribution.set_distribution(
        keras.distribution.ModelParallel(layout_map=layouts)
    )
    prepare = {"assign": prepare_assign, "load": prepare_load}[task["work"]]
    prepare(WARM_UP, 1, task["folder"])()
    work = prepare(tuple(task["shape"]), task["layers"], task["folder"])
    forget_peak()
    before, _ = resident_bytes()
    read = bytes_read()
    seconds, variables = timed(work)
    read = bytes_read() - read
    _, peak = resident_bytes()
    size = sum(
        shard.data.nbytes
        for variable in variables
        for shard in variable.value.addressable_shards
    )
    again, _ = timed(work)
    result = {
        "seconds": seconds,
        "again": again,
        "growth": peak - before,
        "read": read,
        "shards": size,
        "versions": {"keras": keras.__version__, "jax": jax.__version__},
    }
    print(json.dumps(result), flush=True)


def prepare_assign(shape, layers, folder):
    import jax
    import numpy as np

    model = make_model(shape, layers)
    array = np.full(shape, 0.5, "float32")

    def work():
        for variable in model.weights:
            variable.assign(array)
        jax.block_until_ready([v.value for v in model.weights])
        return model.weights

    return work


def prepare_load(shape, layers, folder):
    import jax

    model = make_model(shape, layers)
    path = weights_path(folder, shape, layers)

    def work():
        model.load_weights(path)
        jax.block_until_ready([v.value for v in model.weights])
        return model.weights

    return work


def make_model(shape, layers):
    import jax

    import keras

    model = keras.Sequential([keras.Input(shape[:1])])
    for _ in range(layers):
        model.add(
            keras.layers.Dense(
                shape[1], use_bias=False, kernel_initializer="zeros"
            )
        )
    # What is still being initialized would count as growth.
    jax.block_until_ready([variable.value for variable in model.weights])
    return model


def weights_path(folder, shape, layers):
    rows, columns = shape
    return str(Path(folder, f"{layers}_of_{rows}_{columns}.weights.h5"))


def write_weights(folder, shape, layers):
    """Writes a file as Keras does for `make_model`."""
    import h5py
    import numpy as np

    with h5py.File(weights_path(folder, shape, layers), "w") as file:
        for i in range(layers):
            name = f"dense_{i}" if i else "dense"
            values = np.full(shape, i + 1, "float32")
            file[f"layers/{name}/vars/0"] = values


def bytes_read():
    counts = Path("/proc/self/io").read_text()
    return int(counts.split("rchar:")[1].split()[0])


if __name__ == "__main__":
    main()
