"""The series, from a small repository onto a small upstream."""

import pytest

from graft import series
from graft.__main__ import main
from graft.series_testing import SHAPES
from graft.series_testing import UPSTREAM
from graft.series_testing import git
from graft.series_testing import made_checkout
from graft.series_testing import name_committer
from graft.testing import dedent
from graft.testing import fill

REPOSITORY = {
    "keras/src/shapes.py": dedent('''
        """Grafts: areas are cached."""

        from keras.src import cache
        from keras.src import units

        area = cache.cached(area)


        def label():
            return units.METRE


        class Circle:
            def area(self):
                return units.square(3)
    '''),
    "keras/src/cache.py": "def cached(fn):\n    return fn\n",
    "keras/src/units.py": dedent("""
        from keras.src import shapes

        METRE = "m"


        def square(x):
            return shapes.area(x) * x
    """),
    "keras/src/version.py": '__version__ = "1.2.3+fork.1"\n',
    "pyproject.toml": '[build-system]\nrequires = ["keras==1.2.3"]\n',
    "series/1-cache.toml": dedent('''
        title = "Cache areas"
        description = """
        Why not.
        """
        requires = ["hypothesis"]

        [replaces."ci/actions.yml"]
        "DEVICES=4" = "DEVICES=8"

        [changes]
        "keras/src/cache.py" = "*"
        "keras/src/shapes.py" = ["wraps area"]
    '''),
    "series/2-units.toml": dedent("""
        title = "Add units"

        [changes]
        "keras/src/shapes.py" = "*"
        "keras/src/units.py" = "*"
    """),
    "series/stays.toml": '[changes]\n"keras/src/version.py" = "*"\n',
}


@pytest.fixture
def repository(tmp_path, monkeypatch):
    name_committer(monkeypatch)
    fill(tmp_path / "upstream", UPSTREAM)
    fill(tmp_path / "repository", REPOSITORY)
    upstream = ["--upstream", str(tmp_path / "upstream")]
    assert main(["lock", *upstream], tmp_path / "repository") == 0
    return tmp_path / "repository"


@pytest.fixture
def checkout(tmp_path):
    return made_checkout(tmp_path / "checkout", {})


@pytest.fixture
def run(repository, capsys):
    """Makes the series: the exit status, and what was printed."""
    capsys.readouterr()

    def run(onto, *options):
        upstream = repository.parent / "upstream"
        arguments = ["series", "--upstream", str(upstream), "--onto", str(onto)]
        status = main([*arguments, *options], repository)
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    return run


def test_series(run, checkout):
    status, printed = run(checkout)
    assert status == 0
    commits = git(checkout, "rev-list", "--reverse", "main..layouts").split()
    assert printed == (
        f"{commits[0][:10]} Cache areas (3 files)\n"
        f"{commits[1][:10]} Add units (2 files)\n"
        "These are on the new branch `layouts`.\n"
    )
    message = git(checkout, "log", "-1", "--format=%B", commits[0])
    assert message == "Cache areas\n\nWhy not.\n\n"
    assert git(checkout, "log", "-1", "--format=%B") == "Upstream\n\n"


def test_first_step(run, checkout):
    run(checkout, "--branch", "first")
    assert git(checkout, "diff", "main", "first~1", "--stat=60").endswith(
        " 3 files changed, 6 insertions(+)\n"
    )
    requirements = git(checkout, "show", f"first~1:{series.REQUIREMENTS}")
    assert requirements == "numpy\nhypothesis\n"
    text = git(checkout, "show", "first~1:keras/src/shapes.py")
    assert text == SHAPES.replace(
        "import math\n\n\n",
        "import math\n\nfrom keras.src import cache\n\n\n@cache.cached\n",
    )


def test_last_step(run, checkout):
    run(checkout)
    text = git(checkout, "show", "layouts:keras/src/shapes.py")
    assert text == dedent('''
        """Shapes."""

        import math

        from keras.src import cache
        from keras.src import units


        @cache.cached
        def area(width):
            return width


        def label():
            return units.METRE


        class Circle:
            def area(self):
                return units.square(3)
    ''')
    assert "+fork" not in git(checkout, "grep", "version", "layouts")


def test_the_checkout_stays_as_it_is(run, checkout):
    fill(checkout, {"untracked.py": "X = 1\n"})
    before = git(checkout, "status", "--porcelain=2", "--branch")
    index = (checkout / ".git" / "index").read_bytes()
    run(checkout)
    assert git(checkout, "status", "--porcelain=2", "--branch") == before
    assert (checkout / ".git" / "index").read_bytes() == index
    assert git(checkout, "branch", "--format=%(refname)").split() == [
        "refs/heads/layouts",
        "refs/heads/main",
    ]


CHANGED = {"keras/src/shapes.py": SHAPES.replace('"m"', '"km"')}
REVIEW = (
    "keras/src/shapes.py:9: `label`: upstream changed `label` since 1.2.3\n"
)


def test_conflict(run, tmp_path):
    checkout = made_checkout(tmp_path / "checkout", CHANGED)
    before = git(checkout, "count-objects")
    status, printed = run(checkout)
    assert status == 1
    assert printed == (
        f"Nothing was done. To be reviewed:\n  {REVIEW}"
        "Change the grafts to fit, or leave these out with --skip-conflicts "
        "and make them by hand.\n"
    )
    assert git(checkout, "branch", "--format=%(refname:short)") == "main\n"
    assert git(checkout, "count-objects") == before


def test_skip_conflicts(run, tmp_path):
    checkout = made_checkout(tmp_path / "checkout", CHANGED)
    status, printed = run(checkout, "--skip-conflicts")
    assert status == 0
    assert printed.endswith(f"Left out, to be made by hand:\n  {REVIEW}")
    text = git(checkout, "show", "layouts:keras/src/shapes.py")
    assert '"km"' in text and "units.square(3)" in text
    assert "@cache.cached" in text


def test_skipped_modules_take_those_along_that_need_them(run, tmp_path):
    files = {"keras/src/units.py": "METRE = 1\nsquare = 2\n"}
    checkout = made_checkout(tmp_path / "checkout", files)
    status, printed = run(checkout, "--skip-conflicts")
    assert status == 0
    assert printed.endswith(
        "  keras/src/units.py: upstream has a module of this name\n"
    )
    files = {"keras/src/cache.py": "", "keras/src/units/__init__.py": ""}
    checkout = made_checkout(tmp_path / "other", files)
    status, printed = run(checkout, "--skip-conflicts")
    assert status == 0
    assert "  keras/src/cache.py: upstream has a module" in printed
    text = git(checkout, "show", "layouts:keras/src/shapes.py")
    assert "units.square(3)" in text


ACTIONS = "run: DEVICES=4 pytest -m multi_device\n"


def test_replaced_text(run, tmp_path):
    files = {"ci/actions.yml": ACTIONS}
    checkout = made_checkout(tmp_path / "checkout", files)
    assert run(checkout)[0] == 0
    text = git(checkout, "show", "layouts~1:ci/actions.yml")
    assert text == ACTIONS.replace("4", "8")


@pytest.mark.parametrize("text, times", [("\n", 0), (ACTIONS * 2, 2)])
def test_text_to_replace_that_upstream_changed(run, tmp_path, text, times):
    checkout = made_checkout(tmp_path / "checkout", {"ci/actions.yml": text})
    told = (
        "  ci/actions.yml: series/1-cache.toml replaces `DEVICES=4`, which is "
        f"there {times} times, not once\n"
    )
    status, printed = run(checkout)
    assert status == 1
    assert told in printed
    status, printed = run(checkout, "--skip-conflicts")
    assert status == 0
    assert printed.endswith(told)
    assert git(checkout, "show", "layouts:ci/actions.yml") == text


def test_import_of_nothing(run, tmp_path, repository):
    files = {"keras/src/shapes.py": None}
    moved = {
        "keras/src/shapes/__init__.py": "",
        "keras/src/shapes/a.py": SHAPES,
    }
    checkout = made_checkout(tmp_path / "checkout", moved)
    git(checkout, "rm", "--quiet", *files)
    git(checkout, "commit", "--quiet", "--message=Move")
    fill(
        repository,
        {"keras/src/units.py": "from keras.src.shapes import area\n"},
    )
    status, printed = run(checkout)
    assert status == 1
    told = "keras/src/units.py: there is nothing for `from keras.src.shapes"
    assert f"{told} import area`" in printed


def test_moved_definitions(run, tmp_path):
    functions, circle = SHAPES.split("\n\n\nclass")
    moved = {
        "keras/src/shapes/__init__.py": "from keras.src.shapes.a import area\n",
        "keras/src/shapes/a.py": functions + "\n",
        "keras/src/shapes/b.py": f"import math\n\n\nclass{circle}",
    }
    checkout = without_shapes(made_checkout(tmp_path / "checkout", moved))
    assert run(checkout)[0] == 0
    a = git(checkout, "show", "layouts:keras/src/shapes/a.py")
    b = git(checkout, "show", "layouts:keras/src/shapes/b.py")
    assert "@cache.cached" in a and "units.METRE" in a
    assert "units.square(3)" in b and "cache" not in b


def test_public_modules_are_elsewhere_in_git(run, tmp_path, repository):
    path = "units/__init__.py"
    step = repository / "series" / "2-units.toml"
    fill(repository.parent / "upstream", {f"keras/{path}": "import math\n"})
    changes = step.read_text() + f'"keras/{path}" = "*"\n'
    graft = "from keras.src.units import square as square\n"
    fill(
        repository,
        {f"keras/{path}": graft, "series/2-units.toml": changes},
    )
    files = {f"keras/api/{path}": "import math\n"}
    checkout = made_checkout(tmp_path / "checkout", files)
    assert run(checkout)[0] == 0
    text = git(checkout, "show", f"layouts:keras/api/{path}")
    assert text == f"import math\n\n{graft}"
    assert (
        f"keras/{path}"
        not in git(checkout, "ls-tree", "-r", "--name-only", "layouts").split()
    )


def test_definitions_that_are_in_two_places(run, tmp_path):
    moved = {f"keras/src/{name}/shapes.py": SHAPES for name in ("one", "two")}
    checkout = without_shapes(made_checkout(tmp_path / "checkout", moved))
    status, printed = run(checkout)
    assert status == 1
    assert printed.count("keras/src/one/shapes.py and in keras/src/two") == 3


def without_shapes(checkout):
    git(checkout, "rm", "--quiet", "keras/src/shapes.py")
    git(checkout, "commit", "--quiet", "--message=Move")
    return checkout


def test_lock_that_is_not_up_to_date(run, repository, checkout):
    lock = repository / "graft.lock"
    lines = lock.read_text().splitlines(keepends=True)
    lock.write_text("".join(x for x in lines if not x.startswith('"label"')))
    status, printed = run(checkout)
    assert status == 1
    assert printed == (
        "graft: graft.lock: run `python -m graft lock` for these first:\n"
        "keras/src/shapes.py::label\n"
    )


def test_definition_that_is_gone(run, tmp_path):
    text = SHAPES.replace("def label", "def title")
    checkout = made_checkout(tmp_path / "x", {"keras/src/shapes.py": text})
    told = "keras/src/shapes.py:9: `label`: upstream no longer has this\n"
    status, printed = run(checkout)
    assert status == 1 and f"\n  {told}" in printed


def test_step_without_changes(run, tmp_path):
    files = {"keras/src/units.py": "", "keras/src/shapes.py": "X = 1\n"}
    checkout = made_checkout(tmp_path / "checkout", files)
    assert run(checkout, "--skip-conflicts")[0] == 0
    titles = git(checkout, "log", "--format=%s", "main..layouts")
    assert titles == "Cache areas\n"
