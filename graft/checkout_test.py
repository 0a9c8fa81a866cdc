"""What a git checkout has to be like."""

import pytest

from graft.checkout import Checkout
from graft.errors import GraftError
from graft.series_testing import git
from graft.series_testing import made_checkout
from graft.series_testing import name_committer
from graft.testing import fill


@pytest.fixture
def checkout(tmp_path):
    return made_checkout(tmp_path / "checkout", {})


@pytest.fixture(autouse=True)
def committer(monkeypatch):
    name_committer(monkeypatch)


def refused(folder, *told):
    with pytest.raises(GraftError) as caught:
        Checkout(folder)
    for each in (str(folder), *told):
        assert each in str(caught.value)


def test_no_folder(tmp_path):
    refused(tmp_path / "missing", "there is no such folder")


def test_no_checkout(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    refused(tmp_path, "no git checkout with a commit", "not a git repository")


def test_no_commit(tmp_path):
    git(tmp_path, "init", "--quiet")
    refused(tmp_path, "no git checkout with a commit")


def test_folder_inside_a_checkout(checkout):
    refused(checkout / "keras", f"the checkout is {checkout}")


def test_no_keras(checkout):
    git(checkout, "rm", "--quiet", "keras/src/api_export.py")
    git(checkout, "commit", "--quiet", "--message=Remove")
    refused(checkout, "no Keras: it has no keras/src/api_export.py")


def test_changes(checkout):
    fill(checkout, {"keras/src/shapes.py": "X = 1\n"})
    refused(checkout, "not committed", " M keras/src/shapes.py")


def test_branch_names(checkout):
    opened = Checkout(checkout)
    opened.check_new("new")
    with pytest.raises(GraftError, match="a branch `main` already"):
        opened.check_new("main")
    with pytest.raises(GraftError, match="`a b` is no name of a branch"):
        opened.check_new("a b")


def test_files(checkout):
    (checkout / "run.sh").write_bytes(b"#!/bin/sh\n\n\0")
    (checkout / "run.sh").chmod(0o755)
    (checkout / "link").symlink_to("run.sh")
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "--message=More")
    opened = Checkout(checkout)
    files = opened.files()
    assert files["run.sh"] == b"#!/bin/sh\n\n\0"
    assert files["keras/src/api_export.py"] == b""
    assert "link" not in files
    opened.commit("new", [("Change\n", {"run.sh": b"", "a.py": b"X = 1\n"})])
    listed = git(checkout, "ls-tree", "new", "run.sh", "a.py", "link")
    modes = [line.split()[0] for line in listed.splitlines()]
    assert modes == ["100644", "120000", "100755"]


def test_commit_that_fails(checkout, monkeypatch):
    opened = Checkout(checkout)
    opened.files()
    monkeypatch.setenv("GIT_COMMITTER_NAME", "")
    with pytest.raises(GraftError, match="git commit-tree: .*ident"):
        opened.commit("new", [("Change\n", {"a.py": b""})])
    assert "new" not in git(checkout, "branch")
