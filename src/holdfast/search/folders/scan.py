"""Scans a root without opening a file: which files there are to index, and the version of each."""

from dataclasses import dataclass, field

from holdfast.call import Call
from holdfast.folders.access.file_version import FileVersion
from holdfast.folders.access.jail import Jail
from holdfast.folders.finding.walk import EntryType, Walk, open_start
from holdfast.text.decode import has_lone_surrogate


@dataclass(slots=True)
class RootScan:
    """File versions by path beneath the root, and the directories that were scanned.

    `unruled` are directories with more ignore rules than are followed: nothing in them may be shown. `unopened` are
    directories that may not be opened, by their path beneath the root. `is_truncated` says that there are more files.
    """

    versions: dict[str, str] = field(default_factory=dict)
    directories: list[str] = field(default_factory=list)
    unruled: list[str] = field(default_factory=list)
    unopened: list[str] = field(default_factory=list)
    is_truncated: bool = False


def scan_root(jail: Jail, call: Call, max_files: int) -> RootScan:
    """Return the files of the one root of a jail, without hidden files, ignored files and what is behind links.

    Names with a lone surrogate, and names that no caller could give, are left out. Raises Cancelled.
    """
    scan = RootScan()
    with open_start(jail, ".", ignore=True) as start:
        walk = Walk(jail, call, start, ignore=True)
        scan.directories.append(start.path)
        prefix = start.path.rstrip("/") + "/"
        for folder, entries in walk:
            last_name, last_kind = entries[-1]
            if folder.rules.is_cut:
                path = f"{prefix}{folder.relative}".rstrip("/")
                if path not in scan.unruled[-1:]:
                    scan.unruled.append(path)
                if last_kind is EntryType.DIRECTORY:
                    walk.prune()
                continue
            for name, kind in entries:
                if kind is EntryType.FILE and not name.startswith(".") and not has_lone_surrogate(name):
                    status = walk.stat(folder, name)
                    if status is not None:
                        scan.versions[f"/{folder.relative}{name}"] = FileVersion.from_stat(status).index_text
            if last_kind is EntryType.DIRECTORY and (last_name.startswith(".") or has_lone_surrogate(last_name)):
                walk.prune()
            elif last_kind is EntryType.DIRECTORY:
                scan.directories.append(f"{prefix}{folder.relative}{last_name}")
            if len(scan.versions) > max_files:
                scan.is_truncated = True
                scan.versions = dict(list(scan.versions.items())[:max_files])
                break
        scan.unopened = [f"/{relative}" for relative in walk.unreadable]
    return scan
