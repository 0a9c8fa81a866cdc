"""`python -m graft`: compose the tree, and show and review what it changes."""

import argparse
import signal
import sys
from pathlib import Path

from graft import lock
from graft import report
from graft.checkout import Checkout
from graft.compose import check
from graft.compose import plan
from graft.compose import write
from graft.errors import GraftError
from graft.series import Conflicts
from graft.series import Series
from graft.upstream import locate

REPOSITORY = Path(__file__).resolve().parent.parent


def parser():
    top = argparse.ArgumentParser(prog="python -m graft", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--upstream",
        type=Path,
        help="a folder with another upstream package `keras/` in it; by "
        "default the pinned release",
    )
    commands.add_parser("tree", parents=[common], help="compose build/tree")
    diff = commands.add_parser(
        "diff", parents=[common], help="print the difference to upstream"
    )
    diff.add_argument(
        "--stat", action="store_true", help="count the lines of each file"
    )
    commands.add_parser(
        "status", parents=[common], help="list grafts and conflicts"
    )
    locking = commands.add_parser(
        "lock", parents=[common], help="record a review in graft.lock"
    )
    locking.add_argument(
        "--check", action="store_true", help="only say whether it is up to date"
    )
    series = commands.add_parser(
        "series", parents=[common], help="make commits for upstream"
    )
    series.add_argument(
        "--onto",
        type=Path,
        required=True,
        metavar="CHECKOUT",
        help="a git checkout of Keras",
    )
    series.add_argument(
        "--branch",
        default="layouts",
        help="the branch to make in it; by default %(default)s",
    )
    series.add_argument(
        "--skip-conflicts",
        action="store_true",
        help="leave out what does not fit that checkout",
    )
    return top


def main(arguments=None, repository=REPOSITORY):
    """Runs a command.

    Args:
        arguments: The command line.
        repository: The folder with the grafts.

    Returns:
        The exit status.
    """
    options = parser().parse_args(arguments)
    try:
        upstream = options.upstream or locate(repository)
        composition = plan(upstream, repository, repository / "build")
        return COMMANDS[options.command](composition, repository, options)
    except GraftError as error:
        print(f"graft: {error}", file=sys.stderr)
        return 1


def tree(composition, repository, options):
    check(composition, repository)
    write(composition.files, repository / "build" / "tree")
    return 0


def diff(composition, repository, options):
    composition.raise_errors()
    sys.stdout.writelines(report.diff(composition, options.stat))
    return 0


def status(composition, repository, options):
    review = lock.review(lock.read(repository / lock.NAME), composition)
    report.status(composition, review)
    return 1 if composition.errors or review.owed else 0


def lock_command(composition, repository, options):
    composition.raise_errors()
    path = repository / lock.NAME
    review = lock.review(lock.read(path), composition)
    if not options.check:
        lock.write(lock.of(composition), path)
    lines = report.lock_changes(review, composition.version)
    print("\n".join(lines) if lines else f"{lock.NAME} is up to date.")
    return 1 if options.check and lines else 0


def series_command(composition, repository, options):
    check(composition, repository)
    checkout = Checkout(options.onto)
    checkout.check_new(options.branch)
    series = Series.of(composition, repository)
    tree = checkout.files()
    try:
        commits, left_out = series.on(tree), []
    except Conflicts as conflicts:
        if not options.skip_conflicts:
            report.conflicts(conflicts)
            return 1
        commits, left_out = series.fitting(tree)
    changes = [(commit.message, commit.files) for commit in commits]
    made = checkout.commit(options.branch, changes)
    report.series(options.branch, zip(made, commits), left_out)
    return 0


COMMANDS = {
    "tree": tree,
    "diff": diff,
    "status": status,
    "lock": lock_command,
    "series": series_command,
}

if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):  # `python -m graft diff | head`
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
