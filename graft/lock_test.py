"""The lock, and what composing says when upstream is another."""

import pytest

from graft import lock
from graft.compose import check
from graft.compose import plan
from graft.errors import GraftError
from graft.testing import UPSTREAM as SHAPES
from graft.testing import fill

UPSTREAM = {
    "keras/src/shapes.py": SHAPES,
    "keras/src/sizes.py": "SMALL = 1\nLARGE = 2\n",
    "keras/src/version.py": '__version__ = "1.2.3"\n',
}
GRAFTS = {
    "keras/src/shapes.py": """\
import math

last = watched(last)


class Circle:
    def area(self):
        return 0

    @label.setter
    def label(self, value):
        pass

    def diameter(self):
        return 0


if ops.backend() == "jax":
    CIRCLES = []
""",
    "keras/src/sizes.py": "del SMALL\n",
    "keras/src/new.py": "X = 1\n",
}
LISTED = [
    "keras/src/shapes.py::Circle",
    "keras/src/shapes.py::Circle.area",
    "keras/src/shapes.py::Circle.label.setter",
    'keras/src/shapes.py::if ops.backend() == "jax"',
    'keras/src/shapes.py::if ops.backend() == "jax": CIRCLES',
    "keras/src/shapes.py::last",
    "keras/src/sizes.py::SMALL",
]


@pytest.fixture
def folders(tmp_path):
    """An upstream and a repository whose lock is up to date."""
    upstream, repository = tmp_path / "upstream", tmp_path / "repository"
    fill(upstream, UPSTREAM)
    fill(repository, GRAFTS)
    composition = planned(upstream, repository)
    lock.write(lock.of(composition), repository / lock.NAME)
    return upstream, repository


def planned(upstream, repository):
    return plan(upstream, repository, repository / "build")


def review(upstream, repository):
    locked = lock.read(repository / lock.NAME)
    return lock.review(locked, planned(upstream, repository))


def refusal(upstream, repository):
    with pytest.raises(GraftError) as caught:
        check(planned(upstream, repository), repository)
    return str(caught.value)


def release(upstream, **changes):
    """Makes upstream another version with changed files."""
    fill(upstream, {"keras/src/version.py": '__version__ = "1.3.0"\n'})
    fill(upstream, {f"keras/src/{n}.py": t for n, t in changes.items()})


def test_lock_lists_what_grafts_hook(folders):
    _, repository = folders
    locked = lock.read(repository / lock.NAME)
    assert locked.version == "1.2.3"
    assert LISTED == [
        f"{file}::{name}"
        for file, prints in locked.prints.items()
        for name in prints
    ]
    assert locked == lock.of(planned(*folders))


def test_lock_is_written_for_readers(folders):
    _, repository = folders
    text = (repository / lock.NAME).read_text()
    head, body = text.split("\n\n", 1)
    assert head.splitlines()[-1] == "# `python -m graft lock`."
    assert body.startswith('upstream = "1.2.3"\n\n["keras/src/shapes.py"]\n"C')


def test_the_locked_upstream_passes(folders):
    check(planned(*folders), folders[1])
    found = review(*folders)
    assert found.fitting == len(LISTED)
    assert not (found.changed or found.gone or found.unlisted or found.stale)


def test_no_lock_passes(folders):
    _, repository = folders
    (repository / lock.NAME).unlink()
    check(planned(*folders), repository)
    assert review(*folders).unlisted == LISTED


def test_a_release_that_changes_nothing_hooked(folders):
    release(folders[0], sizes="SMALL = 1\nLARGE = 3\n")
    assert refusal(*folders) == (
        "graft.lock: written for 1.2.3, and upstream is 1.3.0.\n"
        "All 7 hooked definitions still fit.\n"
        "Review the grafts against upstream's new code, then run `python -m "
        "graft lock`, with the same --upstream if you gave one."
    )


@pytest.mark.parametrize(
    "old, new, changed",
    [
        ("math.pi", "math.tau", "Circle.area"),
        ("self._label = value", "self.name = value", "Circle.label.setter"),
        ("class Circle(Shape)", "class Circle(Round)", "Circle"),
        ("CIRCLES = ()", "CIRCLES = {}", 'if ops.backend() == "jax": CIRCLES'),
        ("def last():", "def last(x):", "last"),
        ("width * height", "width / height", None),
        ("return self._label", "return self.name", None),
        ("A circle.", "A disc.", None),
    ],
)
def test_what_upstream_changed(folders, old, new, changed):
    assert old in SHAPES
    release(folders[0], shapes=SHAPES.replace(old, new))
    names = [f"keras/src/shapes.py::{changed}"] if changed else []
    found = review(*folders)
    assert (found.changed, found.gone) == (names, [])
    assert found.fitting == len(LISTED) - len(names)
    for name in names:
        told = refusal(*folders)
        assert f"\nUpstream changed since then:\n  {name}\nThe rest" in told
        assert "fits: 6 hooked" in told


def test_what_upstream_no_longer_has(folders):
    text = SHAPES[: SHAPES.index("\n\ndef last")]
    text = text.replace("def area(self)", "def surface(self)")
    release(folders[0], shapes=text, sizes="LARGE = 2\n")
    told = refusal(*folders)
    assert (
        "Upstream no longer has:\n"
        "  keras/src/shapes.py::Circle.area\n"
        "  keras/src/shapes.py::last\n"
        "  keras/src/sizes.py::SMALL\n"
        "Does not fit:\n"
        "  keras/src/shapes.py:3: `last`: upstream does not define here"
    ) in told
    assert "\n  keras/src/sizes.py:1: `SMALL`: upstream does not" in told
    # `shapes.py` could not be merged; what it hooked is looked up all the same.
    assert "fits: 4 hooked" in told
    assert "\nMend the grafts that do not fit first.\n" in told


def test_a_file_that_upstream_no_longer_has(folders):
    upstream, _ = folders
    (upstream / "keras" / "src" / "sizes.py").unlink()
    assert review(*folders).gone == ["keras/src/sizes.py::SMALL"]
    assert "no longer has:\n  keras/src/sizes.py::SMALL\n" in refusal(*folders)


def test_new_code_that_upstream_now_has_too(folders):
    text = SHAPES.replace(
        "    def area(self)", "    diameter = 1\n\n    def area(self)"
    )
    release(folders[0], shapes=text)
    told = refusal(*folders)
    assert "Newly hooked:\n  keras/src/shapes.py::Circle.diameter\n" in told


def test_upstream_that_was_edited(folders):
    upstream, _ = folders
    fill(upstream, {"keras/src/sizes.py": "SMALL = 0\nLARGE = 2\n"})
    told = refusal(*folders)
    assert "Upstream changed since then:\n  keras/src/sizes.py::SMALL" in told


def test_grafts_may_hook_more_and_less(folders):
    _, repository = folders
    fill(repository, {"keras/src/sizes.py": "del LARGE\n"})
    check(planned(*folders), repository)
    found = review(*folders)
    assert found.unlisted == ["keras/src/sizes.py::LARGE"]
    assert found.stale == ["keras/src/sizes.py::SMALL"]


def test_a_graft_with_an_error_hooks_what_it_did(folders):
    _, repository = folders
    fill(repository, {"keras/src/sizes.py": "del SMALL, nothing\n"})
    assert refusal(*folders).startswith("keras/src/sizes.py:1: `nothing`")
    assert review(*folders).stale == []


@pytest.mark.parametrize("text", ["upstream", "<<<<<<< HEAD", 'version = "1"'])
def test_a_lock_that_is_none(folders, text):
    _, repository = folders
    (repository / lock.NAME).write_text(text + "\n")
    told = refusal(*folders)
    assert told.startswith("graft.lock: ") and "python -m graft lock" in told
