"""The commands, on a small upstream."""

import pytest

from graft import lock
from graft.__main__ import main
from graft.testing import fill

UPSTREAM = {
    "keras/src/sizes.py": "SMALL = 1\nLARGE = 2\n",
    "keras/src/version.py": '__version__ = "1.2.3"\n',
}
GRAFTS = {
    "keras/src/sizes.py": "LARGE = 3\n",
    "keras/src/version.py": "import math\n",
    "keras/src/new.py": "X = 1\nY = 2\n",
}


@pytest.fixture
def repository(tmp_path):
    fill(tmp_path / "upstream", UPSTREAM)
    fill(tmp_path / "repository", GRAFTS)
    return tmp_path / "repository"


@pytest.fixture
def run(repository, capsys):
    """Runs a command: the exit status, and what it printed."""

    def run(*arguments):
        upstream = ["--upstream", str(repository.parent / "upstream")]
        status = main([*arguments, *upstream], repository)
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    return run


def test_tree(run, repository):
    assert run("tree") == (0, "")
    tree = repository / "build" / "tree" / "keras" / "src"
    assert (tree / "sizes.py").read_text() == "SMALL = 1\nLARGE = 3\n"
    assert (tree / "new.py").exists()


def test_tree_with_an_error(run, repository):
    fill(repository, {"keras/src/sizes.py": "\ndel HUGE\n"})
    assert run("tree") == (
        1,
        "graft: keras/src/sizes.py:2: `HUGE`: upstream does not define here "
        "what this removes\n",
    )
    assert not (repository / "build" / "tree").exists()


def test_diff(run):
    status, printed = run("diff")
    assert status == 0
    assert printed == (
        "--- /dev/null\n+++ b/keras/src/new.py\n@@ -0,0 +1,2 @@\n"
        "+X = 1\n+Y = 2\n"
        "--- a/keras/src/sizes.py\n+++ b/keras/src/sizes.py\n@@ -1,2 +1,2 @@\n"
        " SMALL = 1\n-LARGE = 2\n+LARGE = 3\n"
        "--- a/keras/src/version.py\n+++ b/keras/src/version.py\n"
        '@@ -1 +1,3 @@\n+import math\n+\n __version__ = "1.2.3"\n'
    )


def test_diff_stat(run):
    assert run("diff", "--stat") == (
        0,
        "keras/src/new.py      +2 -0\n"
        "keras/src/sizes.py    +1 -1\n"
        "keras/src/version.py  +2 -0\n"
        "3 files               +5 -1\n",
    )


def test_diff_of_files_that_are_no_text_or_empty_or_cut_off(run, repository):
    for path in GRAFTS:
        (repository / path).unlink()
    files = {"a.bin": b"\xff", "b.py": "", "c.json": "1\n2"}
    fill(repository, {f"keras/src/{name}": files[name] for name in files})
    assert run("diff") == (
        0,
        "Binary files /dev/null and b/keras/src/a.bin differ\n"
        "--- /dev/null\n+++ b/keras/src/b.py\n"
        "--- /dev/null\n+++ b/keras/src/c.json\n@@ -0,0 +1,2 @@\n"
        "+1\n+2\n\\ No newline at end of file\n",
    )
    _, stat = run("diff", "--stat")
    assert stat.splitlines()[-1] == "3 files           +2 -0"


def test_diff_of_nothing(run, repository):
    for path in GRAFTS:
        (repository / path).unlink()
    assert run("diff", "--stat") == run("diff") == (0, "")


def test_diff_with_an_error(run, repository):
    fill(repository, {"keras/src/sizes.py": "del HUGE\n"})
    status, printed = run("diff")
    assert status == 1 and printed.startswith("graft: keras/src/sizes.py:1")


def test_lock(run, repository):
    new = "new: keras/src/sizes.py::LARGE\n"
    assert run("lock", "--check") == (1, new)
    assert not (repository / lock.NAME).exists()
    assert run("lock") == (0, new)
    assert run("lock", "--check") == (0, "graft.lock is up to date.\n")
    assert run("lock") == (0, "graft.lock is up to date.\n")


def test_lock_after_a_review(run, repository):
    run("lock")
    fill(repository.parent / "upstream", {"keras/src/sizes.py": "LARGE = 9\n"})
    status, printed = run("tree")
    assert status == 1 and "keras/src/sizes.py::LARGE" in printed
    assert run("lock", "--check")[0] == 1
    assert run("lock") == (0, "changed: keras/src/sizes.py::LARGE\n")
    assert run("tree") == (0, "")


def test_lock_for_another_version(run, repository):
    run("lock")
    release = {"keras/src/version.py": '__version__ = "1.3.0"\n'}
    fill(repository.parent / "upstream", release)
    assert run("lock", "--check") == (1, "upstream: 1.2.3, now 1.3.0\n")
    run("lock")
    assert lock.read(repository / lock.NAME).version == "1.3.0"
    assert run("lock", "--check")[0] == 0


def test_lock_with_an_error(run, repository):
    run("lock")
    before = (repository / lock.NAME).read_text()
    fill(repository, {"keras/src/sizes.py": "del HUGE\n"})
    assert run("lock")[0] == 1
    assert (repository / lock.NAME).read_text() == before


def test_status(run):
    run("lock")
    status, printed = run("status")
    assert status == 0
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in printed.splitlines()
        if line.startswith("│")
    ]
    assert rows == [
        ["keras/src/new.py", "new"],
        ["keras/src/sizes.py", "graft"],
        ["LARGE", "replaces"],
        ["keras/src/version.py", "graft"],
    ]


def test_status_tells_brackets(run, repository):
    upstream = repository.parent / "upstream"
    fill(upstream, {"keras/src/sizes.py": "if FLAGS[name]:\n    A = 1\n"})
    fill(repository, {"keras/src/sizes.py": "if FLAGS[name]:\n    A = 2\n"})
    _, printed = run("status")
    assert "if FLAGS[name]: A" in printed


def test_status_with_conflicts(run, repository):
    fill(repository, {"keras/src/version.py": "del HUGE\n"})
    status, printed = run("status")
    assert status == 1
    assert "conflict: keras/src/version.py:1: `HUGE`: upstream does" in printed
    assert "graft.lock: new: keras/src/sizes.py::LARGE" in printed


def test_no_upstream(repository, capsys, tmp_path):
    missing = str(tmp_path / "missing")
    assert main(["tree", "--upstream", missing], repository) == 1
    assert capsys.readouterr().err == (
        f"graft: {missing}: there is no keras/src/version.py\n"
    )
