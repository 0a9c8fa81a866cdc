"""Finds the pinned upstream release.

The pin is the build requirement `keras==...` in `pyproject.toml`. A build finds
the release in its isolated environment. A checkout has its own copy, since in a
developer's environment `keras` is the fork itself.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from graft.errors import GraftError

NAME = "keras"
COPY = Path("build", "upstream")
PIN = re.compile(rf"{NAME}\s*==\s*([\w.!+]+)$")


def pinned_version(repository):
    """The version of upstream that this repository's grafts are for."""
    path = repository / "pyproject.toml"
    requirements = tomllib.loads(path.read_text())["build-system"]["requires"]
    for requirement in requirements:
        match = PIN.match(requirement.strip())
        if match is not None:
            return match.group(1)
    raise GraftError(
        f"no pin: [build-system] requires should have `{NAME}==VERSION`. "
        f"Received: requires={requirements}",
        path.name,
    )


def version_of(folder):
    """The version of the upstream package in a folder."""
    path = folder / NAME / "src" / "version.py"
    if not path.is_file():
        raise GraftError(f"there is no {NAME}/src/version.py", folder)
    match = re.search(r"^__version__ = \"(.*?)\"", path.read_text(), re.M)
    if match is None:
        raise GraftError("it does not say which version this is", path)
    return match.group(1)


def locate(repository):
    """The folder that holds the pinned upstream package.

    Args:
        repository: The repository whose pin counts.

    Returns:
        The folder with `keras/` in it: of the running environment, if it has
        exactly the pinned release, else `build/upstream/`, filled if need be.
    """
    version = pinned_version(repository)
    for distribution in metadata.distributions(name=NAME):
        folder = Path(distribution.locate_file("")).resolve()
        if _holds(folder, version):
            return folder
    folder = repository / COPY
    if not _holds(folder, version):
        _install(version, folder)
    return folder


def _holds(folder, version):
    try:
        return version_of(folder) == version
    except GraftError:
        return False


def _install(version, folder):
    folder.parent.mkdir(parents=True, exist_ok=True)
    requirement = f"{NAME}=={version}"
    command = [sys.executable, "-m", "pip", "install", "--no-deps"]
    command += ["--no-compile", "--quiet", "--disable-pip-version-check"]
    print(f"Getting {requirement} into {folder}", file=sys.stderr)
    scratch = folder.with_name(f"{folder.name}-{os.getpid()}")
    try:
        done = subprocess.run(
            [*command, "--target", str(scratch), requirement],
            capture_output=True,
            text=True,
        )
        if done.returncode or not _holds(scratch, version):
            said = (done.stderr or done.stdout).strip().splitlines()
            raise GraftError(
                f"upstream's release {requirement} is not here, and pip could "
                f"not get it ({said[-1] if said else 'it gave no reason'}). "
                "Where a package registry can be reached, run\n"
                "    python -m pip install --no-deps "
                f"--target {folder} {requirement}"
            )
        shutil.rmtree(folder, ignore_errors=True)
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
