"""The API modules follow what the tree exports."""

import shutil

import pytest

from graft import api

EXPORTING = """
import namex


@namex.export("keras", path="keras.things.upstreams")
def upstreams():
    pass
"""
EXPORTING_MORE = f"""{EXPORTING}

@namex.export("keras", path=["keras.things.ours", "keras.deep.down.ours"])
def ours():
    pass
"""
WRAPPING = f"""
import functools
{EXPORTING}

upstreams = functools.wraps(upstreams)(lambda: None)
"""


@pytest.fixture
def repository(tmp_path):
    """A repository without grafts, its upstream copy and its tree."""
    upstream = tmp_path / "build" / "upstream" / "keras"
    files = {
        "__init__.py": "from keras import _tf_keras as _tf_keras\n"
        "from keras import things as things\n",
        "things/__init__.py": "from keras.src.thing import "
        "upstreams as upstreams\n",
        "_tf_keras/__init__.py": "from keras._tf_keras import keras\n",
        "_tf_keras/keras/__init__.py": "from keras import things as things\n",
        "_tf_keras/keras/things/__init__.py": "from keras.src.thing import "
        "upstreams as upstreams\n",
        "src/__init__.py": "",
        "src/thing.py": EXPORTING,
        "src/version.py": '__version__ = "1.0"\n',
    }
    for name, content in files.items():
        (upstream / name).parent.mkdir(parents=True, exist_ok=True)
        (upstream / name).write_text(content)
    shutil.copytree(upstream, tmp_path / "build" / "tree" / "keras")
    (tmp_path / "keras").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["keras==1.0"]\n'
    )
    return tmp_path


def export_more(repository):
    thing = repository / "build" / "tree" / "keras" / "src" / "thing.py"
    thing.write_text(EXPORTING_MORE)


def written(repository):
    return {
        path.relative_to(repository / "keras").as_posix(): path.read_text()
        for path in (repository / "keras").rglob("*.py")
    }


def test_nothing_to_do_without_new_exports(repository, capsys):
    assert api.main(["--check"], repository) == 0
    assert api.main([], repository) == 0
    assert capsys.readouterr().out == ""
    assert written(repository) == {}


def test_check_names_what_is_out_of_date(repository, capsys):
    export_more(repository)
    assert api.main(["--check"], repository) == 1
    assert "keras/things/__init__.py is out of date" in capsys.readouterr().out
    assert written(repository) == {}


def test_new_exports_are_grafted(repository):
    export_more(repository)
    assert api.main([], repository) == 0
    top = f"{api.HEADER}from keras import deep as deep\n"
    deep = f"{api.HEADER}from keras.deep import down as down\n"
    ours = f"{api.HEADER}from keras.src.thing import ours as ours\n"
    assert written(repository) == {
        "__init__.py": top,
        "_tf_keras/keras/__init__.py": top,
        "_tf_keras/keras/deep/__init__.py": deep,
        "_tf_keras/keras/deep/down/__init__.py": ours,
        "_tf_keras/keras/things/__init__.py": ours,
        "deep/__init__.py": deep,
        "deep/down/__init__.py": ours,
        "things/__init__.py": ours,
    }
    assert api.main(["--check"], repository) == 0


def test_graft_of_a_withdrawn_export_is_removed(repository):
    stale = repository / "keras" / "things" / "__init__.py"
    stale.parent.mkdir()
    stale.write_text("from keras.src.thing import ours as ours\n")
    assert api.main(["--check"], repository) == 1
    assert stale.exists()
    assert api.main([], repository) == 0
    assert not stale.exists()


def test_lost_export_is_an_error(repository, capsys):
    thing = repository / "build" / "tree" / "keras" / "src" / "thing.py"
    thing.write_text(WRAPPING)
    assert api.main([], repository) == 1
    assert "keras/things/__init__.py: upstreams" in capsys.readouterr().err
    assert written(repository) == {}


def test_tree_that_does_not_import_is_an_error(repository, capsys):
    thing = repository / "build" / "tree" / "keras" / "src" / "thing.py"
    thing.write_text("import no_such_package\n")
    assert api.main(["--check"], repository) == 1
    assert "No module named 'no_such_package'" in capsys.readouterr().err
