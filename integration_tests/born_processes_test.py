"""Initializers of all kinds fill their part in each of several processes."""

import os
import socket
import subprocess
import sys

import pytest

import keras

PROCESSES = 2

WORKER = """
import contextlib
import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=1"

import jax
import numpy as np

coordinator, processes, process = sys.argv[1], *map(int, sys.argv[2:])
jax.distributed.initialize(
    coordinator, processes, process, initialization_timeout=60
)

from keras.src import initializers
from keras.src.backend.jax import initialization_test as cases

axes = (jax.sharding.AxisType.Auto,)
layout = jax.sharding.NamedSharding(
    jax.make_mesh((processes,), ("model",), axes),
    jax.sharding.PartitionSpec("model"),
)
# One of each road that a value can take.
legacy = [
    "object",
    "control flow",
    "pure callback",
    "factorization",
    "big host data and a key",
    "big JAX array",
    "returns NumPy",
    "returns a JAX array",
    "returns a variable",
    "several generators",
    "unseeded",
]
kinds = {name: cases.LEGACY[name] for name in legacy}
for name in ("as documented", "keras.random and ops", "control flow"):
    kinds["with layout: " + name] = cases.WITH_LAYOUT[name]
for cls in (initializers.Orthogonal, initializers.GlorotUniform):
    kinds[cls.__name__] = lambda cls=cls: cls(seed=3)

# Whole values and random states: what each process has by itself.
wanted = {name: cases.values_of_two(make) for name, make in kinds.items()}
for large in (cases.large, contextlib.nullcontext):
    for name, make in kinds.items():
        with large():
            values, states = cases.values_of_two(make, layout)
        for value, want in zip(values, wanted[name][0], strict=True):
            (shard,) = value.addressable_shards
            assert value.shape[0] == processes * shard.data.shape[0], name
            part = np.asarray(want)[shard.index]
            np.testing.assert_array_equal(shard.data, part, err_msg=name)
        for state, want in zip(states, wanted[name][1], strict=True):
            np.testing.assert_array_equal(state, want, err_msg=name)
jax.distributed.shutdown()
"""


@pytest.mark.multi_device
@pytest.mark.skipif(keras.backend.backend() != "jax", reason="JAX only")
def test_initializers_in_several_processes():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        coordinator = f"localhost:{free.getsockname()[1]}"
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, coordinator]
            + [str(PROCESSES), str(process)],
            env={**os.environ, "KERAS_BACKEND": "jax"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for process in range(PROCESSES)
    ]
    try:
        outputs = [worker.communicate(timeout=300)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    for worker, output in zip(workers, outputs):
        assert worker.returncode == 0, output
