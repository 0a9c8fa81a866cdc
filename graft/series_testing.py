"""A small upstream in a git checkout, for tests of the series."""

import subprocess

from graft.series import REQUIREMENTS
from graft.testing import dedent
from graft.testing import fill

SHAPES = dedent('''
    """Shapes."""

    import math


    def area(width):
        return width


    def label():
        return "m"


    class Circle:
        def area(self):
            return math.pi
''')
UPSTREAM = {
    "keras/src/api_export.py": "",
    "keras/src/shapes.py": SHAPES,
    "keras/src/version.py": '__version__ = "1.2.3"\n',
}


def git(folder, *arguments):
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def name_committer(monkeypatch):
    """Lets git know who commits."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A. Person")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "person@example.org")


def made_checkout(folder, changes):
    fill(folder, {**UPSTREAM, REQUIREMENTS: "numpy\n", **changes})
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message=Upstream")
    return folder
