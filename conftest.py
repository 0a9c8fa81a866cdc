"""Test set-up for the composer, the composed tree and the integration tests.

Upstream's tests rely on it too: they import `skip_if_backend` from here, and
their markers get their meaning here.
"""

import contextlib
import importlib.util
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent
# The suite of upstream's tests has it another one, such as upstream itself.
TREE = Path(os.environ.get("KERAS_TREE", ROOT / "build" / "tree"))
EXCLUDED_ON_OPENVINO = TREE.joinpath(
    "keras", "src", "backend", "openvino", "excluded_concrete_tests.txt"
)

# Upstream's tests of files that its wheel leaves out, so that they fail with
# unmodified Keras as well.
DATA_LEFT_OUT = {
    "test_legacy_load_skips_missing_nested_containers": TREE.joinpath(
        "keras", "src", "saving", "test_data"
    ),
}

# Before anything imports jax, so that one CPU has the devices of a mesh.
DEVICES_FLAG = "--xla_force_host_platform_device_count"
if DEVICES_FLAG not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = (
        f"{os.environ.get('XLA_FLAGS', '')} {DEVICES_FLAG}=8".strip()
    )
os.environ.setdefault("KERAS_BACKEND", "jax")

# Modules are imported from the composed tree here and, without an install, in
# the processes that tests start. `keras/` beside this file holds grafts only.
sys.path.insert(0, str(TREE))
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(TREE), os.environ.get("PYTHONPATH")])
)

with contextlib.suppress(ImportError):
    import torch  # noqa: F401  # TensorFlow crashes if it comes before torch.


def skip_if_backend(given_backend, reason):
    """Marks a test that one backend cannot run."""
    return pytest.mark.skipif(
        os.environ["KERAS_BACKEND"] == given_backend, reason=reason
    )


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "requires_trainable_backend: needs a backend that trains"
    )
    config.addinivalue_line(
        "markers", "multi_device: needs more than one JAX device"
    )
    config.args[:] = [in_tree(argument) for argument in config.args]
    require_composed_keras()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol():
    # One of upstream's tests clears the environment. Those after it start
    # processes that need PATH and more.
    before = dict(os.environ)
    try:
        return (yield)
    finally:
        os.environ.clear()
        os.environ.update(before)


def in_tree(argument):
    """Turns a path below `keras/` into that of the composed module."""
    path = os.path.relpath(Path.cwd() / argument, ROOT)
    if Path(path).parts[:1] == ("keras",):
        return str(TREE / path)
    return argument


def require_composed_keras():
    """Stops unless `import keras` gives the composed tree."""
    spec = importlib.util.find_spec("keras")
    found = spec and spec.origin
    if found != str(TREE / "keras" / "__init__.py"):
        raise pytest.UsageError(
            f"The tests need the composed Keras in {TREE}, but `import keras` "
            f"would import {found}. Run `python -m graft tree` first."
        )


def pytest_collection_modifyitems(items):
    backend = os.environ["KERAS_BACKEND"]
    skips = {}
    if backend in ("numpy", "openvino"):
        skips["requires_trainable_backend"] = f"{backend} cannot train"
    if not has_several_devices(backend):
        skips["multi_device"] = "needs several JAX devices"
    excluded = []
    if backend == "openvino" and EXCLUDED_ON_OPENVINO.exists():
        excluded = EXCLUDED_ON_OPENVINO.read_text().split()
    for item in items:
        for marker, reason in skips.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))
        data = DATA_LEFT_OUT.get(getattr(item, "originalname", None))
        if data and not data.exists():
            reason = f"upstream's wheel leaves out {data.relative_to(TREE)}"
            item.add_marker(pytest.mark.skip(reason=reason))
        if any(name in item.nodeid for name in excluded):
            item.add_marker(pytest.mark.skip(reason="excluded on openvino"))


def has_several_devices(backend):
    if backend != "jax":
        return False
    import jax

    return jax.device_count() > 1
