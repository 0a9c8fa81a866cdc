"""Composes the whole tree: upstream's files, grafted files, new files."""

import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from importlib import metadata
from pathlib import Path

from graft import lock
from graft.errors import GraftError
from graft.syntax import decoded
from graft.syntax import parsed
from graft.upstream import version_of

PACKAGE = "keras"
CACHE = "merged.json"


@dataclasses.dataclass
class Composition:
    """What a composed tree consists of, before it is written.

    Args:
        version: The version of upstream.
        upstream: The content of each of upstream's files, by path.
        files: The content of each file of the tree, by path.
        hooks: For each grafted file the upstream definitions that it depends
            on; see `graft.merge.Merged`.
        new: The paths that upstream does not have.
        errors: A `GraftError` for each graft that does not fit.
    """

    version: str
    upstream: dict
    files: dict
    hooks: dict
    new: list
    errors: list

    def raise_errors(self):
        if len(self.errors) == 1:
            raise self.errors[0]
        if self.errors:
            raise GraftError("\n".join(map(str, self.errors)))


def compose(upstream, repository, tree):
    """Writes the composed package into `tree`, or changes nothing there.

    Only files whose content differs are written.

    Args:
        upstream: The folder that holds the upstream package `keras/`.
        repository: The folder that holds the grafts and new modules, in
            `keras/`, and `graft.lock`.
        tree: The folder to write `keras/` into.

    Raises:
        GraftError: There is no such upstream, a graft does not fit it, or it is
            not the upstream that `graft.lock` was written for.
    """
    composition = plan(upstream, repository, tree.parent)
    check(composition, repository)
    write(composition.files, tree)


def plan(upstream, repository, cache):
    """Works out what the tree consists of.

    Args:
        upstream: The folder that holds the upstream package.
        repository: The folder that holds the grafts.
        cache: The folder in which to keep what was merged, for the next time.

    Returns:
        A `Composition`.
    """
    version = version_of(upstream)
    theirs = read_package(upstream)
    files = dict(theirs)
    merged = _Merges(cache / CACHE)
    hooks, new, errors = {}, [], []
    for path, content in read_package(repository).items():
        try:
            if path.endswith(".py"):
                parsed(decoded(content, path), path)
            if path in theirs:
                text, hooks[path] = merged(theirs[path], content, path)
                files[path] = text.encode()
            else:
                files[path] = content
                new.append(path)
        except GraftError as error:
            errors.append(error)
    merged.save()
    return Composition(version, theirs, files, hooks, new, errors)


def read_package(folder):
    """The content of each file of the package in `folder`, by path."""
    found = {}
    for parent, folders, files in os.walk(folder / PACKAGE):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        for name in sorted(files):
            if not name.startswith(".") and not name.endswith(".pyc"):
                path = Path(parent, name)
                relative = path.relative_to(folder).as_posix()
                found[relative] = path.read_bytes()
    return found


def check(composition, repository):
    """Raises the `GraftError` that stands against writing a composition."""
    locked = lock.read(repository / lock.NAME)
    review = lock.review(locked, composition)
    if review.owed:
        raise GraftError(review.message(composition), lock.NAME)
    composition.raise_errors()


def write(files, tree):
    """Makes the package in `tree` consist of these files."""
    tree.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        target = tree / path
        try:
            if target.read_bytes() == content:
                continue
        except FileNotFoundError:
            target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, content, tree.parent)
    _remove_others(files, tree)


def _replace(target, content, scratch):
    # Renamed into place, so that nobody who imports meets half a file.
    handle, temporary = tempfile.mkstemp(dir=scratch, prefix=".graft-")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    os.chmod(temporary, 0o644)
    os.replace(temporary, target)


def _remove_others(files, tree):
    kept = {str(parent) for path in files for parent in Path(path).parents}
    for parent, folders, names in os.walk(tree / PACKAGE):
        for folder in list(folders):
            path = Path(parent, folder)
            if folder == "__pycache__":
                folders.remove(folder)
            elif path.relative_to(tree).as_posix() not in kept:
                shutil.rmtree(path)
                folders.remove(folder)
        for name in names:
            path = Path(parent, name)
            if path.relative_to(tree).as_posix() not in files:
                path.unlink()


class _Merges:
    """Merges, remembering what was merged before.

    Args:
        path: The file that remembers.
    """

    def __init__(self, path):
        self.path = path
        self.used = {}
        try:
            self.known = json.loads(path.read_text())
        except (FileNotFoundError, ValueError):
            self.known = {}
        self.stored = set(self.known)
        self.composer = _composer_digest()

    def __call__(self, upstream, graft, path):
        digest = hashlib.sha256(self.composer)
        for part in (upstream, graft, path.encode()):
            digest.update(hashlib.sha256(part).digest())
        key = digest.hexdigest()
        if key not in self.known:
            self.known[key] = _merged(upstream, graft, path)
        self.used[key] = self.known[key]
        return self.used[key]

    def save(self):
        if self.used.keys() != self.stored:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            content = json.dumps(self.used).encode()
            _replace(self.path, content, self.path.parent)


def _merged(upstream, graft, path):
    from graft.merge import merge  # libcst takes a while to import

    if not path.endswith(".py"):
        raise GraftError("upstream has this file, and it is no module", path)
    theirs = decoded(upstream, f"upstream's {path}")
    result = merge(theirs, graft.decode(), path)
    return [result.text, result.hooks]


def _composer_digest():
    digest = hashlib.sha256(metadata.version("libcst").encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if not path.name.endswith("_test.py"):
            digest.update(path.read_bytes())
    return digest.digest()
