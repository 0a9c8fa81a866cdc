"""Composing a whole tree."""

import os

import pytest

from graft import compose as composing
from graft import lock
from graft.compose import compose
from graft.compose import plan
from graft.errors import GraftError
from graft.testing import fill

UPSTREAM = {
    "keras/__init__.py": "from keras.src import shapes\n",
    "keras/src/__init__.py": "",
    "keras/src/shapes.py": "def area(width):\n    return width\n",
    "keras/src/sizes.py": "SIZES = ( 1,2 )\r\n",
    "keras/src/table.txt": "1 2 3\n",
    "keras/src/version.py": '__version__ = "1.2.3"\n',
}
GRAFTS = {
    "keras/src/shapes.py": "def area(width):\n    return 2 * width\n",
    "keras/src/more/new.py": "X = 1\n",
    "keras/src/more/data.txt": "data\n",
}


@pytest.fixture
def folders(tmp_path):
    """An upstream, a repository with grafts, and where the tree goes."""
    upstream, repository = tmp_path / "upstream", tmp_path / "repository"
    fill(upstream, UPSTREAM)
    fill(repository, GRAFTS)
    return upstream, repository, repository / "build" / "tree"


def content(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode()
        for path in folder.rglob("*")
        if path.is_file()
    }


def stamps(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_tree_is_upstream_with_grafts(folders):
    upstream, repository, tree = folders
    compose(*folders)
    assert content(tree) == {
        **UPSTREAM,
        **GRAFTS,
        "keras/src/shapes.py": "def area(width):\n    return 2 * width\n",
    }
    assert content(upstream) == UPSTREAM


def test_a_repository_without_grafts(folders, tmp_path):
    upstream, _, tree = folders
    compose(upstream, tmp_path / "empty", tree)
    assert content(tree) == UPSTREAM


def test_what_is_not_carried(folders):
    upstream, repository, tree = folders
    junk = {
        "keras/src/__pycache__/shapes.cpython-311.pyc": "",
        "keras/src/shapes.pyc": "",
        "keras/src/.shapes.py.swp": "",
    }
    fill(upstream, junk)
    fill(repository, junk)
    compose(*folders)
    assert content(tree).keys() == {**UPSTREAM, **GRAFTS}.keys()


def test_composing_again_writes_nothing(folders):
    _, _, tree = folders
    compose(*folders)
    before = stamps(tree.parent)
    compose(*folders)
    assert stamps(tree.parent) == before


def test_an_edit_writes_one_file(folders):
    _, repository, tree = folders
    compose(*folders)
    before = stamps(tree / "keras")
    fill(repository, {"keras/src/shapes.py": "area = print\n"})
    compose(*folders)
    after = stamps(tree / "keras")
    changed = {path.name for path in before if before[path] != after[path]}
    assert changed - {"src"} == {"shapes.py"}
    shapes = tree / "keras" / "src" / "shapes.py"
    assert shapes.read_text() == "area = print\n"


def test_edits_in_the_tree_are_undone(folders):
    upstream, _, tree = folders
    compose(*folders)
    (tree / "keras" / "src" / "sizes.py").write_text("")
    (tree / "keras" / "src" / "shapes.py").unlink()
    fill(tree, {"keras/src/stray.py": "", "keras/gone/__init__.py": ""})
    fill(tree, {"keras/src/__pycache__/sizes.pyc": "kept", "other": "kept"})
    compose(*folders)
    assert content(upstream) == UPSTREAM
    assert content(tree) == {
        **UPSTREAM,
        **GRAFTS,
        "keras/src/__pycache__/sizes.pyc": "kept",
        "other": "kept",
    }


def test_only_what_changed_is_merged_again(folders, monkeypatch):
    upstream, repository, _ = folders
    fill(repository, {"keras/src/version.py": '__version__ = "1.2.3+x"\n'})
    compose(*folders)
    asked = []

    def merged(upstream, graft, path):
        asked.append(path)
        return ["", {}]

    monkeypatch.setattr(composing, "_merged", merged)
    compose(*folders)
    assert asked == []
    fill(repository, {"keras/src/shapes.py": "X = 1\n"})
    compose(*folders)
    assert asked == ["keras/src/shapes.py"]
    fill(upstream, {"keras/src/version.py": '__version__ = "1.2.3"  #\n'})
    compose(*folders)
    assert asked[1:] == ["keras/src/version.py"]


def test_a_broken_cache_is_made_anew(folders):
    _, _, tree = folders
    compose(*folders)
    cache = tree.parent / composing.CACHE
    cache.write_text("{")
    compose(*folders)
    assert cache.read_text() != "{"


@pytest.mark.parametrize(
    "path, graft, told",
    [
        ("shapes.py", "X = (\n", "src/shapes.py:1: syntax error"),
        (
            "shapes.py",
            "def f():\n    )\n",
            "src/shapes.py:2: `f`: syntax error",
        ),
        ("new.py", "class New:\nx", "src/new.py:2: `New`: syntax error"),
        (
            "new.py",
            "class A:\n    x = 1\n\n    async def f():\n        )\n",
            "src/new.py:5: `A.f`: syntax error",
        ),
        (
            "new.py",
            "def f():\n    pass\n\n\nX = )\n",
            "src/new.py:5: syntax error",
        ),
        ("shapes.py", "\ndel nope\n", "src/shapes.py:2: `nope`: upstream does"),
        ("shapes.py", b"\n\xff", "src/shapes.py:2: this is not UTF-8"),
        ("table.txt", "4 5\n", "src/table.txt: upstream has this file"),
    ],
)
def test_an_error_leaves_the_tree_as_it_was(folders, path, graft, told):
    _, repository, tree = folders
    compose(*folders)
    before = stamps(tree)
    fill(repository, {"keras/src/sizes.py": "Y = 1\n"})
    fill(repository, {f"keras/src/{path}": graft})
    with pytest.raises(GraftError) as caught:
        compose(*folders)
    assert str(caught.value).startswith("keras/" + told)
    assert stamps(tree) == before


def test_every_error_is_told(folders):
    _, repository, tree = folders
    fill(repository, {"keras/src/shapes.py": "del a\n"})
    fill(repository, {"keras/src/sizes.py": "del b\n"})
    with pytest.raises(GraftError) as caught:
        compose(*folders)
    first, second = str(caught.value).splitlines()
    assert first.startswith("keras/src/shapes.py:1: `a`: ")
    assert second.startswith("keras/src/sizes.py:1: `b`: ")
    assert not tree.exists()


@pytest.mark.parametrize("theirs", ["def (\n", b"\n\xff"])
def test_upstream_that_cannot_be_read(folders, theirs):
    upstream, repository, tree = folders
    fill(upstream, {"keras/src/shapes.py": theirs})
    fill(repository, {"keras/src/sizes.py": "del b\n"})
    with pytest.raises(GraftError) as caught:
        compose(*folders)
    first, second = str(caught.value).splitlines()
    assert first.startswith("upstream's keras/src/shapes.py:")
    assert second.startswith("keras/src/sizes.py:1: `b`: ")


def test_no_upstream_there(folders, tmp_path):
    _, repository, tree = folders
    with pytest.raises(GraftError, match="there is no keras/src/version.py"):
        compose(tmp_path / "nowhere", repository, tree)
    assert not tree.exists()


def test_another_upstream_than_locked(folders):
    upstream, repository, tree = folders
    compose(*folders)
    composition = plan(upstream, repository, tree.parent)
    lock.write(lock.of(composition), repository / lock.NAME)
    compose(*folders)
    before = stamps(tree)
    fill(upstream, {"keras/src/shapes.py": "def area(w):\n    return w\n"})
    with pytest.raises(GraftError) as caught:
        compose(*folders)
    assert "keras/src/shapes.py::area" in str(caught.value)
    assert stamps(tree) == before


def test_files_can_be_read_by_others(folders):
    _, _, tree = folders
    compose(*folders)
    mode = os.stat(tree / "keras" / "src" / "sizes.py").st_mode
    assert mode & 0o777 == 0o644
