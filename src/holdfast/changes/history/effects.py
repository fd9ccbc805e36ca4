"""Describes what became of files: by one step of a change, or since a moment before many changes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from holdfast.changes.history.contents import ContentSource
from holdfast.changes.history.net_effect import NetFile
from holdfast.changes.model import Item, NodeType, Op


class FileEffectKind(StrEnum):
    """What became of an entry."""

    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class FileEffect:
    """What became of one file, link or directory: `path` is where it is, or was when it is deleted.

    `former_path` is another path that it had before. A size is None where nothing was, or where nothing is known.
    `note` says what the diff does not.
    """

    kind: FileEffectKind
    path: str
    node: NodeType
    former_path: str | None = None
    before_bytes: int | None = None
    after_bytes: int | None = None
    diff: str = ""
    note: str = ""


def effect_of_item(source: ContentSource, item: Item, *, with_diff: bool) -> FileEffect:
    """Return what one step of a change did to its entry."""
    kind, path = _KINDS.get(item.op, FileEffectKind.CHANGED), item.src_path
    if item.op is Op.MOVE:
        return FileEffect(kind, item.dest_path or path, item.node, path, item.size_bytes, item.size_bytes)
    if item.op is Op.SAVE:
        return FileEffect(FileEffectKind.CHANGED, path, item.node, note="another program saved it; its bytes are kept")
    if item.op is Op.REPLACE and item.before_hash is None:
        kind = FileEffectKind.CREATED
    if item.node is NodeType.DIRECTORY:
        return FileEffect(kind, path, item.node)
    before, after = source.find_image(item.before_hash), source.find_image(item.after_hash)
    if after is None and item.after_hash is not None:
        present = source.read_present(path)
        after = present if present is not None and present.hash == item.after_hash else None
    sizes = (before.size_bytes if before else None, after.size_bytes if after else None)
    effect = FileEffect(kind, path, item.node, None, *sizes)
    missing = ["before"] if before is None and item.before_hash is not None else []
    missing += ["after"] if after is None and item.after_hash is not None else []
    if missing or not with_diff:
        return replace(effect, note=_note_on_missing(missing))
    diff, note = source.compare(before, after, path, path)
    return replace(effect, diff=diff, note=note)


_KINDS = {
    Op.REMOVE: FileEffectKind.DELETED,
    Op.RMDIR: FileEffectKind.DELETED,
    Op.RESTORE: FileEffectKind.CREATED,
    Op.MKDIR: FileEffectKind.CREATED,
    Op.MOVE: FileEffectKind.MOVED,
}


def effect_of_failure(item: Item) -> FileEffect:
    """Return a step of a change that was not made, with the reason."""
    return FileEffect(
        _KINDS.get(item.op, FileEffectKind.CHANGED), item.src_path, item.node, note=f"not done: {item.error_msg}"
    )


def effect_of_net_file(source: ContentSource, file: NetFile) -> FileEffect | None:
    """Return what became of an entry, by what is on the disk now; None when that is nothing."""
    node = source.node_at(file.present_path) if file.present_path is not None else None
    if node is not None and node is not file.node and file.former_path is not None:
        node = None
    present_path = file.present_path if node is not None else None
    path = present_path or file.former_path
    if path is None or (file.former_path is None and present_path is None):
        return None
    kind = _net_kind(file, present_path)
    former_path = file.former_path if kind is FileEffectKind.MOVED else None
    effect = FileEffect(kind, path, node or file.node, former_path)
    if effect.node is NodeType.DIRECTORY or (file.hash is None and kind is FileEffectKind.MOVED):
        return None if kind is FileEffectKind.CHANGED else effect
    after = source.read_present(present_path) if present_path is not None else None
    if present_path is not None and after is None:
        return replace(effect, note="it cannot be read now")
    if after is not None and after.hash == file.hash:
        return effect if kind is FileEffectKind.MOVED else None
    before = source.find_image(file.hash)
    before_bytes, after_bytes = (content.size_bytes if content else None for content in (before, after))
    if before is None and file.former_path is not None:
        return replace(effect, after_bytes=after_bytes, note=_note_on_missing(["before"]))
    diff, note = source.compare(before, after, file.former_path or path, path)
    return replace(effect, before_bytes=before_bytes, after_bytes=after_bytes, diff=diff, note=note)


def _net_kind(file: NetFile, present_path: str | None) -> FileEffectKind:
    if file.former_path is None:
        return FileEffectKind.CREATED
    if present_path is None:
        return FileEffectKind.DELETED
    return FileEffectKind.CHANGED if present_path == file.former_path else FileEffectKind.MOVED


def _note_on_missing(moments: Sequence[str]) -> str:
    return f"its bytes {' and '.join(moments)} are no longer kept" if moments else ""
