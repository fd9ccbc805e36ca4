"""Looks over all of a root without opening a file: what there is to index, and what each file's status says."""

from dataclasses import dataclass, field

from holdfast.call import Call
from holdfast.folders.access.file_version import FileVersion
from holdfast.folders.access.jail import Jail
from holdfast.folders.finding.walk import EntryType, Walk, open_start
from holdfast.text.surrogates import has_lone_surrogate

WHOLE = "."


@dataclass(slots=True)
class RootScan:
    """Files by path beneath the root, with their look; the directories that were looked into; whether that is all.

    `unruled` are directories with too many ignore rules to follow: nothing in them is to be shown. `closed` are those
    that may not be opened, by their path beneath the root.
    """

    looks: dict[str, str] = field(default_factory=dict)
    directories: list[str] = field(default_factory=list)
    unruled: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    is_cut: bool = False


def scan_root(jail: Jail, call: Call, max_files: int) -> RootScan:
    """Return what the one root of a jail holds: no hidden files, none that are ignored, none behind links.

    A file whose name is no Unicode text, or that a caller could not name, is passed over. Raises Cancelled.
    """
    found = RootScan()
    with open_start(jail, WHOLE, ignore=True) as start:
        walk = Walk(jail, call, start, ignore=True)
        found.directories.append(start.path)
        prefix = start.path.rstrip("/") + "/"
        for folder, entries in walk:
            if folder.rules.is_cut:
                _pass_over(walk, found, f"{prefix}{folder.relative}".rstrip("/"), entries[-1][1])
                continue
            for name, kind in entries:
                if kind is EntryType.FILE and not name.startswith(".") and not has_lone_surrogate(name):
                    status = walk.look(folder, name)
                    if status is not None:
                        found.looks[f"/{folder.relative}{name}"] = FileVersion.from_stat(status).index_text
            name, kind = entries[-1]
            if kind is EntryType.DIRECTORY and (name.startswith(".") or has_lone_surrogate(name)):
                walk.prune()
            elif kind is EntryType.DIRECTORY:
                found.directories.append(f"{prefix}{folder.relative}{name}")
            if len(found.looks) > max_files:
                found.is_cut = True
                found.looks = dict(list(found.looks.items())[:max_files])
                break
        found.closed = [f"/{relative}" for relative in walk.closed]
    return found


def _pass_over(walk: Walk, found: RootScan, path: str, last: EntryType) -> None:
    if path not in found.unruled[-1:]:
        found.unruled.append(path)
    if last is EntryType.DIRECTORY:
        walk.prune()
