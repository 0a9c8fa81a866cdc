"""What to test: which modules, of which tree, in which processes."""

import hashlib
import os
import shutil
from importlib import metadata
from pathlib import Path

from graft.errors import GraftError

APART = ("keras/src/applications", "keras/src/wrappers")
BATCH_BYTES = 64_000


def tests_of(files):
    """The test modules among the paths of files, sorted."""
    return sorted(path for path in files if path.endswith("_test.py"))


def is_apart(module):
    """Whether a module is tested on request only, as upstream's CI has it."""
    return module.startswith(tuple(f"{folder}/" for folder in APART))


def selected(tests, paths):
    """The test modules that paths ask for.

    Args:
        tests: The paths of all modules.
        paths: Modules or folders, from the root of the tree. None of them asks
            for all modules but those apart.

    Returns:
        A sorted list of paths.
    """
    if not paths:
        return [module for module in tests if not is_apart(module)]
    found = set()
    for path in paths:
        path = os.path.normpath(path)
        here = [t for t in tests if t == path or t.startswith(f"{path}/")]
        if not here:
            raise GraftError(
                "upstream has no test module there. A path is one of a module "
                "or a folder below `keras/`, such as keras/src/ops",
                path,
            )
        found.update(here)
    return sorted(found)


def batches(modules, folder):
    """Groups modules into processes.

    Starting a process takes as long as many a module's tests, and one that
    tests many modules grows by all that JAX compiles for them.

    Args:
        modules: Sorted paths of modules.
        folder: Where they are.

    Returns:
        A list of lists of paths, the largest modules first.
    """
    size = {module: (folder / module).stat().st_size for module in modules}
    found, room = [], 0
    for module in modules:
        if size[module] > room:
            found.append([])
            room = BATCH_BYTES
        found[-1].append(module)
        room -= size[module]
    return sorted(found, key=lambda batch: -sum(size[m] for m in batch))


def part_of(groups, part):
    """The K-th of N parts of a list, spread evenly.

    Args:
        groups: A list.
        part: A string `"K/N"`.
    """
    try:
        which, count = (int(number) for number in part.split("/"))
    except ValueError:
        which, count = 0, 0
    if not 1 <= which <= count:
        raise GraftError(
            "a part is written K/N, with 1 <= K <= N, such as 1/3", part
        )
    return groups[which - 1 :: count]


def installed():
    """All packages of this environment, `name==version`, sorted."""
    found = {
        f"{distribution.metadata['Name']}=={distribution.version}".lower()
        for distribution in metadata.distributions()
    }
    return sorted(found)


def without_own_tests(files, tests):
    """Leaves out the fork's own test modules, which may change at any time.

    None of upstream's imports from them, as what tests share is in
    `*_testing.py`. So they do not decide what a run is of.

    Args:
        files: The content of each file of the composed tree, by path.
        tests: The paths of upstream's test modules.
    """
    return {
        path: content
        for path, content in files.items()
        if not path.endswith("_test.py") or path in tests
    }


def key_of(files, conditions):
    """Names what the results of a run depend on.

    Args:
        files: The content of each file of the tree, by path.
        conditions: Strings that say what else counts.

    Returns:
        A short name for a folder.
    """
    digest = hashlib.sha256("\n".join(conditions).encode())
    for path in sorted(files):
        digest.update(path.encode())
        digest.update(hashlib.sha256(files[path]).digest())
    return digest.hexdigest()[:12]


def snapshot(files, folder):
    """Writes a tree once, so that nobody changes it during a long run."""
    if folder.exists():
        return
    scratch = folder.with_name(f"{folder.name}-{os.getpid()}")
    for path, content in files.items():
        target = scratch / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    try:
        scratch.rename(folder)
    except OSError:  # Another run was faster.
        shutil.rmtree(scratch)


def wants_devices(module, folder):
    """Whether a module has tests for several devices."""
    return "multi_device" in Path(folder, module).read_text()
