"""`graft.lock`: which upstream code the grafts were last reviewed against.

It names the upstream version, and for each grafted file the fingerprint of each
upstream definition that the graft replaces, wraps or removes. Of a class or an
`if` block that is merged, the fingerprint covers only the line that opens it.
"""

import dataclasses
import json
import tomllib

from graft.errors import GraftError

NAME = "graft.lock"
HEADER = """\
# The upstream code that the grafts were last reviewed against: fingerprints of
# the definitions that they replace, wrap, remove or extend. Written by
# `python -m graft lock`.
"""


@dataclasses.dataclass
class Lock:
    """What a lock says.

    Args:
        version: The version of upstream.
        prints: For each grafted file the fingerprints, by qualified name.
    """

    version: str
    prints: dict


def of(composition):
    """The lock that fits a composition."""
    prints = {
        path: {name: print_of for name, (_, print_of) in sorted(hooks.items())}
        for path, hooks in sorted(composition.hooks.items())
        if hooks
    }
    return Lock(composition.version, prints)


def read(path):
    """The lock in a file; `None` where there is none."""
    if not path.exists():
        return None
    try:
        content = tomllib.loads(path.read_text())
        return Lock(content.pop("upstream"), content)
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise GraftError(
            f"this is no lock ({error!r}). Restore it, or remove it and run "
            "`python -m graft lock`",
            path.name,
        ) from None


def write(locked, path):
    lines = [HEADER, f"upstream = {json.dumps(locked.version)}"]
    for file, prints in locked.prints.items():
        lines += ["", f"[{json.dumps(file)}]"]
        for name, print_of in prints.items():
            lines.append(f"{json.dumps(name)} = {json.dumps(print_of)}")
    path.write_text("\n".join(lines) + "\n")


@dataclasses.dataclass
class Review:
    """How a composition compares with a lock.

    Each list has names of definitions as `path::name`.

    Args:
        version: The version that the lock was written for.
        changed: Upstream changed these.
        gone: Upstream no longer has these.
        fitting: The number of definitions that are as they were.
        unlisted: A graft hooks these, but the lock does not have them.
        stale: The lock has these, but no graft hooks them.
        owed: Whether upstream is another than the lock was written for.
    """

    version: str
    changed: list
    gone: list
    fitting: int
    unlisted: list
    stale: list
    owed: bool

    def message(self, composition):
        lines = [
            f"written for {self.version}, and upstream is "
            f"{composition.version}."
        ]
        for title, names in (
            ("Upstream changed since then:", self.changed),
            ("Upstream no longer has:", self.gone),
            ("Newly hooked:", self.unlisted),
            ("Does not fit:", list(map(str, composition.errors))),
        ):
            if names:
                lines += [title, *(f"  {name}" for name in names)]
        if self.changed or self.gone:
            lines.append(
                f"The rest still fits: {self.fitting} hooked definitions are "
                "as they were."
            )
        else:
            lines.append(f"All {self.fitting} hooked definitions still fit.")
        if composition.errors:
            lines.append("Mend the grafts that do not fit first.")
        lines.append(
            "Review the grafts against upstream's new code, then run `python "
            "-m graft lock`, with the same --upstream if you gave one."
        )
        return "\n".join(lines)


def review(locked, composition):
    """Compares a composition with a lock, `None` for no lock."""
    now = _flat(of(composition).prints)
    if locked is None:
        return Review(composition.version, [], [], 0, sorted(now), [], False)
    before = _flat(locked.prints)
    failed = {error.file for error in composition.errors}
    changed, gone, stale, fitting = [], [], [], []
    for name, print_of in sorted(before.items()):
        there = [now[name]] if name in now else _lookup(name, composition)
        if not there:
            gone.append(name)
        elif print_of not in there:
            changed.append(name)
        elif name in now or name.split("::")[0] in failed:
            fitting.append(name)
        else:
            stale.append(name)
    return Review(
        version=locked.version,
        changed=changed,
        gone=gone,
        fitting=len(fitting),
        unlisted=sorted(now.keys() - before.keys()),
        stale=stale,
        owed=bool(changed or gone) or locked.version != composition.version,
    )


def _flat(prints):
    return {
        f"{path}::{name}": print_of
        for path, names in prints.items()
        for name, print_of in names.items()
    }


def _lookup(name, composition):
    """The fingerprints that upstream's code by this name may have."""
    from graft.fingerprints import find_fingerprints

    path, name = name.split("::", 1)
    if path not in composition.upstream:
        return []
    return find_fingerprints(composition.upstream[path].decode(), name)
