"""A git checkout of upstream, and a branch with the series on it.

Commits are made of files in git's store alone. The working tree, the index and
the branch that is checked out stay as they are, and the new branch is there
with all of its commits or not at all.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from graft.errors import GraftError

# What tells upstream's tree from others; this repository lacks the second.
MARKS = ("keras/src/version.py", "keras/src/api_export.py")
NOWHERE = "0" * 40
# Modes of files in git's trees.
FILE, PROGRAM = "100644", "100755"


class Checkout:
    """A git checkout.

    Args:
        folder: The top folder of its working tree.

    Raises:
        GraftError: It is not a clean checkout of Keras.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        self.entries = {}
        if not self.folder.is_dir():
            raise GraftError("there is no such folder", folder)
        try:
            top = self.git("rev-parse", "--show-toplevel").decode().strip()
            self.head = self.git("rev-parse", "HEAD^{commit}").decode().strip()
        except GraftError as error:
            raise GraftError(
                f"this is no git checkout with a commit: {error.message}",
                folder,
            ) from None
        if Path(top) != self.folder.resolve():
            raise GraftError(f"the checkout is {top}, name that", folder)
        found = self.git("ls-tree", "-r", "--name-only", "HEAD", *MARKS)
        for mark in MARKS:
            if mark not in found.decode().split():
                raise GraftError(f"this is no Keras: it has no {mark}", folder)
        changes = self.git("status", "--porcelain", "--untracked-files=no")
        if changes:
            raise GraftError(
                "the checkout has changes that are not committed; commit or "
                f"stash them:\n{changes.decode().rstrip()}",
                folder,
            )

    def git(self, *arguments, content=None, **variables):
        """What git prints; raises a `GraftError` with what it says."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name not in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE")
        }
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            input=content,
            capture_output=True,
            env={**inherited, **variables},
        )
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise GraftError(f"git {arguments[0]}: {said}", self.folder)
        return done.stdout

    def files(self):
        """The content of each file at the commit that is checked out."""
        listed = self.git("ls-tree", "-r", "-z", self.head).decode()
        for entry in filter(None, listed.split("\0")):
            about, path = entry.split("\t", 1)
            mode, _, stored = about.split()
            if mode in (FILE, PROGRAM):  # Else a link or a submodule.
                self.entries[path] = (mode, stored)
        asked = "".join(f"{stored}\n" for _, stored in self.entries.values())
        told = self.git("cat-file", "--batch", content=asked.encode())
        found, start = {}, 0
        for path in self.entries:
            end = told.index(b"\n", start)
            size = int(told[start:end].split()[-1])
            start = end + 1
            found[path] = told[start : start + size]
            start += size + 1
        return found

    def check_new(self, branch):
        """Raises a `GraftError` unless this can be the name of a new branch."""
        try:
            self.git("check-ref-format", "--branch", branch)
        except GraftError:
            raise GraftError(f"`{branch}` is no name of a branch") from None
        if self.git("branch", "--list", branch):
            raise GraftError(
                f"there is a branch `{branch}` already; name another one by "
                "--branch, or delete that first",
                self.folder,
            )

    def commit(self, branch, changes):
        """Makes a branch with new commits on the one that is checked out.

        Args:
            branch: Its name.
            changes: For each commit the message, and the content of each file
                that it changes, by path.

        Returns:
            The hash of each commit.
        """
        made, parent = [], self.head
        with tempfile.TemporaryDirectory() as scratch:
            index = {"GIT_INDEX_FILE": str(Path(scratch, "index"))}
            self.git("read-tree", parent, **index)
            for message, files in changes:
                self.git(
                    "update-index",
                    "--add",
                    "--index-info",
                    content=self._entries(files),
                    **index,
                )
                tree = self.git("write-tree", **index).decode().strip()
                parent = (
                    self.git(
                        *("commit-tree", tree, "-p", parent),
                        content=message.encode(),
                    )
                    .decode()
                    .strip()
                )
                made.append(parent)
        self.git("update-ref", f"refs/heads/{branch}", parent, NOWHERE)
        return made

    def _entries(self, files):
        """Stores files, and returns them as entries of an index."""
        lines = []
        for path, content in sorted(files.items()):
            stored = self.git("hash-object", "-w", "--stdin", content=content)
            mode, _ = self.entries.get(path, (FILE, None))
            lines.append(f"{mode} {stored.decode().strip()}\t{path}\n")
        return "".join(lines).encode()
