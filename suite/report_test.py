"""Verdicts, and the table, JUnit file and document that tell them."""

import io
from xml.etree import ElementTree

import pytest
from rich.console import Console

from suite import compare
from suite import processes
from suite import recorder
from suite import report

MODULE = "keras/src/ops/core_test.py"


def side(tmp_path, name):
    return processes.Side(name, tmp_path, tmp_path / name, {}, 60)


def judge(tmp_path, **outcomes):
    """Judges tests with the given outcomes.

    Args:
        outcomes: For `fork`, `upstream`, `fork_again` and `upstream_again`
            what came of each test by its name, or a list of that for several
            runs. The last one of a list holds for all further runs.
    """
    asked = []

    def test(side, modules, only):
        asked.append((side.name, modules, only))
        name, _, number = side.name.partition(" again ")
        runs = outcomes.get(name.replace(",", "_again"), {})
        runs = runs if isinstance(runs, list) else [runs]
        ended = runs[min(int(number or 1), len(runs)) - 1]
        for name, outcome in ended.items():
            write(side, name, outcome)

    fork, upstream = side(tmp_path, "fork"), side(tmp_path, "upstream")
    test(fork, [MODULE], None)
    return compare.judge(fork, upstream, [MODULE], test), asked[1:]


def write(side, name, outcome):
    test = f"{MODULE}::{name}" if name else MODULE
    record = {"id": test, "outcome": outcome, "seconds": 1.5, "text": "<\x00"}
    recorder.write(side.records, MODULE, record)


def ids(*names):
    return [f"{MODULE}::{name}" for name in names]


def test_fails_here_only(tmp_path):
    verdict, asked = judge(
        tmp_path,
        fork={"a": "passed", "b": "failed", "c": "failed", "d": "skipped"},
        upstream={"b": "passed", "c": "failed"},
        fork_again={"a": "passed", "b": "failed", "c": "failed"},
        upstream_again={"a": "passed", "b": "passed", "c": "failed"},
    )
    assert asked == [
        ("upstream", [MODULE], ids("b", "c")),
        ("fork, again 1", [MODULE], None),
        *((f"upstream, again {n}", [MODULE], None) for n in range(1, 6)),
    ]
    assert verdict.only_here == ids("b")
    assert verdict.unsteady == []
    assert verdict.failed_on_both() == ids("c")
    assert verdict.count("failed") == 2


@pytest.mark.parametrize("skipped", ["skipped", "passed"])
def test_a_skip_on_upstream_is_no_failure(tmp_path, skipped):
    verdict, _ = judge(
        tmp_path,
        fork={"a": "failed"},
        upstream={"a": skipped},
        fork_again={"a": "failed"},
        upstream_again={"a": skipped},
    )
    assert verdict.only_here == ids("a")


PASSED, FAILED = {"a": "passed"}, {"a": "failed"}


@pytest.mark.parametrize(
    "here, there, is_unsteady",
    [
        (PASSED, PASSED, True),
        (FAILED, FAILED, True),
        (FAILED, [PASSED] * 4 + [FAILED], True),
        ([PASSED] * 4 + [FAILED], PASSED, False),
        ([PASSED, FAILED, PASSED], [PASSED, FAILED, PASSED], True),
    ],
)
def test_unsteady(tmp_path, here, there, is_unsteady):
    verdict, _ = judge(
        tmp_path,
        fork=FAILED,
        upstream=PASSED,
        fork_again=here,
        upstream_again=there,
    )
    assert verdict.unsteady == (ids("a") if is_unsteady else [])
    assert verdict.only_here == ([] if is_unsteady else ids("a"))


def test_modules_run_again_until_all_their_tests_have_failed(tmp_path):
    both = {"a": "passed", "b": "passed"}
    verdict, asked = judge(
        tmp_path,
        fork={"a": "failed", "b": "failed"},
        upstream=both,
        fork_again=[{**both, "a": "failed"}, {**both, "b": "failed"}],
        upstream_again=[both, {**both, "b": "failed"}, both],
    )
    names = [name for name, _, _ in asked[1:]]
    assert names == [
        *("fork, again 1", "fork, again 2"),
        *(f"upstream, again {n}" for n in range(1, 6)),
    ]
    assert verdict.only_here == ids("a")
    assert verdict.unsteady == ids("b")


def test_all_passes(tmp_path):
    verdict, asked = judge(tmp_path, fork={"a": "passed"})
    assert asked == [("upstream", [], [])]
    assert (verdict.only_here, verdict.unsteady) == ([], [])


def test_a_module_that_only_upstream_can_import(tmp_path):
    passed = {"a": "passed"}
    verdict, _ = judge(
        tmp_path,
        fork={"": "failed"},
        upstream=passed,
        fork_again={"": "failed"},
        upstream_again=passed,
    )
    assert verdict.only_here == [MODULE]


def test_a_module_that_can_be_imported_the_second_time(tmp_path):
    verdict, _ = judge(
        tmp_path,
        fork={"": "failed"},
        upstream={"a": "passed", "b": "passed"},
        fork_again={"a": "failed", "b": "passed"},
        upstream_again={"a": "passed", "b": "passed"},
    )
    assert (verdict.only_here, verdict.unsteady) == ([MODULE], [])


def test_a_module_that_cannot_be_imported_the_second_time(tmp_path):
    verdict, _ = judge(
        tmp_path,
        fork={"a": "failed", "b": "passed"},
        upstream={"a": "passed"},
        fork_again={"": "failed"},
        upstream_again={"a": "passed", "b": "passed"},
    )
    assert (verdict.only_here, verdict.unsteady) == (ids("a"), [])


@pytest.fixture
def run(tmp_path):
    verdict, _ = judge(
        tmp_path,
        fork={"a": "passed", "b": "failed", "c": "failed", "d": "skipped"},
        upstream={"b": "passed", "c": "failed"},
        fork_again={"b": "failed"},
    )
    return report.Run(
        "torch", "1.0 (abc)", "torch 2", "2026-01-31", {"all": verdict}
    )


def test_table(run):
    console = Console(width=120, file=io.StringIO())
    console.print(report.table(run))
    text = console.file.getvalue()
    numbers = [line for line in text.splitlines() if " all " in line]
    assert numbers[0].replace("│", " ").split() == "all 1 2 1 1 0".split()
    assert "torch 2" in text


def test_listing(run):
    assert report.listing(run) == [
        f"Fails here, passes on upstream (all): {MODULE}::b",
        f"Fails on upstream too (all): {MODULE}::c",
    ]


def test_junit(run):
    root = ElementTree.fromstring(ElementTree.tostring(report.junit(run)))
    (suite,) = root
    assert suite.attrib == {
        "name": "all",
        "tests": "4",
        "failures": "2",
        "skipped": "1",
    }
    cases = {case.get("name"): case for case in suite}
    assert cases["a"].get("classname") == "keras.src.ops.core_test"
    assert cases["a"].get("time") == "1.5"
    assert len(cases["a"]) == 0
    assert cases["b"].find("failure").get("message") == "passes on upstream"
    assert cases["b"].find("failure").text == "<?"
    assert cases["c"].find("failure").get("message") == "fails on upstream too"
    assert cases["d"].find("skipped") is not None


def test_document(run):
    document = report.update("", run)
    assert document.splitlines()[-1] == (
        "| torch | 1.0 (abc) | 2026-01-31 | 1 | 2 | 1 | 1 | 0 | torch 2 |"
    )
    run.backend = "jax"
    document = report.update(document, run)
    run.date = "2026-02-01"
    document = report.update(document, run)
    rows = [line for line in document.splitlines() if "2026" in line]
    assert [row.split(" | ")[:3] for row in rows] == [
        ["| jax", "1.0 (abc)", "2026-02-01"],
        ["| torch", "1.0 (abc)", "2026-01-31"],
    ]
    assert document.count("# Upstream's tests") == 1
