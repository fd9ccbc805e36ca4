"""Pure: which access the rules of the policy give to a path, and which rule decides: the strictest that matches.

A pattern is matched against the path beneath the rule's root, or beneath each allowed directory when the rule names none;
without a slash it holds at any depth. What a pattern matches it covers with everything below. Names are compared without
regard to case, Unicode form and invisible characters, since some file systems do not regard them either.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from fnmatch import fnmatchcase
from operator import attrgetter

from holdfast.errors import InvalidArgument, InvalidQuery
from holdfast.text.glob import Glob, State, Test, compile_segment, has_magic

_MAX_CACHED_FOLDERS = 10_000
_ONE_CHAR = frozenset("?[")


class Access(IntEnum):
    """What a client may do with a path, from free to strict."""

    ALLOW = 0
    REVIEW = 1
    READ_ONLY = 2
    DENY = 3

    def __str__(self) -> str:
        return self.name.lower().replace("_", "-")


ACCESS_BY_NAME = {str(access): access for access in Access}


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule. `roots` are the real paths of its root, none for every allowed directory; `source` is where it stands.

    `glob` is empty for everything beneath the root, `client` for every client.
    """

    number: int
    access: Access
    roots: tuple[str, ...] = ()
    glob: str = ""
    client: str = ""
    source: str = ""

    @property
    def is_anchored(self) -> bool:
        """Return whether the pattern begins at the root; any other matches at any depth."""
        return "/" in self.glob.removeprefix("./").rstrip("/")

    def check(self) -> None:
        """Raise InvalidArgument when the pattern cannot be used."""
        pattern = self.glob
        if pattern.startswith("!"):
            raise InvalidArgument(
                f"{self.source}: a glob cannot begin with '!'; the strictest rule wins, so name the rest."
            )
        if pattern and (not pattern.strip("/") or "\0" in pattern or ".." in pattern.split("/")):
            raise InvalidArgument(f"{self.source}: this glob matches no path beneath a directory: {pattern!r:.100}")
        try:
            self.globs()
        except InvalidQuery as fault:
            raise InvalidArgument(f"{self.source}: {fault.message}") from None

    def globs(self) -> tuple[State | None, State | None]:
        """Return the pattern as it is compared with folded names, and as written where folding may change its meaning."""
        if not self.glob:
            return None, None
        body = self.glob.removeprefix("./").rstrip("/")
        anchored = body.lstrip("/") if self.is_anchored else f"**/{body}"
        written = Glob(anchored).start if _ONE_CHAR & set(anchored) else None
        return Glob(fold_name(anchored)).start, written

    def binds(self, client: str) -> bool:
        """Return whether the rule holds for a client that declared this name."""
        return not self.client or fnmatchcase(client.casefold(), self.client.casefold())


def fold_name(name: str) -> str:
    """Return a name as file systems compare it that ignore case, Unicode form and invisible characters."""
    if name.isascii():
        return name.lower()
    decomposed = unicodedata.normalize("NFD", name).casefold()
    return "".join(char for char in decomposed if unicodedata.category(char) != "Cf")


@dataclass(frozen=True, slots=True)
class _Track:
    """How far one rule has been followed on the way down to a directory: the names still to pass, then the pattern.

    `folded` is compared with folded names, `written` with names as they are. Without a pattern the rule covers its root.
    """

    rule: PolicyRule
    prefix: tuple[str, ...]
    folded: State | None
    written: State | None

    @property
    def is_for_all(self) -> bool:
        """Return whether the rule has no pattern."""
        return self.folded is None and self.written is None

    def enter(self, name: str) -> "_Track | None":
        if self.prefix:
            is_on_way = self.prefix[0] == fold_name(name)
            return _Track(self.rule, self.prefix[1:], self.folded, self.written) if is_on_way else None
        folded, written = _enter(self.folded, fold_name(name)), _enter(self.written, name)
        return _Track(self.rule, (), folded, written) if folded or written else None


def _enter(state: State | None, name: str) -> State | None:
    below = None if state is None else state.enter(name)
    return None if below is None or below.is_dead else below


class _NameRules:
    """The rules of one access that a name in one directory may match, sorted by how it is compared."""

    def __init__(self) -> None:
        self.exact: dict[str, PolicyRule] = {}
        self.starts: list[tuple[str, PolicyRule]] = []
        self.ends: list[tuple[str, PolicyRule]] = []
        self.tests: list[tuple[Test, PolicyRule]] = []
        self.written_tests: list[tuple[Test, PolicyRule]] = []
        self._all_starts: tuple[str, ...] = ()
        self._all_ends: tuple[str, ...] = ()

    def add(self, segment: str, rule: PolicyRule, *, is_written: bool) -> None:
        if is_written:
            self.written_tests.append((compile_segment(segment), rule))
        elif not has_magic(segment):
            self.exact.setdefault(segment, rule)
        elif not has_magic(segment.lstrip("*")) and segment[1:2] != "(":
            self.ends.append((segment.lstrip("*"), rule))
        elif not has_magic(segment.rstrip("*")):
            self.starts.append((segment.rstrip("*"), rule))
        else:
            self.tests.append((compile_segment(segment), rule))
        self._all_starts = tuple(text for text, _ in self.starts)
        self._all_ends = tuple(text for text, _ in self.ends)

    def may_match(self, name: str, folded: str) -> bool:
        return (
            folded in self.exact
            or folded.endswith(self._all_ends)
            or folded.startswith(self._all_starts)
            or any(test(folded) for test, _ in self.tests)
            or any(test(name) for test, _ in self.written_tests)
        )

    def find(self, name: str, folded: str) -> PolicyRule | None:
        """Return the first rule that matches a name."""
        if not self.may_match(name, folded):
            return None
        matching = [rule for text, rule in self.starts if folded.startswith(text)]
        matching += [rule for text, rule in self.ends if folded.endswith(text)]
        matching += [rule for test, rule in self.tests if test(folded)]
        matching += [rule for test, rule in self.written_tests if test(name)]
        if folded in self.exact:
            matching.append(self.exact[folded])
        return min(matching, key=attrgetter("number"))


class FolderPolicy:
    """The policy in one directory: `inherited` is the rule that covers all of it, None when no rule does."""

    __slots__ = ("_by_access", "_tracks", "inherited")

    def __init__(self, inherited: PolicyRule | None, tracks: Iterable[_Track]) -> None:
        self.inherited = inherited
        lowest = Access.ALLOW if inherited is None else inherited.access
        self._tracks = tuple(track for track in tracks if track.rule.access > lowest)
        self._by_access: list[_NameRules] | None = None

    @property
    def is_open(self) -> bool:
        """Return whether no rule holds for anything here or below."""
        return self.inherited is None and not self._tracks

    @property
    def is_denied(self) -> bool:
        """Return whether everything here is hidden."""
        return self.inherited is not None and self.inherited.access is Access.DENY

    @property
    def may_deny(self) -> bool:
        """Return whether something here or below may be hidden."""
        return self.is_denied or any(track.rule.access is Access.DENY for track in self._tracks)

    def rule_for(self, name: str) -> PolicyRule | None:
        """Return the rule that decides on an entry of this directory, None when it is free."""
        if self._tracks:
            folded = fold_name(name)
            for rules in self._rules():
                rule = rules.find(name, folded)
                if rule is not None:
                    return rule
        return self.inherited

    def hides(self, name: str) -> bool:
        """Return whether an entry of this directory does not exist for the client."""
        rule = self.rule_for(name)
        return rule is not None and rule.access is Access.DENY

    def hidden_among(self, names: Sequence[str]) -> frozenset[str]:
        """Return the names that do not exist for the client."""
        if self.is_denied:
            return frozenset(names)
        if not self.may_deny or not names:
            return frozenset()
        denying = self._rules()[0]
        joined = "\0".join(names)
        folded_names = joined.lower().split("\0") if joined.isascii() else list(map(fold_name, names))
        return frozenset(
            name for name, folded in zip(names, folded_names, strict=True) if denying.may_match(name, folded)
        )

    def enter(self, name: str) -> "FolderPolicy":
        """Return the policy in a directory that lies in this one."""
        if self.is_denied or not self._tracks:
            return self
        return FolderPolicy(self.rule_for(name), filter(None, (track.enter(name) for track in self._tracks)))

    def _rules(self) -> "list[_NameRules]":
        """Return the rules by access, the strictest first; only the first may hide."""
        if self._by_access is None:
            by_access = {access: _NameRules() for access in (Access.DENY, Access.READ_ONLY, Access.REVIEW)}
            for track in self._tracks:
                for segment, is_written in _segments_of(track):
                    by_access[track.rule.access].add(segment, track.rule, is_written=is_written)
            self._by_access = list(by_access.values())
        return self._by_access


def _segments_of(track: _Track) -> Iterator[tuple[str, bool]]:
    """Yield the patterns that an entry of this directory may match, and whether each is for names as they are written."""
    if not track.prefix:
        for state in (track.folded, track.written):
            for segment in () if state is None else state.last_segments():
                yield ("*" if segment == "**" else segment), state is track.written
    elif len(track.prefix) == 1 and track.is_for_all:
        yield _escape(track.prefix[0]), False


def _escape(name: str) -> str:
    """Return a pattern that matches nothing but a name."""
    return "".join(f"\\{char}" if char in "*?[]\\(){}!@+" else char for char in name) if has_magic(name) else name


def rules_near(rules: Sequence[PolicyRule], allowed: Sequence[str]) -> tuple[PolicyRule, ...]:
    """Return the rules that can hold for something beneath the allowed directories."""

    def is_near(root: str) -> bool:
        above = root.rstrip("/") + "/"
        return any(
            f"{path.rstrip('/')}/".startswith(above) or root.startswith(path.rstrip("/") + "/") for path in allowed
        )

    return tuple(rule for rule in rules if not rule.roots or any(map(is_near, rule.roots)))


class Policy:
    """The rules that bind one client, for the allowed directories of its connection. Safe to share between threads."""

    def __init__(self, rules: Sequence[PolicyRule], allowed: Sequence[str]) -> None:
        tracks = [
            _Track(rule, tuple(map(fold_name, _names(root))), *rule.globs())
            for rule in rules
            for root in dict.fromkeys(rule.roots or allowed)
        ]
        covering = [track.rule for track in tracks if not track.prefix and track.is_for_all]
        top = max(covering, key=lambda rule: (rule.access, -rule.number), default=None)
        self._folders = {"/": FolderPolicy(top, tracks)}

    def folder(self, path: str) -> FolderPolicy:
        """Return the policy in a directory, by its real absolute path."""
        cached = self._folders
        if path in cached:
            return cached[path]
        names = _names(path)
        paths = ["/", *("/" + "/".join(names[: depth + 1]) for depth in range(len(names)))]
        known = max(depth for depth, above in enumerate(paths) if above in cached)
        policy = cached[paths[known]]
        for depth in range(known, len(names)):
            policy = policy.enter(names[depth])
            self._keep(paths[depth + 1], policy)
        return policy

    def rule_of(self, path: str) -> PolicyRule | None:
        """Return the rule that decides on a real absolute path, None when it is free."""
        folder, _, name = path.rstrip("/").rpartition("/")
        return self.folder(folder or "/").rule_for(name) if name else self._folders["/"].inherited

    def hides(self, path: str) -> bool:
        """Return whether a real absolute path does not exist for the client."""
        rule = self.rule_of(path)
        return rule is not None and rule.access is Access.DENY

    def _keep(self, path: str, folder: FolderPolicy) -> None:
        if len(self._folders) >= _MAX_CACHED_FOLDERS:
            # Replaced, not emptied: other threads may be looking something up in it.
            self._folders = {"/": self._folders["/"]}
        self._folders[path] = folder


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]
