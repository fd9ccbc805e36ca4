"""Lists one directory, a line for each entry: its type, its name and, on request, its size."""

import os
import stat
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.call import Call
from holdfast.errors import HoldfastError
from holdfast.folders.access.jail import Jail
from holdfast.folders.finding.walk import EntryType, WalkStart, list_entries, open_start
from holdfast.folders.service import Folders
from holdfast.text.budget import Page, decode_cursor, invalid_cursor, more_notice, read_position
from holdfast.text.display import are_plain, display_name, format_size

EMPTY = "The directory is empty."
_BATCH = 256
_NAME_COLUMN = 30
_SIZE_COLUMN = 10


@dataclass(frozen=True, slots=True)
class SizedEntry:
    """An entry with its size; only regular files have one."""

    name: str
    kind: EntryType
    size: int


def list_directory(folders: Folders, call: Call, path: str, cursor: str | None = None) -> str:
    """Return `[FILE] name`, `[DIR] name` or `[LINK] name` lines, sorted by name, up to the token budget."""
    after = _cursor_text(cursor, "after")
    with open_start(folders.jail, path, ignore=False) as start:
        entries = list_entries(folders.jail, start.fd, folders.jail.policy_in(start.root, start.folder))
        first = bisect_right(entries, os.fsencode(after), key=lambda entry: os.fsencode(entry[0])) if after else 0
        page = Page(folders.settings.max_answer_tokens)
        for index in range(first, len(entries), _BATCH):
            call.check()
            batch = entries[index : index + _BATCH]
            added = page.add_all(_lines(folders.jail, start, batch))
            if added < len(batch):
                at = index + added
                return page.text(
                    f"[{len(entries) - at} of {len(entries)} entries left]", more_notice({"after": entries[at - 1][0]})
                )
    return page.text() or EMPTY


def list_with_sizes(folders: Folders, call: Call, path: str, sort_by: str, cursor: str | None = None) -> str:
    """Return the listing with sizes and a line of totals, sorted by name or by size with the biggest first."""
    skip = read_position(cursor, "skip") or 0
    with open_start(folders.jail, path, ignore=False) as start:
        entries = _read_sizes(folders.jail, call, start)
    if sort_by == "size":
        entries.sort(key=lambda entry: -entry.size)
    page = Page(folders.settings.max_answer_tokens)
    for index, entry in enumerate(entries[skip:], skip):
        size = format_size(entry.size) if entry.kind is EntryType.FILE else ""
        if not page.add(
            f"{_label(entry.kind)} {display_name(entry.name).ljust(_NAME_COLUMN)} {size.rjust(_SIZE_COLUMN)}".rstrip()
        ):
            return page.text(*_totals(entries), more_notice({"skip": index}))
    return page.text(*_totals(entries))


def _lines(jail: Jail, start: WalkStart, entries: Sequence[tuple[str, EntryType]]) -> list[str]:
    if are_plain([name for name, _ in entries]):
        return [
            f"[FILE] {name}" if kind is EntryType.FILE else f"{_label(kind)} {name}{_target(jail, start, name, kind)}"
            for name, kind in entries
        ]
    return [f"{_label(kind)} {display_name(name)}{_target(jail, start, name, kind)}" for name, kind in entries]


def _label(kind: EntryType) -> str:
    if kind is EntryType.DIRECTORY:
        return "[DIR]"
    return "[LINK]" if kind is EntryType.LINK else "[FILE]"


def _target(jail: Jail, start: WalkStart, name: str, kind: EntryType) -> str:
    """Return ` -> target` for a link that the jail resolves; empty for a link that leads outside, and for anything else."""
    if kind is not EntryType.LINK:
        return ""
    try:
        with jail.place(f"{start.path}/{name}", follow=True) as place:
            return f" -> {display_name(place.path)}"
    except (HoldfastError, OSError):
        return ""


def _read_sizes(jail: Jail, call: Call, start: WalkStart) -> list[SizedEntry]:
    entries: list[SizedEntry] = []
    for index, (name, kind) in enumerate(list_entries(jail, start.fd, jail.policy_in(start.root, start.folder))):
        if index % _BATCH == 0:
            call.check()
        try:
            status = os.stat(name, dir_fd=start.fd, follow_symlinks=False)
        except OSError:
            continue
        entries.append(SizedEntry(name, kind, status.st_size if stat.S_ISREG(status.st_mode) else 0))
    return entries


def _totals(entries: Sequence[SizedEntry]) -> list[str]:
    kinds = [entry.kind for entry in entries]
    directories, links = kinds.count(EntryType.DIRECTORY), kinds.count(EntryType.LINK)
    totals = f"Total: {len(kinds) - directories - links} files, {directories} directories"
    return [
        f"\n{totals}, {links} links" if links else f"\n{totals}",
        f"Combined size: {format_size(sum(entry.size for entry in entries))}",
    ]


def _cursor_text(cursor: str | None, key: str) -> str:
    if cursor is None:
        return ""
    value = decode_cursor(cursor).get(key)
    if not isinstance(value, str) or not value:
        raise invalid_cursor()
    return value
