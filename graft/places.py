"""Where the definitions that a graft changes are in another upstream tree.

A graft is for the module at its own path. Where a definition has left that,
its place is the one module that took it: with the same name in a folder below
(`jax/numpy.py`, now `jax/ops/numpy.py`), or in the package that the module has
become (`ops/numpy.py`, now `ops/numpy/fills.py`). If there is no such module,
or more than one, that is for a person to decide.

Public modules are in `keras/api/` in git, and in `keras/` in wheels.
"""

import functools

import libcst as cst

from graft import thin
from graft.errors import GraftError
from graft.fingerprints import find_fingerprints
from graft.parts import line_of
from graft.syntax import decoded


class Places:
    """The definitions of a tree, compared with those that were reviewed.

    Args:
        tree: The content of each file, by path.
        version: The version of upstream that was reviewed.
        prints: The fingerprints of the reviewed definitions, by the path of
            the graft and the qualified name.
    """

    def __init__(self, tree, version, prints):
        self.tree = tree
        self.version = version
        self.prints = prints

    def find(self, path, text, parts):
        """The place of each part of a graft.

        Args:
            path: The path of the graft.
            text: Its source.
            parts: The `Part`s.

        Returns:
            The path of the module for each part that has one, by part, and
            the `GraftError` for each other, by part.
        """
        places, conflicts, new = {}, {}, []
        for part in parts:
            hooked = self.hooked(path, part)
            if not hooked:
                new.append(part)
                continue
            try:
                places[part] = self.place(path, text, hooked)
            except GraftError as error:
                message = str(error) if error.file else error.message
                conflicts[part] = _told(message, path, text, part)
        public = path.replace("keras/", "keras/api/", 1)
        here = [each for each in (path, public) if each in self.tree]
        homes = set(here[:1] or places.values())
        for part in new:
            if len(homes) == 1:
                (places[part],) = homes
            else:
                message = "upstream no longer has a module for this"
                conflicts[part] = _told(message, path, text, part)
        return places, conflicts

    def hooked(self, path, part):
        """The reviewed definitions that a part changes or is inside of."""
        prints = self.prints.get(path, {})
        return {
            name: print_of
            for name, print_of in prints.items()
            if part.concerns(name)
        }

    def place(self, path, text, hooked):
        """The module that has all of these definitions, as reviewed."""
        found = self.having([path], text, hooked)
        found = found or self.having(self.moved_to(path), text, hooked)
        fitting = [each for each in found if not _changed(hooked, found[each])]
        if len(found) > 1 and len(fitting) != 1:
            told = " and in ".join(found)
            raise GraftError(f"upstream has something of this name in {told}")
        for place in fitting or found:
            changed = _changed(hooked, found[place])
            if not changed:
                return place
            where = "" if place == path else f", now in {place},"
            raise GraftError(
                f"upstream changed {' and '.join(changed)}{where} since "
                f"{self.version}"
            )
        raise GraftError("upstream no longer has this")

    def having(self, paths, text, names):
        """The fingerprints in each module that has all of these names."""
        found = {}
        for path in paths:
            if path in self.tree:
                upstream = decoded(self.tree[path], f"upstream's {path}")
                short = _mentioned(upstream, text, path)
                prints = {n: find_fingerprints(short, n) for n in names}
                if all(prints.values()):
                    found[path] = prints
        return found

    def moved_to(self, path):
        """The modules that may have what was in the module at a path."""
        folder, _, name = path.rpartition("/")
        package = path.removesuffix(".py") + "/"
        return [
            each
            for each in self.tree
            if each.startswith(package)
            or (each.startswith(f"{folder}/") and each.endswith(f"/{name}"))
            if each.endswith(".py") and each != path
        ]


@functools.lru_cache(maxsize=64)
def _mentioned(upstream, graft, path):
    """An upstream module without what a graft does not mention."""
    return thin.cut(upstream, cst.parse_module(graft).body, path)[0]


def _changed(reviewed, prints):
    """The names whose definition is not the one that was reviewed."""
    return [
        f"`{name}`"
        for name, print_of in reviewed.items()
        if print_of not in prints[name]
    ]


def _told(message, path, text, part):
    return GraftError(message, path, line_of(text, True, part.name), part.name)
