"""The difference to upstream as a series of steps, each on top of the last.

Here all is text: what each file is after each step. `graft.checkout` makes
commits of it.
"""

import dataclasses
import functools

from graft import claims
from graft import lock
from graft.decorators import decorated
from graft.errors import GraftError
from graft.merge import merge
from graft.parts import line_of
from graft.parts import parts
from graft.parts import subset
from graft.places import Places
from graft.resolve import unresolved
from graft.syntax import decoded
from graft.syntax import parsed

REQUIREMENTS = "requirements-common.txt"

# Many a step leaves a file as the step before made it.
_merge = functools.lru_cache(maxsize=256)(merge)


@dataclasses.dataclass
class Commit:
    """What a step changes.

    Args:
        step: The `graft.claims.Step`.
        files: The content of each file that it changes, by path.
    """

    step: object
    files: dict

    @property
    def message(self):
        return f"{self.step.title}\n\n{self.step.description}\n"


class Conflicts(GraftError):
    """What cannot be made on a tree.

    Args:
        found: For each conflict a triple: the error, the path of the graft or
            new module, and the `Part`s of it that are at fault; or the path
            of another file, and the texts that are not in it.
    """

    def __init__(self, found):
        self.found = found
        super().__init__("\n".join(str(error) for error, _, _ in found))


class Series:
    """The series on one upstream tree.

    Args:
        steps: The list of `graft.claims.Step`s.
        stays: Another one, for what is no part of the series.
        sources: The source of each graft and new module, by path.
        theirs: The content of each file of the pinned upstream, by path.
        locked: The `graft.lock.Lock`.
    """

    def __init__(self, steps, stays, sources, theirs, locked):
        self.steps = steps
        self.stays = stays
        self.sources = sources
        self.theirs = theirs
        self.grafts = {path for path in sources if path in theirs}
        self.locked = locked

    @classmethod
    def of(cls, composition, repository):
        """The series of a repository.

        Args:
            composition: What is composed of it and the pinned upstream.
            repository: Its folder.

        Returns:
            A `Series`.

        Raises:
            GraftError: A change is in no step or in several, or `graft.lock`
                is not up to date.
        """
        locked = lock.read(repository / lock.NAME)
        review = lock.review(locked, composition)
        if review.unlisted or review.stale:
            names = "\n".join([*review.unlisted, *review.stale])
            raise GraftError(
                f"run `python -m graft lock` for these first:\n{names}",
                lock.NAME,
            )
        sources = {
            path: decoded((repository / path).read_bytes(), path)
            for path in sorted([*composition.new, *composition.hooks])
        }
        theirs = composition.upstream
        steps, stays = claims.read(repository, sources, theirs)
        return cls(steps, stays, sources, theirs, locked)

    def on(self, tree, polish=decorated):
        """The commits of the series.

        Args:
            tree: The content of each file of upstream, by path.
            polish: What makes a merged module the one to commit; see
                `graft.decorators.decorated`.

        Returns:
            A list of `Commit`s.

        Raises:
            Conflicts: Something does not fit.
        """
        return self._commits(tree, polish, skipped=set())

    def fitting(self, tree):
        """The commits of what fits, and what is left out.

        Returns:
            A list of `Commit`s and a list of `GraftError`s.
        """
        skipped, errors = set(), []
        while True:
            try:
                return self._commits(tree, decorated, skipped), errors
            except Conflicts as conflicts:
                for error, path, found in conflicts.found:
                    errors.append(error)
                    skipped.update((path, part) for part in found)

    def _commits(self, tree, polish, skipped):
        places, conflicts = self._places(tree, skipped)
        if conflicts:
            raise Conflicts(conflicts)
        state, done, commits = dict(tree), {}, []
        for step in self.steps:
            before = dict(state)
            changed = set()
            for path, found in step.parts.items():
                new = [part for part in found if (path, part) not in skipped]
                if new:
                    done.setdefault(path, []).extend(new)
                    changed.add(path)
            for path in sorted(changed):
                made, found = self._made(path, done[path], places, tree, polish)
                state.update(made)
                conflicts += found
            if not conflicts:
                conflicts += self._unresolved(changed, done, state)
            conflicts += self._replace(step, state, skipped)
            if conflicts:
                raise Conflicts(conflicts)
            self._require(step, state)
            files = {p: c for p, c in state.items() if before.get(p) != c}
            if files:
                commits.append(Commit(step, files))
        return commits

    def _places(self, tree, skipped):
        """The place of each part of each graft, and the conflicts."""
        finder = Places(tree, self.locked.version, self.locked.prints)
        places, conflicts = {}, []
        for path in sorted(self.grafts):
            wanted = [
                part
                for step in self.steps
                for part in step.parts.get(path, [])
                if (path, part) not in skipped
            ]
            if tree.get(path) == self.theirs[path]:
                places[path] = dict.fromkeys(wanted, path)
                continue
            found, errors = finder.find(path, self.sources[path], wanted)
            places[path] = found
            for part, error in errors.items():
                conflicts.append((error, path, [part]))
        return places, conflicts

    def _made(self, path, done, places, tree, polish):
        """What the modules become that these parts of a file go to."""
        text = self.sources[path]
        if path not in self.grafts:
            if path in tree:
                error = GraftError("upstream has a module of this name", path)
                return {}, [(error, path, parts(text, False))]
            return {path: subset(text, False, done).encode()}, []
        made, conflicts = {}, []
        for place in dict.fromkeys(places[path][part] for part in done):
            here = [part for part in done if places[path][part] == place]
            try:
                made[place] = self._merged(path, here, tree[place], polish)
            except GraftError as error:
                name = error.name
                fault = [p for p in here if name and p.concerns(name)]
                line = name and line_of(text, True, name)
                told = GraftError(error.message, path, line, name)
                conflicts.append((told, path, fault or here))
        return made, conflicts

    def _merged(self, path, here, upstream, polish):
        graft = subset(self.sources[path], True, here)
        theirs = decoded(upstream, f"upstream's {path}")
        text = _merge(theirs, graft, path).text
        wrapped = [part.target for part in here if part.how == "wraps "]
        text = polish(text, wrapped)
        parsed(text, path)
        return text.encode()

    def _unresolved(self, changed, done, state):
        """The imports of changed files that lead nowhere."""
        conflicts = []
        for path in sorted(changed):
            text, is_graft = self.sources[path], path in self.grafts
            for told in unresolved(subset(text, is_graft, done[path]), state):
                found = parts(text, False)
                if is_graft:  # Those that the import comes with.
                    found = [
                        part
                        for part in done[path]
                        if told in unresolved(subset(text, True, [part]), state)
                    ]
                error = GraftError(f"there is nothing for `{told}`", path)
                conflicts.append((error, path, found))
        return conflicts

    def _replace(self, step, state, skipped):
        """Changes what is no module; returns the conflicts."""
        conflicts = []
        for path, texts in step.replaces.items():
            content = state.get(path, b"").decode()
            for old, new in texts.items():
                if not content or (path, old) in skipped:
                    continue
                if content.count(old) != 1:
                    error = GraftError(
                        f"{step.file} replaces `{old}`, which is there "
                        f"{content.count(old)} times, not once",
                        path,
                    )
                    conflicts.append((error, path, [old]))
                    continue
                content = content.replace(old, new)
                state[path] = content.encode()
        return conflicts

    def _require(self, step, state):
        """Adds what the step's tests need to upstream's requirements."""
        content = state.get(REQUIREMENTS)
        if content is None:
            return
        lines = content.decode().splitlines()
        missing = [name for name in step.requires if name not in lines]
        if missing:
            text = "\n".join([*lines, *missing, ""])
            state[REQUIREMENTS] = text.encode()
