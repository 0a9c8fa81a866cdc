"""Runs the tests that upstream ships on the fork, with one backend.

Tests that fail run on unmodified upstream as well, in the same environment.
The exit status is 0 if none of them passes there. A run that was interrupted
goes on where it was.
"""

import argparse
import datetime
import functools
import os
import platform
import signal
import sys
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console

from graft.compose import check
from graft.compose import plan as compose_plan
from graft.errors import GraftError
from graft.upstream import locate
from graft.upstream import version_of
from suite import compare
from suite import plan
from suite import pool
from suite import processes
from suite import report

ROOT = processes.ROOT
NAMED_PACKAGES = {
    "jax": ("jax", "jaxlib"),
    "jax-nnx": ("jax", "jaxlib", "flax"),
    "numpy": ("jax", "scipy"),
    "tensorflow": ("tensorflow-cpu",),
    "torch": ("torch",),
    "openvino": ("openvino",),
}
DEVICES = "--xla_force_host_platform_device_count"


def parser():
    made = argparse.ArgumentParser(
        prog="shell/upstream_suite.sh", description=__doc__
    )
    made.add_argument("--backend", required=True, choices=report.BACKENDS)
    made.add_argument(
        "--part", default="1/1", help="K/N: only the K-th of N parts"
    )
    made.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count(),
        help="how many processes test at a time; by default one a core",
    )
    made.add_argument(
        "--limit",
        type=float,
        default=600,
        help="seconds after which a test counts as hanging; by default 600",
    )
    made.add_argument(
        "--report",
        type=Path,
        help="the Markdown file to write this backend's row into, once all of "
        "its tests have run",
    )
    made.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="test modules or folders, such as keras/src/ops; by default all "
        f"but {' and '.join(plan.APART)}",
    )
    return made


class Suite:
    """The passes of a backend over upstream's tests.

    Args:
        options: The command line.
        console: Where to say how far it is.
    """

    def __init__(self, options, console):
        self.options = options
        self.console = console
        composition = compose_plan(locate(ROOT), ROOT, ROOT / "build")
        check(composition, ROOT)
        tests = plan.tests_of(composition.upstream)
        self.modules = plan.selected(tests, options.paths)
        counting = plan.without_own_tests(composition.files, tests)
        self.key = plan.key_of(counting, self.conditions())
        self.folder = ROOT / "build" / "suite" / options.backend / self.key
        self.trees = {}
        for side, content in (
            ("fork", composition.files),
            ("upstream", composition.upstream),
        ):
            self.trees[side] = self.folder / side
            plan.snapshot(content, self.trees[side])

    def conditions(self):
        configuration = [ROOT / "conftest.py", ROOT / "pyproject.toml"]
        return [
            platform.python_version(),
            *(path.read_text() for path in configuration),
            *plan.installed(),
        ]

    def passes(self):
        """For each pass its name, its modules, devices and marker."""
        yield "all", self.modules, 1, None
        if self.options.backend == "jax":
            modules = [
                module
                for module in self.modules
                if plan.wants_devices(module, self.trees["fork"])
            ]
            yield "4 devices", modules, 4, "multi_device"

    def sides(self, name, devices, marker):
        for side, tree in self.trees.items():
            yield processes.Side(
                name=f"{side}, {name}",
                tree=tree,
                records=self.folder / "records" / name / side,
                settings=settings(self.options.backend, devices),
                limit=self.options.limit,
                marker=marker,
            )

    def run(self):
        """Runs all passes.

        Returns:
            The verdict of each pass, by its name.
        """
        test = functools.partial(
            pool.run, jobs=self.options.jobs, console=self.console
        )
        verdicts = {}
        for name, modules, devices, marker in self.passes():
            fork, upstream = self.sides(name, devices, marker)
            groups = plan.batches(modules, fork.tree)
            groups = plan.part_of(groups, self.options.part)
            modules = sorted(sum(groups, []))
            test(fork, modules)
            verdicts[name] = compare.judge(fork, upstream, modules, test)
        return verdicts


def settings(backend, devices):
    """The environment variables of a backend."""
    return {
        "KERAS_BACKEND": "jax" if backend == "jax-nnx" else backend,
        "KERAS_NNX_ENABLED": "true" if backend == "jax-nnx" else "false",
        "XLA_FLAGS": f"{DEVICES}={devices}",
        # The tests of most backends have JAX compile the same small programs,
        # on other backends to compare with.
        "JAX_COMPILATION_CACHE_DIR": str(ROOT / "build" / "jax_cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def run_of(suite, verdicts):
    """A `report.Run` of all that is known."""
    names = ("numpy", *NAMED_PACKAGES[suite.options.backend])
    versions = [f"{name} {metadata.version(name)}" for name in names]
    return report.Run(
        backend=suite.options.backend,
        fork=f"{version_of(suite.trees['fork'])} ({suite.key})",
        packages=", ".join([f"Python {platform.python_version()}", *versions]),
        date=datetime.date.today().isoformat(),
        verdicts=verdicts,
    )


def main(arguments=None):
    """Runs the suite.

    Args:
        arguments: The command line.

    Returns:
        The exit status.
    """
    options = parser().parse_args(arguments)
    # Names of tests have brackets, which are no markup.
    console = Console(markup=False, highlight=False)
    if options.report and (options.paths or options.part != "1/1"):
        console.print("--report needs a run of all tests: no PATH, no --part")
        return 2
    # As with Ctrl-C: the processes that test have to end as well.
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.default_int_handler)
    try:
        suite = Suite(options, console)
        run = run_of(suite, suite.run())
    except (GraftError, processes.CannotTest) as error:
        console.print(f"upstream_suite: {error}", soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("Interrupted. The same command goes on from here.")
        return 130
    conclude(suite, run)
    return 1 if run.only_here() else 0


def conclude(suite, run):
    """Writes and prints what came of a run."""
    options, console = suite.options, suite.console
    for line in report.listing(run):
        console.print(line, soft_wrap=True)
    path = suite.folder / "junit.xml"
    tree = ElementTree.ElementTree(report.junit(run))
    tree.write(path, encoding="utf-8", xml_declaration=True)
    console.print(f"JUnit file: {path}", soft_wrap=True)
    if options.report:
        old = options.report
        text = old.read_text() if old.exists() else ""
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(report.update(text, run))
    console.print(report.table(run))


if __name__ == "__main__":
    sys.exit(main())
