"""Finds the tests that fail on the fork and pass on unmodified upstream."""

import dataclasses

from suite import recorder

# A test that fails every other time passes as often in a row once in 32.
RUNS = 5


@dataclasses.dataclass
class Verdict:
    """What came of a pass over the tests.

    Args:
        outcomes: The record of each test of the fork, by id.
        only_here: Ids of tests that fail on the fork, twice, and in none of
            several runs on upstream.
        unsteady: Ids of tests that failed on the fork and passed on upstream,
            and when their modules ran again did not fail on the fork, or
            failed on upstream too.
    """

    outcomes: dict
    only_here: list
    unsteady: list

    def count(self, outcome):
        return sum(r["outcome"] == outcome for r in self.outcomes.values())

    def failed_on_both(self):
        ids = failures(self.outcomes)
        return sorted(ids - {*self.only_here, *self.unsteady})


def outcomes_of(side, modules):
    """The record of each test of these modules that has ended, by id."""
    return {
        record["id"]: record
        for module in modules
        for record in recorder.read(side.records, module)
        if "id" in record
    }


def failures(outcomes):
    return {t for t, r in outcomes.items() if r["outcome"] == "failed"}


def failing_only(here, there):
    """The ids among the failures of one and not of the other, sorted.

    A module that could not be imported has failed under its own path, which
    the other side does not have if it could import it.
    """
    return sorted(here - there)


def modules_of(tests):
    return sorted({recorder.module_of(test) for test in tests})


def judge(fork, upstream, modules, test):
    """Compares what failed on the fork with unmodified upstream.

    First upstream runs those tests alone. What passes there may have failed
    here by chance, or because of tests before it, so the whole modules of such
    tests run again: on the fork until they have failed once more, and those
    that have on upstream until they fail there as well.

    Args:
        fork: The `Side` whose tests of `modules` have run.
        upstream: The other `Side`.
        modules: Paths of test modules.
        test: A function `test(side, modules, only)` that runs tests.

    Returns:
        A `Verdict`.
    """
    here = outcomes_of(fork, modules)
    failed = sorted(failures(here))
    test(upstream, modules_of(failed), failed)
    there = outcomes_of(upstream, modules_of(failed))
    suspects = failing_only(failures(here), failures(there))
    here_again = failing_again(fork, suspects, test)
    confirmed = [t for t in suspects if has_failed(t, here_again)]
    there_again = failing_again(upstream, confirmed, test)
    differing = failing_only(here_again, there_again)
    only_here = [t for t in confirmed if has_failed(t, differing)]
    unsteady = [t for t in suspects if t not in only_here]
    return Verdict(here, only_here, unsteady)


def failing_again(side, tests, test):
    """What fails when modules run again, up to `RUNS` times.

    Args:
        side: The `Side` to test.
        tests: Ids of tests. A module runs again until all of these that are in
            it have failed.
        test: As for `judge`.

    Returns:
        The ids of all tests that have failed in any of these runs.
    """
    failed = set()
    for number in range(1, RUNS + 1):
        modules = modules_of(t for t in tests if not has_failed(t, failed))
        if not modules:
            break
        again = repeated(side, number)
        test(again, modules, None)
        failed |= failures(outcomes_of(again, modules))
    return failed


def has_failed(test, failed):
    """Whether a test, or the import of its module, is among those that failed.

    Args:
        test: The id of a test, or the path of a module that could not be
            imported.
        failed: The ids of those that failed when they ran again. If a module
            fails in one run and its tests in the other, that is no chance.
    """
    module = recorder.module_of(test)
    if test == module:
        return module in modules_of(failed)
    return test in failed or module in failed


def repeated(side, number):
    """The same side, with other records."""
    records = side.records.with_name(f"{side.records.name}-again-{number}")
    return dataclasses.replace(
        side, name=f"{side.name}, again {number}", records=records
    )
