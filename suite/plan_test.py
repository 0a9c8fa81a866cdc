"""What is to be tested, and what results depend on."""

import pytest

from graft.errors import GraftError
from suite import plan

TESTS = [
    "keras/src/applications/applications_test.py",
    "keras/src/ops/core_test.py",
    "keras/src/ops/numpy_test.py",
    "keras/src/ops_test.py",
    "keras/src/wrappers/sklearn_test.py",
]
OPS = TESTS[1:3]


def test_finds_tests():
    files = dict.fromkeys(["keras/src/ops/core.py", *TESTS[::-1]], b"")
    assert plan.tests_of(files) == TESTS


@pytest.mark.parametrize(
    "paths, wanted",
    [
        ([], TESTS[1:4]),
        (["keras/src/ops"], OPS),
        (["keras/src/ops/", "keras/src/ops/core_test.py"], OPS),
        (["./keras/src/ops/numpy_test.py"], OPS[1:]),
        (["keras/src/wrappers"], TESTS[4:]),
        (["keras"], TESTS),
    ],
)
def test_selects(paths, wanted):
    assert plan.selected(TESTS, paths) == wanted


@pytest.mark.parametrize("path", ["keras/src/op", "keras/src/ops/core.py"])
def test_refuses_what_has_no_tests(path):
    with pytest.raises(GraftError, match=f"{path}: upstream has no test"):
        plan.selected(TESTS, ["keras/src/ops", path])


def test_batches(tmp_path):
    sizes = {"a": 100_000, "b": 30_000, "c": 30_000, "d": 30_000, "e": 1000}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(bytes(size))
    assert plan.batches(list(sizes), tmp_path) == [
        ["a"],
        ["b", "c"],
        ["d", "e"],
    ]


def test_parts_are_the_whole():
    groups = list(range(10))
    parts = [plan.part_of(groups, f"{k}/3") for k in (1, 2, 3)]
    assert sorted(sum(parts, [])) == groups
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("part", ["0/3", "4/3", "3", "a/b", "1/0", "1/2/3"])
def test_refuses_parts(part):
    with pytest.raises(GraftError, match=f"{part}: a part is written K/N"):
        plan.part_of([1], part)


def test_key_depends_on_what_upstreams_tests_see():
    files = {
        "keras/a.py": b"1",
        "keras/a_test.py": b"2",
        "keras/b_test.py": b"",
    }
    tests = ["keras/a_test.py"]

    def key(files, conditions=("python",)):
        return plan.key_of(plan.without_own_tests(files, tests), conditions)

    same = key({**files, "keras/b_test.py": b"ours"})
    assert same == key(files)
    others = [
        key({**files, "keras/a.py": b"3"}),
        key({**files, "keras/a_test.py": b"3"}),
        key({**files, "keras/c.py": b""}),
        key(files, ["another python"]),
    ]
    assert len({same, *others}) == 5


def test_snapshot(tmp_path):
    folder = tmp_path / "key" / "tree"
    plan.snapshot({"keras/src/a.py": b"1"}, folder)
    plan.snapshot({"keras/src/a.py": b"2"}, folder)
    assert (folder / "keras" / "src" / "a.py").read_bytes() == b"1"
    assert [path.name for path in folder.parent.iterdir()] == ["tree"]


def test_installed():
    found = plan.installed()
    assert f"pytest=={pytest.__version__}" in found
    assert found == sorted(found)
