"""Processes that pass, fail, crash, hang or cannot import their tests."""

import io
import textwrap
import threading

import pytest
from rich.console import Console

from suite import compare
from suite import plan
from suite import pool
from suite import processes
from suite import recorder

MODULES = {
    "calm_test.py": """
        import pytest

        def test_passes():
            pass

        def test_fails():
            raise ValueError("a reason")

        def test_skips():
            pytest.skip("for no reason")

        @pytest.mark.xfail(reason="known")
        def test_expected():
            raise ValueError

        @pytest.fixture
        def torn_down():
            yield
            raise OSError("left behind")

        def test_teardown(torn_down):
            pass

        @pytest.mark.parametrize("name", ["a::b", "c d"])
        def test_named(name):
            pass

        @pytest.mark.multi_device
        def test_marked():
            pass
        """,
    "crash_test.py": """
        import os

        def test_before():
            pass

        def test_crash():
            os.abort()

        def test_exit():
            os._exit(7)

        def test_after():
            pass
        """,
    "exit_test.py": """
        import os

        import pytest

        @pytest.mark.parametrize("status", [0, 1, 4, 5])
        def test_exit(status):
            os._exit(status)

        def test_after():
            pass
        """,
    "hang_test.py": """
        import subprocess

        def test_hang():
            subprocess.run(["sleep", "1000"])

        def test_after():
            pass
        """,
    "import_test.py": "import there_is_no_such_module",
    "abort_test.py": "import os; os.abort()",
    "skipped_test.py": """
        import pytest

        pytest.skip("not here", allow_module_level=True)
        """,
}


@pytest.fixture
def side(tmp_path):
    tree = tmp_path / "tree"
    (tree / "keras").mkdir(parents=True)
    (tree / "keras" / "__init__.py").touch()
    for name, source in MODULES.items():
        (tree / "keras" / name).write_text(textwrap.dedent(source))
    (tree / "keras" / "environment_test.py").write_text(
        "import os\n\ndef test_it():\n    assert os.environ['GIVEN'] == 'yes'\n"
    )
    return processes.Side(
        name="trial",
        tree=tree,
        records=tmp_path / "records",
        settings={"GIVEN": "yes"},
        limit=60,
    )


def outcomes(side, *names, run=processes.run, **kwargs):
    modules = [f"keras/{name}_test.py" for name in names]
    run(side, modules, **kwargs)
    found = compare.outcomes_of(side, modules)
    return {
        test.removeprefix("keras/").replace("_test.py", ""): record["outcome"]
        for test, record in found.items()
    }


CALM = {
    "calm::test_passes": "passed",
    "calm::test_fails": "failed",
    "calm::test_skips": "skipped",
    "calm::test_expected": "skipped",
    "calm::test_teardown": "failed",
    "calm::test_named[a::b]": "passed",
    "calm::test_named[c d]": "passed",
    "calm::test_marked": "passed",
}


def test_outcomes_and_their_reasons(side):
    assert outcomes(side, "calm", "skipped", "environment") == {
        **CALM,
        "skipped": "skipped",
        "environment::test_it": "passed",
    }
    records = recorder.read(side.records, "keras/calm_test.py")
    texts = {r["id"].split("::")[1]: r["text"] for r in records if "id" in r}
    assert "ValueError: a reason" in texts["test_fails"]
    assert texts["test_skips"] == "Skipped: for no reason"
    assert texts["test_expected"] == "expected to fail: known"
    assert "OSError: left behind" in texts["test_teardown"]


def test_a_crash_is_a_result(side):
    assert outcomes(side, "crash", "calm") == {
        "crash::test_before": "passed",
        "crash::test_crash": "failed",
        "crash::test_exit": "failed",
        "crash::test_after": "passed",
        **CALM,
    }
    records = recorder.read(side.records, "keras/crash_test.py")
    texts = {r["id"].split("::")[1]: r["text"] for r in records if "id" in r}
    assert "was ended by SIGABRT" in texts["test_crash"]
    assert "ended with status 7" in texts["test_exit"]


def test_an_exit_is_a_result_whatever_its_status(side):
    assert outcomes(side, "exit", "calm") == {
        "exit::test_exit[0]": "failed",
        "exit::test_exit[1]": "failed",
        "exit::test_exit[4]": "failed",
        "exit::test_exit[5]": "failed",
        "exit::test_after": "passed",
        **CALM,
    }


def test_a_hang_is_a_result(side, monkeypatch):
    monkeypatch.setattr(processes, "POLL", 0.2)
    side = processes.dataclasses.replace(side, limit=6)
    found = outcomes(side, "hang")
    assert found == {"hang::test_hang": "failed", "hang::test_after": "passed"}
    records = recorder.read(side.records, "keras/hang_test.py")
    assert any("after 6 s" in record.get("text", "") for record in records)


def test_modules_that_cannot_be_imported(side):
    assert outcomes(side, "import", "abort", "calm") == {
        "import": "failed",
        "abort": "failed",
        **CALM,
    }


def test_only_some_tests(side):
    module = "keras/calm_test.py"
    only = [f"{module}::test_fails", f"{module}::test_named[a::b]"]
    assert outcomes(side, "calm", only=only) == {
        "calm::test_fails": "failed",
        "calm::test_named[a::b]": "passed",
    }


def test_a_module_asks_for_its_tests(side):
    assert outcomes(side, "calm", only=["keras/calm_test.py"]) == CALM


def test_only_marked_tests(side):
    side = processes.dataclasses.replace(side, marker="multi_device")
    assert outcomes(side, "calm", "crash") == {"calm::test_marked": "passed"}


def test_what_has_ended_does_not_run_again(side):
    module = "keras/calm_test.py"
    record = {"id": f"{module}::test_fails", "outcome": "passed"}
    recorder.write(side.records, module, record)
    # As left by a run that was interrupted in this test.
    started = {"started": f"{module}::test_passes"}
    recorder.write(side.records, module, started)
    assert outcomes(side, "calm") == {**CALM, "calm::test_fails": "passed"}
    (side.tree / module).unlink()
    assert outcomes(side, "calm")["calm::test_passes"] == "passed"


def test_a_line_cut_off_counts_for_nothing(side):
    module = "keras/calm_test.py"
    path = recorder.path_of(side.records, module)
    path.parent.mkdir(parents=True)
    path.write_text('{"id": "keras/calm_test.py::test_pas')
    assert outcomes(side, "calm") == CALM


def test_stops_when_told(side):
    stop = threading.Event()
    stop.set()
    assert outcomes(side, "hang", stop=stop) == {}
    assert not processes.is_finished(side, "keras/hang_test.py")


def quiet():
    return Console(file=io.StringIO(), width=100)


def test_several_processes_at_a_time(side):
    console = quiet()
    names = ("calm", "crash", "import", "environment")
    found = outcomes(side, *names, run=pool.run, jobs=2, console=console)
    assert found == {
        **CALM,
        "crash::test_before": "passed",
        "crash::test_crash": "failed",
        "crash::test_exit": "failed",
        "crash::test_after": "passed",
        "import": "failed",
        "environment::test_it": "passed",
    }
    said = console.file.getvalue()
    assert "trial 4/4: " in said
    assert "keras/calm_test.py: 4 passed, 2 failed, 2 skipped" in said

    console = quiet()
    again = outcomes(side, *names, run=pool.run, jobs=2, console=console)
    assert again == found
    assert console.file.getvalue() == "trial: 4 of 4 are done\n"


def test_all_processes_end_with_the_first_that_cannot_run(side, monkeypatch):
    monkeypatch.setattr(processes, "POLL", 0.2)
    monkeypatch.setattr(plan, "BATCH_BYTES", 0)
    real = processes.run

    def run(side, modules, only, stop):
        if "calm" in modules[0]:
            raise RuntimeError("no way")
        real(side, modules, only, stop)

    monkeypatch.setattr(processes, "run", run)
    with pytest.raises(RuntimeError, match="no way"):
        outcomes(side, "hang", "calm", run=pool.run, jobs=2, console=quiet())
    assert not processes.is_finished(side, "keras/hang_test.py")


def test_says_when_tests_cannot_run_at_all(side):
    (side.tree / "keras" / "__init__.py").unlink()
    (side.tree / "keras" / "calm_test.py").unlink()
    with pytest.raises(processes.CannotTest, match="calm_test.py"):
        outcomes(side, "calm")
