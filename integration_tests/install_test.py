"""The fork installs the ways users install it, into environments of its own.

The repository is cloned first, so what counts is what is committed.
"""

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from graft.upstream import locate
from graft.upstream import pinned_version

ROOT = Path(__file__).resolve().parent.parent

PROBE = """
import inspect
import json
from importlib import metadata

import keras

installed = metadata.distribution("keras")
files = [str(path) for path in installed.files]
(licence,) = [name for name in files if name.endswith("licenses/LICENSE")]
print(
    json.dumps(
        {
            "file": keras.__file__,
            "version": keras.__version__,
            "distribution": installed.version,
            "requires": installed.requires,
            "extras": installed.metadata.get_all("Provides-Extra"),
            "licence": installed.read_text("licenses/LICENSE"),
            "tests": [name for name in files if name.endswith("_test.py")],
            "normal": list(inspect.signature(keras.random.normal).parameters),
            "sample": keras.random.normal((2, 3), seed=1).shape,
        }
    )
)
"""


def run(*command, cwd):
    """Runs a command as a user of JAX would, not as these tests run."""
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    environment.pop("PYTHONPATH", None)
    environment.pop("XLA_FLAGS", None)
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repository") / "fork"
    run("git", "clone", "--quiet", ROOT, folder, cwd=ROOT)
    return folder


class Environment:
    """A virtual environment with the fork in it.

    Args:
        folder: Where to make it.
    """

    def __init__(self, folder):
        run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
        self.folder = folder
        self.python = folder / "bin" / "python"

    def install(self, *arguments):
        run(self.python, "-m", "pip", "install", *arguments, cwd=self.folder)

    def probe(self):
        lines = run(self.python, "-c", PROBE, cwd=self.folder).splitlines()
        return json.loads(lines[-1])


@pytest.fixture(scope="module")
def environment(tmp_path_factory, clone):
    """An environment with the fork and JAX, installed from a git URL."""
    made = Environment(tmp_path_factory.mktemp("environment") / "venv")
    pip = run(made.python, "-m", "pip", "--version", cwd=made.folder)
    url = f"git+file://{clone}"
    # Each form is the one that the other releases of pip refuse.
    new = int(re.match(r"pip (\d+)", pip).group(1)) >= 25
    requirement = f"keras[jax] @ {url}" if new else f"{url}#egg=keras[jax]"
    made.install(requirement)
    return made


@pytest.fixture(scope="module")
def from_git(environment):
    return environment.probe()


@pytest.fixture(scope="module")
def upstream():
    """The distribution of the pinned upstream release."""
    (found,) = metadata.distributions(name="keras", path=[str(locate(ROOT))])
    return found


def test_version_says_release_and_layout(from_git):
    pin = re.escape(pinned_version(ROOT))
    assert re.fullmatch(rf"{pin}\+layout\.\d+", from_git["version"])
    assert from_git["distribution"] == from_git["version"]


def test_installs_as_keras_with_a_working_backend(environment, from_git):
    assert Path(from_git["file"]).is_relative_to(environment.folder)
    assert "layout" in from_git["normal"]
    assert from_git["sample"] == [2, 3]


def test_has_upstreams_requirements_and_our_extras(from_git, upstream):
    plain = [r for r in from_git["requires"] if "extra ==" not in r]
    assert sorted(plain) == sorted(upstream.requires)
    assert sorted(from_git["extras"]) == ["jax", "tensorflow", "test", "torch"]


def test_carries_upstreams_tests_and_licence(from_git, upstream):
    tests = {str(f) for f in upstream.files if f.name.endswith("_test.py")}
    assert len(tests) > 100
    assert tests <= set(from_git["tests"])
    assert from_git["licence"] == upstream.read_text("licenses/LICENSE")


def test_sdist_installs(environment, clone, from_git, tmp_path):
    build = f"from graft import backend; backend.build_sdist({str(tmp_path)!r})"
    run(sys.executable, "-c", build, cwd=clone)
    (archive,) = tmp_path.iterdir()
    environment.install("--no-deps", "--force-reinstall", archive)
    assert environment.probe() == from_git


def test_editable_install_follows_the_tree(environment, clone, from_git):
    environment.install("--no-deps", "--editable", clone)
    found = environment.probe()
    tree = clone / "build" / "tree"
    assert found["file"] == str(tree / "keras" / "__init__.py")
    assert found["requires"] == from_git["requires"]

    new = clone / "keras" / "src" / "utils" / "new_module.py"
    new.parent.mkdir(exist_ok=True)
    new.write_text("ANSWER = 42\n")
    run(sys.executable, "-m", "graft", "tree", cwd=clone)
    ask = "from keras.src.utils import new_module; print(new_module.ANSWER)"
    said = run(environment.python, "-c", ask, cwd=environment.folder)
    assert said.splitlines()[-1] == "42"

    new.unlink()
    assert run("git", "status", "--porcelain", cwd=clone) == ""
