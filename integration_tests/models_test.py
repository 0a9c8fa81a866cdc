"""Whole models start with the weights that unmodified upstream gives them."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODELS = ("efficientnet", "gpt_12")

BUILD = """
import hashlib
import json
import sys

sys.path.insert(0, sys.argv[1])
import model_contenders

digests = {}
for model in sys.argv[2:]:
    for weight in model_contenders.build(model, sharded=False)().weights:
        value = weight.numpy()
        digest = hashlib.sha256(value.tobytes()).hexdigest()
        digests[f"{model} {len(digests)} {weight.path}"] = digest
print(json.dumps(digests))
"""


def build(tree):
    """The digest of each weight, as the Keras in a folder builds models."""
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(ROOT / "benchmarks"), *MODELS],
        env=os.environ | {"PYTHONPATH": str(tree)},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def upstream():
    return build(ROOT / "build" / "upstream")


def test_unsharded_weights(upstream):
    fork = build(ROOT / "build" / "tree")
    assert len(fork) > 300
    assert fork == upstream


def test_programs_that_building_a_model_compiles():
    count = f"""if True:
        import sys
        sys.path.insert(0, {str(ROOT / "benchmarks")!r})
        import model_contenders
        print(model_contenders.count_programs("gpt_24", sharded=True))
    """
    done = subprocess.run(
        [sys.executable, "-c", count],
        env=os.environ | {"PYTHONPATH": str(ROOT / "build" / "tree")},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    # Large: the embedding, two kernels of a block, and the last kernel.
    assert 4 <= int(done.stdout.splitlines()[-1]) <= 4 + 10


def test_a_sharded_model_has_the_same_weights():
    from importlib import import_module

    sys.path.insert(0, str(ROOT / "benchmarks"))
    contenders = import_module("model_contenders")
    import keras

    plain = contenders.build("gpt_12", sharded=False)()
    try:
        sharded = contenders.build("gpt_12", sharded=True)()
    finally:
        keras.distribution.set_distribution(None)
    spread = 0
    for a, b in zip(plain.weights, sharded.weights, strict=True):
        spread += not b.value.sharding.is_fully_replicated
        assert a.path.split("/")[-1] == b.path.split("/")[-1]
        assert digest(a) == digest(b), b.path
    assert spread > 60


def digest(weight):
    return hashlib.sha256(weight.numpy().tobytes()).hexdigest()
