"""Runs test modules in a process of their own, which may crash or hang."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from suite import recorder

ROOT = Path(__file__).resolve().parent.parent
POLL = 5
GOOD_ENDS = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)


class CannotTest(Exception):
    """The tests cannot run at all."""


@dataclasses.dataclass(frozen=True)
class Side:
    """One Keras under test, and where its records are.

    Args:
        name: What to call it.
        tree: The folder with `keras/` in it.
        records: The folder of the records.
        settings: Environment variables.
        limit: After how many seconds a test counts as hanging.
        marker: The expression of markers that selects tests, or `None`.
    """

    name: str
    tree: Path
    records: Path
    settings: dict
    limit: float
    marker: str | None = None


def run(side, modules, only=None, stop=None):
    """Tests modules, in as few processes as crashes and hangs allow.

    Args:
        side: The `Side` to test.
        modules: Paths of test modules, from the tree.
        only: The ids of the tests to run. Defaults to all.
        stop: A `threading.Event` that ends it early, to be gone on with by
            another call. Defaults to none.

    Raises:
        CannotTest: If pytest does not understand what it is asked.
    """
    stop = stop or threading.Event()
    modules = [module for module in modules if not is_finished(side, module)]
    while modules:
        before = count_ended(side, modules)
        said, how = run_once(side, modules, only, stop)
        if stop.is_set():
            return
        under_way = tests_under_way(side, modules)
        if how is None and not under_way:
            break
        # A test can end its process with any status, as if all were well.
        how = how or "ended"
        for test in under_way:
            end(side, test, f"the process {how} in this test\n{said}")
        if not under_way and count_ended(side, modules) == before:
            if len(modules) > 1:
                for module in modules:
                    run(side, [module], only, stop)
                return
            end(side, modules[0], f"the process {how}\n{said}")
            break
    for module in modules:
        recorder.write(side.records, module, {"finished": True})


def is_finished(side, module):
    return {"finished": True} in recorder.read(side.records, module)


def count_ended(side, modules):
    return sum(len(recorder.ended(side.records, m)) for m in modules)


def tests_under_way(side, modules):
    """The tests that started and did not end."""
    found = []
    for module in modules:
        records = recorder.read(side.records, module)
        ended = {record.get("id") for record in records}
        started = {record.get("started") for record in records}
        found += sorted(started - ended - {None})
    return found


def end(side, test, text):
    module = recorder.module_of(test)
    record = {"id": test, "outcome": "failed", "seconds": 0.0, "text": text}
    recorder.write(side.records, module, record)


def run_once(side, modules, only, stop):
    """Tests modules in one process.

    Returns:
        The end of what it printed, and how it came to a bad end: `None` if it
        did not.
    """
    forget_starts(side, modules)
    with tempfile.TemporaryDirectory(prefix="suite-") as scratch:
        scratch = Path(scratch)
        asked = {"records": str(side.records), "only": only}
        request = scratch / "request.json"
        request.write_text(json.dumps(asked))
        output = scratch / "output"
        with output.open("wb") as file:
            process = subprocess.Popen(
                command(side, modules),
                cwd=scratch,
                env=environment(side, scratch, request),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                how = watch(process, side, modules, stop)
            finally:
                kill(process)
        said = output.read_text(errors="replace")[-recorder.TEXT_LIMIT :]
    is_usage_error = process.returncode == pytest.ExitCode.USAGE_ERROR
    if is_usage_error and not tests_under_way(side, modules):
        raise CannotTest(f"pytest cannot run {modules}:\n{said}")
    return said, how


def forget_starts(side, modules):
    """Drops what a run that was interrupted left under way."""
    for module in modules:
        if tests_under_way(side, [module]):
            records = recorder.read(side.records, module)
            path = recorder.path_of(side.records, module)
            kept = [json.dumps(r) + "\n" for r in records if "id" in r]
            path.write_text("".join(kept))


def command(side, modules):
    options = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(side.tree)]
    options += ["-p", "suite.recorder", "-p", "no:cacheprovider", "-q"]
    options += ["--continue-on-collection-errors"]
    if side.marker:
        options += ["-m", side.marker]
    paths = [str(side.tree / module) for module in modules]
    return [sys.executable, "-m", "pytest", *options, *paths]


def environment(side, scratch, request):
    home = scratch / "home"
    temporary = scratch / "tmp"
    home.mkdir()
    temporary.mkdir()
    return {
        **os.environ,
        **side.settings,
        "KERAS_HOME": str(home),
        "KERAS_TREE": str(side.tree),
        "PYTHONDONTWRITEBYTECODE": "",  # Many processes import the same.
        "PYTHONPATH": os.pathsep.join([str(side.tree), str(ROOT)]),
        "TMPDIR": str(temporary),
        recorder.VARIABLE: str(request),
    }


def watch(process, side, modules, stop):
    """Waits for a process as long as some test ends now and then."""
    ended, since = -1, time.monotonic()
    while process.poll() is None:
        try:
            process.wait(timeout=min(POLL, side.limit))
        except subprocess.TimeoutExpired:
            now = count_ended(side, modules)
            if now > ended:
                ended, since = now, time.monotonic()
            elif time.monotonic() - since > side.limit:
                return f"was stopped after {side.limit:g} s"
            if stop.is_set():
                return "was stopped"
    status = process.returncode
    if status in GOOD_ENDS:
        return None
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with status {status}"


def kill(process):
    """Ends a process and all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
