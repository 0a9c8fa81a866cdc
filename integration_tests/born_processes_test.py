"""Initializers of all kinds fill their part in each of several processes."""

import pytest

import keras
from keras.src.backend.jax import processes_testing as processes

WORKER = """
import contextlib

import numpy as np

from keras.src import initializers
from keras.src.backend.jax import initialization_testing as cases

axes = (jax.sharding.AxisType.Auto,)
layout = jax.sharding.NamedSharding(
    jax.make_mesh((2,), ("model",), axes),
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
            assert value.shape[0] == 2 * shard.data.shape[0], name
            part = np.asarray(want)[shard.index]
            np.testing.assert_array_equal(shard.data, part, err_msg=name)
        for state, want in zip(states, wanted[name][1], strict=True):
            np.testing.assert_array_equal(state, want, err_msg=name)
"""


@pytest.mark.multi_device
@pytest.mark.skipif(keras.backend.backend() != "jax", reason="JAX only")
def test_initializers_in_several_processes():
    processes.run(WORKER, 2)
