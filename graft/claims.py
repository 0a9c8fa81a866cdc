"""Which change belongs to which step of the series.

Each step is a file in `series/`, in the order of their names:

    title = "Add `layout` to random ops"
    description = '''
    Why, and what.
    '''

    [changes]
    "keras/src/random/random.py" = "*"
    "keras/src/random/seed_generator.py" = ["SeedGenerator"]

A change is named by its file, and there by its name as in `graft.parts`, or by
that of a class or a block around it. "*" is everything in the file that no
other step names. `series/stays.toml` names in the same way what is the fork's
alone. Each change has to belong to exactly one of these.

What is no module, and so no graft, changes by text. Such a file stays as it is
where upstream does not have it:

    [replaces.".github/workflows/actions.yml"]
    "NUM_DEVICES=4" = "NUM_DEVICES=8"
"""

import dataclasses
import tomllib

from graft.errors import GraftError
from graft.parts import line_of
from graft.parts import parts

FOLDER = "series"
STAYS = "stays"
REST = "*"


@dataclasses.dataclass
class Step:
    """A step of the series.

    Args:
        file: Its file in the repository.
        title: The first line of its commit message.
        description: The rest of the commit message.
        requires: The packages that its tests need and upstream's do not.
        replaces: For each path of another file what becomes of texts in it.
        claims: For each path "*" or a list of names.
        parts: For each path the `Part`s of its module that it consists of.
    """

    file: str
    title: str
    description: str
    requires: list
    replaces: dict
    claims: dict
    parts: dict = dataclasses.field(default_factory=dict)


def read(repository, sources, theirs):
    """The steps of the series, with every change in one of them.

    Args:
        repository: The folder that has `series/`.
        sources: The source of each graft and new module, by path.
        theirs: The paths that upstream has.

    Returns:
        The list of `Step`s, and another `Step` for what stays.

    Raises:
        GraftError: The series cannot be read, or a change is in none or in
            several of its steps.
    """
    files = sorted((repository / FOLDER).glob("*.toml"))
    steps = [_step(path) for path in files]
    if not steps:
        raise GraftError("there is no step, such as 01-layouts.toml", FOLDER)
    errors = []
    for path, text in sources.items():
        errors += _divide(path, text, path in theirs, steps)
    for step in steps:
        for path in step.claims.keys() - sources.keys():
            errors.append(
                GraftError(f"{path}: there is no such change", step.file)
            )
    if errors:
        raise GraftError("\n".join(map(str, errors)))
    stays = [step for step in steps if step.file == f"{FOLDER}/{STAYS}.toml"]
    steps = [step for step in steps if step not in stays]
    return steps, stays[0] if stays else Step("", "", "", [], {}, {})


def _step(path):
    file = f"{FOLDER}/{path.name}"
    try:
        content = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise GraftError(f"this is no TOML: {error}", file) from None
    known = {"title": "", "description": "", "requires": []}
    known |= {"replaces": {}, "changes": {}}
    for key, value in content.items():
        if key not in known or type(value) is not type(known[key]):
            raise GraftError(
                "a step has the texts `title` and `description`, the list "
                "`requires` and the tables `replaces` and `changes`. "
                f"Received: {key}={value}",
                file,
            )
    if path.stem != STAYS and not content.get("title", "").strip():
        raise GraftError("a step needs a `title`", file)
    for changed, texts in content.get("replaces", {}).items():
        if not isinstance(texts, dict) or not all(
            isinstance(text, str) for text in texts.values()
        ):
            raise GraftError(
                "the replacements in a file are a table of texts. "
                f"Received: {changed}={texts}",
                file,
            )
    for changed, names in content.get("changes", {}).items():
        is_list = isinstance(names, list) and all(
            isinstance(name, str) for name in names
        )
        if names != REST and not is_list:
            raise GraftError(
                f'the changes of a file are "{REST}" or a list of names. '
                f"Received: {changed}={names}",
                file,
            )
    return Step(
        file,
        content.get("title", "").strip(),
        content.get("description", "").strip(),
        content.get("requires", []),
        content.get("replaces", {}),
        content.get("changes", {}),
    )


def _divide(path, text, is_graft, steps):
    """Gives each part of a module to its step; returns the errors."""
    if not path.endswith(".py"):
        raise GraftError("a series is of Python modules only", path)
    claimants = [step for step in steps if path in step.claims]
    if not claimants:
        return [GraftError("no step of the series has this file", path)]
    rest = [step for step in claimants if step.claims[path] == REST]
    named = [step for step in claimants if step not in rest]
    found = list(dict.fromkeys(parts(text, is_graft)))
    errors = [e for step in named for e in _unknown(path, found, step)]
    for step in claimants:
        step.parts[path] = []
    for part in found:
        takers = [s for s in named if any(map(part.is_in, s.claims[path]))]
        takers = takers or rest
        if len(takers) == 1:
            takers[0].parts[path].append(part)
            continue
        told = "no step of the series has this change"
        if takers:
            files = " and ".join(step.file for step in takers)
            told = f"several steps have this change: {files}"
        line = line_of(text, is_graft, part.name)
        errors.append(GraftError(told, path, line, part.name))
    return errors


def _unknown(path, found, step):
    """An error for each name that stands for nothing in its module."""
    return [
        GraftError(f"{path} has no such change", step.file, None, name)
        for name in step.claims[path]
        if not any(part.is_in(name) for part in found)
    ]
