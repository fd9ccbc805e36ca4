"""The directories that the person works in: those that agents were given, the settings name, or changes were made in."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.app import App
from holdfast.call import Call
from holdfast.changes.model import is_beneath
from holdfast.errors import AccessDenied, InvalidPath, NotFound
from holdfast.folders.access.path_syntax import check_syntax
from holdfast.folders.service import Folders
from holdfast.text.display import display_name
from holdfast.text.path_address import path_at

MAX_ROOTS = 200


@dataclass(frozen=True, slots=True)
class KnownRoot:
    """A directory and how it is known: `server`, `client`, `settings` or `changes`, in that order."""

    path: str
    sources: tuple[str, ...]


def list_known_roots(app: App) -> list[KnownRoot]:
    """Return the known directories, also those that are not there any more; those given by hand come first."""
    sources: dict[str, list[str]] = {}
    connected = app.connected_roots()
    by_source = {
        "server": [path for path, is_servers in connected if is_servers],
        "client": [path for path, is_servers in connected if not is_servers],
        "settings": [os.path.realpath(Path(path).expanduser()) for path in app.settings.folders.roots],
        "changes": [*(job.root for job in app.organiser.jobs.running()), *app.changes.history.recent_roots()],
    }
    for source, paths in by_source.items():
        for path in dict.fromkeys(paths):
            sources.setdefault(path, []).append(source)
    return [KnownRoot(path, tuple(names)) for path, names in sources.items()][:MAX_ROOTS]


def folders_at(app: App, call: Call, *addresses: str) -> tuple[Folders, list[str]]:
    """Return the folders that hold some paths of the person, and the paths, decoded from their addresses.

    Each path must be absolute and lie in a known directory: InvalidPath or AccessDenied otherwise. Of several the
    innermost that exists is opened. AccessDenied also when a link has taken the place of a known directory.
    """
    paths = [path_at(address) for address in addresses]
    known = [root.path for root in list_known_roots(app)]
    roots = list(dict.fromkeys(_innermost(path, known) for path in paths))
    folders = app.folders_of(replace(call.caller, roots=tuple(roots), cwd="/"))
    if folders.jail.allowed_paths != roots:
        raise AccessDenied(f"Access denied: {display_name(roots[0])} is not the directory any more that it was.")
    return folders, paths


def folders_of_person(app: App, call: Call) -> Folders:
    """Return the folders of all known directories that exist and lie in no other. NotFound when there are none."""
    known = [root.path for root in list_known_roots(app) if os.path.isdir(root.path)]
    roots = [path for path in known if not is_beneath(path, [other for other in known if other != path])]
    if not roots:
        raise NotFound("No directory is known yet. Connect an agent with one, or name it in settings.folders.roots.")
    return app.folders_of(replace(call.caller, roots=tuple(roots), cwd="/"))


def _innermost(path: str, known: Sequence[str]) -> str:
    if not path.startswith("/"):
        raise InvalidPath(f"The path must be absolute, or a file: URI: {path[:200]!r}")
    check_syntax(path)
    if ".." in path.split("/"):
        raise InvalidPath("The path must not hold `..`; give it as it is.")
    above = [root for root in known if is_beneath(path, [root]) and os.path.isdir(root)]
    if not above:
        raise AccessDenied.outside(path)
    return max(above, key=len)
