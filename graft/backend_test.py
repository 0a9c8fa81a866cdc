"""The build backend, on a copy of this repository."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from graft.upstream import locate

ROOT = Path(__file__).resolve().parent.parent
VERSION = Path("keras", "src", "version.py")


@pytest.fixture
def repository(tmp_path):
    """A copy of what a build reads, with one graft, and its upstream."""
    copy = tmp_path / "fork"
    shutil.copytree(ROOT / "graft", copy / "graft")
    for name in ("LICENSE", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, copy)
    (copy / VERSION).parent.mkdir(parents=True)
    shutil.copy(ROOT / VERSION, copy / VERSION)
    (copy / "build").mkdir()
    (copy / "build" / "upstream").symlink_to(locate(ROOT))
    subprocess.run(
        [sys.executable, "-m", "graft", "lock"],
        cwd=copy,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return copy


def build_wheel(repository):
    hook = "from graft import backend; backend.build_wheel('dist')"
    return subprocess.run(
        [sys.executable, "-c", hook],
        cwd=repository,
        capture_output=True,
        text=True,
    )


def names_in_wheel(repository):
    (wheel,) = (repository / "dist").glob("*.whl")
    return zipfile.ZipFile(wheel).namelist()


def test_wheel_holds_upstream_and_what_the_repository_adds(repository):
    data = repository / "keras" / "src" / "layers" / "table.json"
    data.parent.mkdir()
    data.write_text("{}\n")
    module = data.with_name("born.py")
    module.write_text("LAYOUT = None\n")
    built = build_wheel(repository)
    assert built.returncode == 0, built.stderr
    names = names_in_wheel(repository)
    upstream = locate(ROOT)
    theirs = {
        path.relative_to(upstream).as_posix()
        for path in (upstream / "keras").rglob("*.py")
    }
    ours = {"keras/src/layers/born.py", "keras/src/layers/table.json"}
    package = {name for name in names if name.startswith("keras/")}
    assert package == theirs | ours

    module.unlink()
    assert build_wheel(repository).returncode == 0
    assert "keras/src/layers/born.py" not in names_in_wheel(repository)


def test_a_graft_that_does_not_fit_is_one_message(repository):
    (repository / VERSION).write_text("def version(:\n")
    built = build_wheel(repository)
    assert built.returncode == 1
    assert built.stderr.startswith(f"graft: {VERSION.as_posix()}:1: ")
    assert "Traceback" not in built.stderr
    assert not (repository / "dist").exists()
