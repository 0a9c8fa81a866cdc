"""Finding the pinned upstream release."""

import subprocess
import sys
from pathlib import Path

import pytest

from graft import upstream
from graft.errors import GraftError
from graft.testing import fill

PYPROJECT = """
[build-system]
requires = ["setuptools", "keras-tuner==9", "keras==1.2.3"]

[project]
name = "keras"
version = "0"
"""


def package(version):
    return {
        "keras/src/version.py": f'__version__ = "{version}"\n',
        f"keras-{version}.dist-info/METADATA": (
            f"Metadata-Version: 2.1\nName: keras\nVersion: {version}\n"
        ),
    }


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with a pin, in an environment with nothing installed."""
    folder = tmp_path / "repository"
    fill(folder, {"pyproject.toml": PYPROJECT})
    monkeypatch.setattr(sys, "path", [])
    return folder


class Pip:
    """Stands in for pip: makes a package, or fails with a message."""

    def __init__(self):
        self.commands = []
        self.version = "1.2.3"
        self.stderr = ""

    def run(self, command, **options):
        self.commands.append(command)
        target = Path(command[command.index("--target") + 1])
        fill(target, {} if self.stderr else package(self.version))
        status = 1 if self.stderr else 0
        return subprocess.CompletedProcess(command, status, "", self.stderr)


@pytest.fixture
def pip(monkeypatch):
    pip = Pip()
    monkeypatch.setattr(subprocess, "run", pip.run)
    return pip


def test_pin_is_the_build_requirement(repository):
    assert upstream.pinned_version(repository) == "1.2.3"


def test_no_pin(repository):
    text = PYPROJECT.replace('"keras==1.2.3"', '"keras>=1.2.3"')
    fill(repository, {"pyproject.toml": text})
    with pytest.raises(GraftError, match="pyproject.toml: .*keras>=1.2.3"):
        upstream.pinned_version(repository)


def test_no_version(tmp_path):
    fill(tmp_path, {"keras/src/version.py": "x = 1\n"})
    with pytest.raises(GraftError, match="version.py: it does not say"):
        upstream.version_of(tmp_path)


def test_the_pinned_release_of_the_environment(
    repository, pip, tmp_path, monkeypatch
):
    other, pinned = tmp_path / "other", tmp_path / "pinned"
    fill(other, package("1.2.3+layout.1"))
    fill(pinned, package("1.2.3"))
    monkeypatch.setattr(sys, "path", [str(other), str(pinned)])
    assert upstream.locate(repository) == pinned.resolve()
    assert pip.commands == []


def test_the_fork_is_no_upstream(repository, pip, tmp_path, monkeypatch):
    fork = tmp_path / "fork"
    fill(fork, package("1.2.3+layout.1"))
    monkeypatch.setattr(sys, "path", [str(fork)])
    assert upstream.locate(repository) == repository / "build" / "upstream"


def test_metadata_without_the_package(repository, pip, tmp_path, monkeypatch):
    bare = tmp_path / "bare"
    fill(bare, package("1.2.3"))
    (bare / "keras" / "src" / "version.py").unlink()
    monkeypatch.setattr(sys, "path", [str(bare)])
    assert upstream.locate(repository) == repository / "build" / "upstream"


def test_a_checkout_gets_its_copy_once(repository, pip):
    copy = upstream.locate(repository)
    assert upstream.version_of(copy) == "1.2.3"
    assert upstream.locate(repository) == copy
    (command,) = pip.commands
    assert command[:4] == [sys.executable, "-m", "pip", "install"]
    assert command[-1] == "keras==1.2.3" and "--no-deps" in command
    assert [each.name for each in copy.parent.iterdir()] == ["upstream"]


def test_a_new_pin_gets_a_new_copy(repository, pip):
    copy = upstream.locate(repository)
    fill(copy, {"keras/old.py": ""})
    fill(repository, {"pyproject.toml": PYPROJECT.replace("1.2.3", "1.3.0")})
    pip.version = "1.3.0"
    assert upstream.locate(repository) == copy
    assert upstream.version_of(copy) == "1.3.0"
    assert not (copy / "keras" / "old.py").exists()


def test_no_way_to_get_it(repository, pip):
    copy = repository / "build" / "upstream"
    fill(copy, package("1.0.0"))
    pip.stderr = "WARNING: a\nERROR: No matching distribution found\n"
    with pytest.raises(GraftError) as caught:
        upstream.locate(repository)
    assert str(caught.value) == (
        "upstream's release keras==1.2.3 is not here, and pip could not get it "
        "(ERROR: No matching distribution found). Where a package registry can "
        "be reached, run\n    python -m pip install --no-deps --target "
        f"{copy} keras==1.2.3"
    )
    assert upstream.version_of(copy) == "1.0.0"
    assert [each.name for each in copy.parent.iterdir()] == ["upstream"]
