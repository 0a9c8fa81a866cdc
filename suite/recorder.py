"""A pytest plugin that writes down each test as it starts and as it ends.

It runs in the processes that test, so that a crash or a hang loses nothing but
itself: what has ended is known, and what was under way. `SUITE_RECORD` names a
JSON file with

- `"records"`: the folder to write to, a file of lines for each test module;
- `"only"`: the tests to run, or `null` for all that are not recorded yet.

It imports nothing of Keras or of this package.
"""

import json
import os
from pathlib import Path

import pytest

VARIABLE = "SUITE_RECORD"
TEXT_LIMIT = 20_000


def pytest_configure(config):
    request = os.environ.get(VARIABLE)
    if request:
        asked = json.loads(Path(request).read_text())
        config.pluginmanager.register(Recorder(**asked), "suite-recorder")


def path_of(records, module):
    """The file with the records of a test module.

    Args:
        records: The folder of all records.
        module: The path of the module, as test ids begin with it.
    """
    return Path(records) / f"{module}.jsonl"


def read(records, module):
    """The records of a test module, in order.

    Args:
        records: The folder of all records.
        module: The path of the module.

    Returns:
        A list of dicts: `{"started": id}`; or the outcome of a test, with
        `"id"`, `"outcome"`, `"seconds"` and `"text"`; or `{"finished": True}`.
    """
    try:
        lines = path_of(records, module).read_text().splitlines()
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:  # Cut off by a kill: that test runs once more.
            continue
    return found


def write(records, module, record):
    """Appends one record of a test module."""
    path = path_of(records, module)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def ended(records, module):
    """The ids of the tests of a module that have ended."""
    return {r["id"] for r in read(records, module) if "id" in r}


def module_of(test):
    return test.split("::")[0]


class Recorder:
    def __init__(self, records, only):
        self.records = records
        self.only = only
        self.reports = {}

    def write(self, test, record):
        write(self.records, module_of(test), record)

    def pytest_collection_modifyitems(self, config, items):
        wanted = self.wanted(items)
        kept = [item for item in items if item.nodeid in wanted]
        dropped = [item for item in items if item.nodeid not in wanted]
        items[:] = kept
        config.hook.pytest_deselected(items=dropped)

    def wanted(self, items):
        tests = {item.nodeid for item in items}
        if self.only is not None:
            # A module stands for all its tests.
            asked = set(self.only)
            tests = {t for t in tests if t in asked or module_of(t) in asked}
        modules = {module_of(test) for test in tests}
        return tests.difference(*(ended(self.records, m) for m in modules))

    def pytest_collectreport(self, report):
        if report.failed:
            self.end(report.nodeid, "failed", 0.0, report.longreprtext)
        elif report.skipped and report.nodeid.endswith(".py"):
            self.end(report.nodeid, "skipped", 0.0, reason_of(report))

    def pytest_runtest_logstart(self, nodeid):
        self.reports[nodeid] = []
        self.write(nodeid, {"started": nodeid})

    def pytest_runtest_logreport(self, report):
        self.reports[report.nodeid].append(report)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid):
        reports = self.reports.pop(nodeid)
        seconds = sum(report.duration for report in reports)
        worst = {report.outcome: report for report in reports[::-1]}
        for outcome in ("failed", "skipped"):
            if outcome in worst:
                report = worst[outcome]
                text = report.longreprtext
                if outcome == "skipped":
                    text = reason_of(report)
                return self.end(nodeid, outcome, seconds, text)
        self.end(nodeid, "passed", seconds, "")

    def end(self, test, outcome, seconds, text):
        record = {
            "id": test,
            "outcome": outcome,
            "seconds": round(seconds, 3),
            "text": text[-TEXT_LIMIT:],
        }
        self.write(test, record)


def reason_of(report):
    """Why a test was skipped, or failed as expected."""
    if hasattr(report, "wasxfail"):
        return f"expected to fail: {report.wasxfail}"
    if isinstance(report.longrepr, tuple):
        return report.longrepr[-1]
    return report.longreprtext
