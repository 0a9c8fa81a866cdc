"""Keras imports and works without the packages of other backends."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent
BACKEND = os.environ["KERAS_BACKEND"]
PACKAGES = {
    "jax": ["jax", "jaxlib", "flax"],
    "openvino": ["openvino"],
    "tensorflow": ["tensorflow", "tf_keras"],
    "torch": ["torch"],
}
# The NumPy backend convolves with JAX.
NEEDED = "jax" if BACKEND == "numpy" else BACKEND
NNX = os.environ.get("KERAS_NNX_ENABLED") == "true"

WITHOUT = """
import sys


class Without:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, *args):
        if name.split(".")[0] not in sys.argv[1].split():
            return self.finder.find_spec(name, *args)


sys.meta_path[:] = map(Without, sys.meta_path)
"""
TEST = f"""{WITHOUT}
import pytest

sys.exit(pytest.main(sys.argv[2:]))
"""


def run(script, *arguments):
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=FOLDER.parent,
        capture_output=True,
        text=True,
    )


def test_everything_works_without_other_backends():
    others = {n for b in PACKAGES if b != NEEDED for n in PACKAGES[b]}
    if NEEDED == "jax" and not NNX:
        others.add("flax")
    done = run(TEST, " ".join(others), str(FOLDER / "flow_test.py"), "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


@pytest.mark.parametrize("package", ["flax"] if NNX else PACKAGES[NEEDED][:1])
def test_says_which_package_is_missing(package):
    done = run(f"{WITHOUT}\nimport keras", package)
    assert done.returncode != 0
    last = done.stderr.splitlines()[-1]
    assert last.startswith(("ImportError", "ModuleNotFoundError"))
    assert package in last


@pytest.mark.skipif(BACKEND != "jax", reason="It has no layouts.")
def test_says_that_jax_is_too_old():
    done = run("import jax; jax.__version_info__ = (0, 9, 2); import keras")
    assert done.returncode != 0
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: The JAX backend")
    assert f"Received: jax {importlib.metadata.version('jax')}" in last
