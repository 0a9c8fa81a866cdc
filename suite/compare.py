"""Finds the tests that fail on the fork and pass on unmodified upstream."""

import dataclasses

from suite import recorder


@dataclasses.dataclass
class Verdict:
    """What came of a pass over the tests.

    Args:
        outcomes: The record of each test of the fork, by id.
        only_here: Ids of tests that fail on the fork, twice, and do not on
            upstream.
        unsteady: Ids of tests that failed on the fork, passed on upstream, and
            came out alike on both when their modules ran once more.
    """

    outcomes: dict
    only_here: list
    unsteady: list

    def count(self, outcome):
        return sum(r["outcome"] == outcome for r in self.outcomes.values())

    def failed_on_both(self):
        ids = set(failures(self.outcomes))
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
    return [t for t, r in outcomes.items() if r["outcome"] == "failed"]


def failing_only(here, there):
    """The ids that fail in one and not in the other, sorted.

    A module that could not be imported has failed under its own path, which
    the other side does not have if it could import it.
    """
    return sorted(set(failures(here)) - set(failures(there)))


def modules_of(tests):
    return sorted({recorder.module_of(test) for test in tests})


def judge(fork, upstream, modules, test):
    """Compares what failed on the fork with unmodified upstream.

    First upstream runs those tests alone. What passes there may have failed
    here by chance, or because of tests before it: both sides run the whole
    modules of such tests once more, and that decides.

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
    suspects = failing_only(here, there)
    again = [repeated(side) for side in (fork, upstream)]
    for side in again:
        test(side, modules_of(suspects), None)
    here_again, there_again = (
        outcomes_of(side, modules_of(suspects)) for side in again
    )
    differing = failing_only(here_again, there_again)
    only_here = [t for t in suspects if differs_again(t, differing)]
    unsteady = [t for t in suspects if not differs_again(t, differing)]
    return Verdict(here, only_here, unsteady)


def differs_again(test, differing):
    """Whether a test, or the import of its module, has failed here again.

    Args:
        test: The id of a test, or the path of a module that could not be
            imported.
        differing: The ids of those that fail on the fork only when they are
            run again. If a module fails in one run and its tests in the
            other, that is no chance.
    """
    module = recorder.module_of(test)
    if test == module:
        return module in modules_of(differing)
    return test in differing or module in differing


def repeated(side):
    """The same side, with other records."""
    records = side.records.with_name(f"{side.records.name}-again")
    return dataclasses.replace(
        side, name=f"{side.name}, again", records=records
    )
