"""Says what came of a run: a table, a JUnit file, a row of a document."""

import dataclasses
import re
from xml.etree import ElementTree

from rich.table import Table
from rich.text import Text

from suite import recorder

BACKENDS = ("jax", "jax-nnx", "numpy", "tensorflow", "torch", "openvino")
COLUMNS = (
    "backend",
    "fork",
    "date",
    "passed",
    "failed",
    "skipped",
    "fails here, passes on upstream",
    "unsteady",
    "packages",
)
INTRODUCTION = """\
# Upstream's tests, on every backend

`shell/upstream_suite.sh --backend BACKEND` runs the tests that the upstream
release ships on the fork (but for `keras.applications` and `keras.wrappers`,
which upstream's CI runs apart), and those that fail on unmodified upstream too,
with the same packages. What fails there as well is counted as failed, and is no
fault of the fork. Each row is a whole run; the script wrote it, with
`--report docs/upstream_suite.md`. Unsteady tests failed on the fork and passed
on upstream, and when their modules ran again, up to five times, they did not
fail on the fork, or failed on upstream too. The number behind a version is of
the sources and packages that the tests saw: a row whose number a run does not
print any more is from before later changes.

"""
# Control characters that XML has no way to write.
UNWRITABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd]")


@dataclasses.dataclass
class Run:
    """A run over one or several passes.

    Args:
        backend: The name of the backend.
        fork: The version of the fork and a short name of its content.
        packages: What it ran with, in words.
        date: The day, ISO.
        verdicts: The `Verdict` of each pass, by the name of the pass.
    """

    backend: str
    fork: str
    packages: str
    date: str
    verdicts: dict

    def count(self, outcome):
        return sum(v.count(outcome) for v in self.verdicts.values())

    def only_here(self):
        return [t for v in self.verdicts.values() for t in v.only_here]

    def unsteady(self):
        return [t for v in self.verdicts.values() for t in v.unsteady]


def table(run):
    """The table that ends a run."""
    made = Table(title=f"Upstream's tests on {run.backend}, {run.fork}")
    made.add_column("pass")
    for name in ("passed", "failed", "skipped", "fails only here", "unsteady"):
        made.add_column(name, justify="right")
    for name, verdict in run.verdicts.items():
        outcomes = ("passed", "failed", "skipped")
        counts = [verdict.count(outcome) for outcome in outcomes]
        counts += [len(verdict.only_here), len(verdict.unsteady)]
        made.add_row(name, *map(str, counts))
    made.caption = Text(run.packages)
    return made


def listing(run):
    """Lines that name the tests to look at."""
    lines = []
    for name, verdict in run.verdicts.items():
        for title, tests in (
            ("Fails here, passes on upstream", verdict.only_here),
            ("Unsteady", verdict.unsteady),
            ("Fails on upstream too", verdict.failed_on_both()),
        ):
            lines += [f"{title} ({name}): {test}" for test in tests]
    return lines


def junit(run):
    """The run as the root of a JUnit file."""
    root = ElementTree.Element("testsuites", name=f"keras on {run.backend}")
    for name, verdict in run.verdicts.items():
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=name,
            tests=str(len(verdict.outcomes)),
            failures=str(verdict.count("failed")),
            skipped=str(verdict.count("skipped")),
        )
        for test, record in sorted(verdict.outcomes.items()):
            suite.append(junit_case(test, record, verdict))
    return root


def junit_case(test, record, verdict):
    module, *names = test.split("::")
    dotted = recorder.module_of(module).removesuffix(".py").replace("/", ".")
    case = ElementTree.Element(
        "testcase",
        classname=".".join([dotted, *names[:-1]]),
        name=UNWRITABLE.sub("?", names[-1] if names else module),
        time=str(record["seconds"]),
    )
    text = UNWRITABLE.sub("?", record["text"])
    if record["outcome"] == "skipped":
        ElementTree.SubElement(case, "skipped", message=text)
    elif record["outcome"] == "failed":
        message = "fails on upstream too"
        if test in verdict.only_here:
            message = "passes on upstream"
        elif test in verdict.unsteady:
            message = "unsteady"
        failure = ElementTree.SubElement(case, "failure", message=message)
        failure.text = text
    return case


def row(run):
    """The run as cells of a document's table."""
    counts = [run.count(o) for o in ("passed", "failed", "skipped")]
    counts += [len(run.only_here()), len(run.unsteady())]
    cells = [run.backend, run.fork, run.date, *counts, run.packages]
    return "| " + " | ".join(map(str, cells)) + " |"


def update(document, run):
    """Writes the run into a document, in place of its backend's last one.

    Args:
        document: The text of the document, or `""` for a new one.
        run: The `Run`.

    Returns:
        The new text.
    """
    rows = {run.backend: row(run)}
    for line in document.splitlines():
        backend = line.split("|")[1].strip() if line.startswith("| ") else None
        if backend in BACKENDS:
            rows.setdefault(backend, line)
    head = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    body = [rows[backend] for backend in BACKENDS if backend in rows]
    return INTRODUCTION + "\n".join([*head, *body]) + "\n"
