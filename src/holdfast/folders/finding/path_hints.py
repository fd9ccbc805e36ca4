"""Says what a caller may have meant by a path that is not there or not allowed.

A suggestion comes from listings by the caller's own jail, so it names nothing that a listing would not show. For a path
outside the allowed directories nothing is looked up: the text is the same whatever is there.
"""

import posixpath
import re
import unicodedata
from collections.abc import Sequence
from difflib import get_close_matches
from enum import IntEnum
from urllib.parse import unquote

from holdfast.errors import AccessDenied, HoldfastError, NotFound
from holdfast.folders.access.jail import Jail
from holdfast.folders.finding.walk import list_entries, open_start
from holdfast.text.decode import has_lone_surrogate
from holdfast.text.display import display_name

_MAX_ROOTS_NAMED = 10
_MAX_ROOTS_SEARCHED = 4
_MAX_LISTINGS = 24
_MAX_PARTS = 16
_MAX_FOLDED = 20_000
_MAX_COMPARED = 2_000
_MIN_SIMILARITY = 0.75
_URI = re.compile(r"file:(?://(?:localhost)?(?=/))?", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


MAX_HINTS = 5
"""Errors of one call with many paths that get a hint: each looks through directories."""


def add_path_hint(jail: Jail, error: HoldfastError) -> None:
    """Add to an error about a path what the caller needs for its next call: the allowed directories, or the nearest path.

    Errors about anything else stay as they are.
    """
    path = error.details.get("path")
    if not isinstance(path, str):
        return
    if isinstance(error, AccessDenied):
        error.message = f"{error.message}: {_describe_allowed(jail, path)}"
    elif isinstance(error, NotFound) or error.details.get("error_type") == "file_not_found":
        hint = _describe_nearest(jail, path)
        error.message = f"{error.message.rstrip('.')}. {hint}" if hint else error.message


def _describe_allowed(jail: Jail, path: str) -> str:
    """Return the allowed directories, and the path without its `..` if it lies in one of them then."""
    paths = jail.allowed_paths
    more = f" and {len(paths) - _MAX_ROOTS_NAMED} more" if len(paths) > _MAX_ROOTS_NAMED else ""
    allowed = ", ".join(map(display_name, paths[:_MAX_ROOTS_NAMED])) + more
    direct = _absolute(jail, path)
    if ".." in path.split("/") and any(direct == root or direct.startswith(f"{root.rstrip('/')}/") for root in paths):
        return f"{allowed}. A path must not leave them on its way: write {display_name(direct)}"
    return allowed


def _describe_nearest(jail: Jail, path: str) -> str:
    """Return which existing path the caller may have meant, and why the given one could not be it."""
    search = _Search(jail, path)
    suggestion = search.nearest()
    if suggestion is not None and _absolute(jail, suggestion) == _absolute(jail, path):
        return "It is a link, and what it points to is not there."
    near = (
        f"Did you mean {display_name(suggestion)}?" if suggestion is not None else search.describe_missing_directory()
    )
    base = display_name(jail.roots[0].path)
    if path.startswith("~"):
        return f"'~' is not expanded here. {near or f'Relative paths start at {base}.'}"
    if _URI.match(path):
        return f"Give a path, not a URI. {near or f'Relative paths start at {base}.'}"
    if _DRIVE.match(path) or "\\" in path:
        return f"Paths here are separated by '/' and have no drive. {near or f'Relative paths start at {base}.'}"
    return near or ("" if path.startswith("/") else f"Relative paths start at {base}.")


def _absolute(jail: Jail, path: str) -> str:
    return posixpath.normpath(posixpath.join(jail.roots[0].path, path))


class _Likeness(IntEnum):
    """How much a name may differ from the one that was given."""

    EQUAL = 0
    SPELLED_ALIKE = 1
    """But for case, blanks at its ends, and how its characters are composed."""
    SIMILAR = 2


class _Search:
    """Looks for one path, by a bounded number of listings."""

    def __init__(self, jail: Jail, path: str) -> None:
        self._jail = jail
        self._listings: dict[str, list[str]] = {}
        parts = _split(path)[:_MAX_PARTS]
        roots = [root.path for root in jail.roots[:_MAX_ROOTS_SEARCHED]]
        if _to_plain(path).startswith("/"):
            above = {root.path: _split(root.path) for root in jail.roots}
            self._whole = [(root, parts[len(up) :]) for root, up in above.items() if parts[: len(up)] == up]
        else:
            self._whole = [(root, parts) for root in roots]
        self._ends = [(root, parts[first:]) for first in range(1, len(parts)) for root in roots]

    def nearest(self) -> str | None:
        """Return the existing path that is most like this one: itself, its end beneath a root, or names spelled otherwise."""
        for likeness in _Likeness:
            for root, parts in [*self._whole, *(self._ends if likeness is not _Likeness.SIMILAR else ())]:
                names = self._resolve(root, parts, likeness)
                if len(names) == len(parts) > 0:
                    return self._path_text(root, names)
        return next((root for root, parts in self._whole if parts[-1:] == [posixpath.basename(root)]), None)

    def describe_missing_directory(self) -> str:
        """Return which directory of the path is missing, and the one it may have been; empty when only its last name is.

        A path that names a root on its way is given in its short form, even if its last name is missing there too.
        """
        for root, parts in self._whole:
            inside = parts[parts.index(posixpath.basename(root)) + 1 :] if posixpath.basename(root) in parts else []
            if inside and len(self._resolve(root, inside[:-1], _Likeness.EQUAL)) == len(inside) - 1:
                return f"Beneath {display_name(root)} the path is {display_name('/'.join(inside))}."
        for root, parts in self._whole[:1]:
            names = self._resolve(root, parts[:-1], _Likeness.EQUAL)
            if len(names) < len(parts) - 1:
                missing = display_name(self._path_text(root, parts[: len(names) + 1]))
                near = self._resolve(root, parts[: len(names) + 1], _Likeness.SIMILAR)
                instead = f", but {display_name(self._path_text(root, near))} is" if len(near) == len(names) + 1 else ""
                return f"{missing} is not there{instead}."
        return ""

    def _resolve(self, root: str, parts: Sequence[str], likeness: _Likeness) -> list[str]:
        """Return the existing names that are like these parts, up to the first part that none is like."""
        names: list[str] = []
        for part in parts:
            name = _nearest_name(part, self._list("/".join([root.rstrip("/"), *names]) or "/"), likeness)
            if name is None:
                break
            names.append(name)
        return names

    def _list(self, directory: str) -> list[str]:
        if directory not in self._listings:
            if len(self._listings) >= _MAX_LISTINGS:
                return []
            self._listings[directory] = self._read_names(directory)
        return self._listings[directory]

    def _read_names(self, directory: str) -> list[str]:
        try:
            with open_start(self._jail, directory, ignore=False) as start:
                entries = list_entries(self._jail, start.fd, self._jail.policy_in(start.root, start.folder))
                return [name for name, _ in entries if not has_lone_surrogate(name)]
        except (HoldfastError, OSError):
            return []

    def _path_text(self, root: str, names: Sequence[str]) -> str:
        is_first = root == self._jail.roots[0].path
        return "/".join(names) if is_first else "/".join([root.rstrip("/"), *names])


def _split(path: str) -> list[str]:
    """Return the names in a path, whatever form it has: POSIX, Windows, a URI, with `~` or quotes."""
    parts = [part for part in _to_plain(path).removeprefix("~").split("/") if part not in ("", ".")]
    straight: list[str] = []
    for part in parts:
        if part == "..":
            del straight[-1:]
        else:
            straight.append(part)
    return straight


def _to_plain(path: str) -> str:
    """Return a path with slashes between its names, without the scheme of a URI, quotes and blanks around it."""
    plain = unquote(_URI.sub("", path)) if _URI.match(path) else path
    return plain.strip().strip("\"'`").replace("\\", "/")


def _nearest_name(part: str, names: Sequence[str], likeness: _Likeness) -> str | None:
    if part in names:
        return part
    if likeness is _Likeness.EQUAL:
        return None
    folded = _fold(part)
    alike = next((name for name in names[:_MAX_FOLDED] if _fold(name) == folded), None)
    if alike is not None or likeness is _Likeness.SPELLED_ALIKE:
        return alike
    near = get_close_matches(part, names[:_MAX_COMPARED], n=1, cutoff=_MIN_SIMILARITY)
    return near[0] if near else None


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold().strip()
