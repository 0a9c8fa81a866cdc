"""Values drawn in a layout are those that unmodified upstream draws without.

Upstream runs in a process of its own and leaves its values in a file.
"""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import ml_dtypes  # noqa: F401  # NumPy learns `bfloat16` from it.
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec

import keras

UPSTREAM = Path(__file__).resolve().parents[1] / "build" / "upstream"
SHAPE = (16, 24, 8)
DTYPES = ("float32", "bfloat16", "float16")
SPECS = (
    (),
    ("model",),
    (None, "model"),
    ("batch", None, "model"),
    (("batch", "model"),),
    (None, ("model", "batch")),
    ("model", "batch"),
)
DRAWS = {
    "normal": {"mean": 0.3, "stddev": 0.017},
    "uniform": {"minval": -0.3, "maxval": 0.2},
    "truncated_normal": {"mean": -2.0, "stddev": 1.7},
}
INITIALIZERS = (
    "glorot_uniform",
    "glorot_normal",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
    "orthogonal",
    "random_normal",
    "random_uniform",
    "truncated_normal",
    "variance_scaling",
)

IN_UPSTREAM = """
import json
import sys

import numpy as np

import keras

assert keras.__version__ == "3.15.1", keras.__version__
task = json.loads(sys.argv[1])
values = {}
for dtype in task["dtypes"]:
    for op, params in task["draws"].items():
        draw = getattr(keras.random, op)
        value = draw(task["shape"], dtype=dtype, seed=11, **params)
        values[f"{op} {dtype}"] = np.asarray(value).view(np.uint8)
keras.utils.set_random_seed(5)
for name in task["initializers"]:
    initializer = keras.initializers.get(name)
    value = keras.Variable(initializer, task["shape"], "float32").value
    values[name] = np.asarray(value).view(np.uint8)
np.savez(task["file"], **values)
"""


@pytest.fixture(scope="module")
def upstream(tmp_path_factory):
    file = tmp_path_factory.mktemp("upstream") / "values.npz"
    task = {
        "dtypes": DTYPES,
        "draws": DRAWS,
        "shape": SHAPE,
        "initializers": INITIALIZERS,
        "file": str(file),
    }
    environment = os.environ | {
        "KERAS_BACKEND": "jax",
        "PYTHONPATH": str(UPSTREAM),
    }
    subprocess.run(
        [sys.executable, "-c", IN_UPSTREAM, json.dumps(task)],
        env=environment,
        check=True,
    )
    with np.load(file) as values:
        return dict(values)


def layout(spec):
    mesh = jax.sharding.Mesh(
        np.reshape(jax.devices(), (2, 4)), ("batch", "model")
    )
    return NamedSharding(mesh, PartitionSpec(*spec))


@pytest.mark.parametrize("op, dtype", itertools.product(DRAWS, DTYPES))
def test_draws(upstream, op, dtype):
    expected = upstream[f"{op} {dtype}"]
    assert expected.any()
    for spec in SPECS:
        sharding = layout(spec)
        value = getattr(keras.random, op)(
            SHAPE, dtype=dtype, seed=11, layout=sharding, **DRAWS[op]
        )
        assert value.sharding == sharding
        np.testing.assert_array_equal(
            np.asarray(value).view(np.uint8), expected, err_msg=str(spec)
        )


@pytest.mark.parametrize("spec", [None, *SPECS])
def test_variables(upstream, spec):
    keras.utils.set_random_seed(5)
    sharding = None if spec is None else layout(spec)
    for name in INITIALIZERS:
        initializer = keras.initializers.get(name)
        variable = keras.Variable(
            initializer, SHAPE, "float32", layout=sharding
        )
        if sharding is not None:
            assert variable.value.sharding == sharding
        np.testing.assert_array_equal(
            np.asarray(variable.value).view(np.uint8),
            upstream[name],
            err_msg=name,
        )
