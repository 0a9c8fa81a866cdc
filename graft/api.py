"""Keeps the public API modules in step with what the tree exports.

A public name is exported by its `keras_export` decorator, and namex derives the
API modules, such as `keras/random/__init__.py`, from the decorators. What the
fork exports beyond upstream stands in grafts of those modules, which this
module writes:

    python -m graft.api [--check]

It imports every module of the composed tree, so it needs the packages in
`requirements.txt`.
"""

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from graft.errors import GraftError
from graft.upstream import locate

REPOSITORY = Path(__file__).resolve().parent.parent
API_MODULE = "__init__.py"
HEADER = "# Written by shell/api_gen.sh.\n"

# Imported only together with their own backend. None exports anything.
NOT_SCANNED = ("jax", "openvino", "tensorflow", "torch")
NAMEX = f"""
import namex
namex.generate_api_files(
    "keras", exclude_directories=["src/backend/" + b for b in {NOT_SCANNED}]
)
"""

# What upstream's API has besides that which namex derives.
NOT_DERIVED = {
    ("keras", "_tf_keras", "_tf_keras"),
    ("keras.src.version", "__version__", "__version__"),
}
# Upstream copies its API there, with names of Keras 2 in some places.
COPY = Path("keras", "_tf_keras", "keras")
# How namex sees those names of Keras 2. The fork adds none.
LEGACY = Path("keras", "_legacy")


def imports(module):
    """The `from` imports of a module, as (module, name, alias) triples."""
    return {
        (statement.module, name.name, name.asname)
        for statement in ast.parse(module.read_text()).body
        if isinstance(statement, ast.ImportFrom)
        for name in statement.names
    }


def api_modules(folder):
    """The imports of each API module of the package in a folder, by path."""
    return {
        path.relative_to(folder): imports(path)
        for path in (folder / "keras").rglob(API_MODULE)
        if folder / "keras" / "src" not in path.parents
    }


def exports(tree):
    """The API modules that namex derives from the package in `tree`."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "keras")
        package.mkdir()
        (package / API_MODULE).touch()
        (package / "src").symlink_to((tree / "keras" / "src").resolve())
        namex = subprocess.run(
            [sys.executable, "-c", NAMEX],
            cwd=folder,
            env={**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": ""},
            stderr=subprocess.PIPE,
            text=True,
        )
        if namex.returncode:
            raise GraftError(
                f"namex could not import the tree:\n{namex.stderr}", tree
            )
        return {
            path: found - {("keras", "_legacy", "_legacy")}
            for path, found in api_modules(Path(folder)).items()
            if LEGACY not in path.parents
        }


def grafts(exported, upstream):
    """What has to be grafted into upstream's API modules.

    Args:
        exported: The imports of the API modules that the tree asks for, by
            path.
        upstream: Those of upstream.

    Returns:
        The imports of each graft, by path.

    Raises:
        GraftError: The tree does not export what upstream exports.
    """
    gone = {
        f"{path}: {alias}"
        for path, found in upstream.items()
        if COPY.parent not in path.parents
        for _, _, alias in found - NOT_DERIVED - exported.get(path, set())
    }
    if gone:
        raise GraftError(
            "the tree no longer exports what upstream does. Does a graft wrap "
            "it without `keras_export`?\n" + "\n".join(sorted(gone))
        )
    wanted = {}
    for path, found in exported.items():
        new = found - upstream.get(path, set())
        if new:
            wanted[path] = new
            wanted[COPY / path.relative_to("keras")] = new
    return wanted


def main(arguments=None, repository=REPOSITORY):
    """Writes or checks the grafts of the API modules.

    Args:
        arguments: The command line.
        repository: The repository, with its tree composed.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(prog="python -m graft.api")
    parser.add_argument(
        "--check", action="store_true", help="only say what is out of date"
    )
    options = parser.parse_args(arguments)
    try:
        exported = exports(repository / "build" / "tree")
        wanted = grafts(exported, api_modules(locate(repository)))
    except GraftError as error:
        print(f"graft: {error}", file=sys.stderr)
        return 1
    present = api_modules(repository)
    stale = [
        path
        for path in sorted({*wanted, *present})
        if wanted.get(path) != present.get(path)
    ]
    for path in stale:
        if options.check:
            print(f"{path} is out of date: run shell/api_gen.sh")
        else:
            write(repository / path, wanted.get(path))
            print(f"{path} updated")
    return 1 if options.check and stale else 0


def write(path, found):
    """Makes a graft hold these imports, or removes it if there are none."""
    if not found:
        path.unlink()
        return
    lines = [f"from {m} import {n} as {a}\n" for m, n, a in sorted(found)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join([HEADER, *lines]))


if __name__ == "__main__":
    sys.exit(main())
