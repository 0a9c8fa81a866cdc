"""The build backend: compose the tree, then let setuptools build from it.

It has the hooks of PEP 517 (wheels, source distributions) and of PEP 660
(editable installs).
"""

import functools
import importlib.metadata
import shutil
import sys
from pathlib import Path

from setuptools import build_meta

from graft.compose import compose
from graft.errors import GraftError
from graft.upstream import locate

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"


def compose_for_setuptools():
    """Fills `build/` with what `pyproject.toml` tells setuptools to read."""
    upstream = locate(ROOT)
    compose(upstream, ROOT, BUILD / "tree")
    (distribution,) = importlib.metadata.distributions(
        name="keras", path=[str(upstream)]
    )
    dependencies = "\n".join(distribution.requires)
    (BUILD / "dependencies.txt").write_text(dependencies + "\n")
    # setuptools would package what an earlier build left there.
    shutil.rmtree(BUILD / "lib", ignore_errors=True)


def after_composing(hook):
    @functools.wraps(hook)
    def composing_hook(*args, **kwargs):
        try:
            compose_for_setuptools()
        except GraftError as error:
            # The message alone: installers show a build's output as it is,
            # and a traceback would bury it.
            sys.exit(f"graft: {error}")
        return hook(*args, **kwargs)

    return composing_hook


def get_requires_for_build_wheel(config_settings=None):
    # setuptools would answer by evaluating the metadata, for which the tree
    # has to be there. `pyproject.toml` lists everything.
    return []


get_requires_for_build_editable = get_requires_for_build_wheel
get_requires_for_build_sdist = get_requires_for_build_wheel

build_editable = after_composing(build_meta.build_editable)
build_sdist = after_composing(build_meta.build_sdist)
build_wheel = after_composing(build_meta.build_wheel)
prepare_metadata_for_build_editable = after_composing(
    build_meta.prepare_metadata_for_build_editable
)
prepare_metadata_for_build_wheel = after_composing(
    build_meta.prepare_metadata_for_build_wheel
)
