"""Pure: the order of a plan's items, their batches, and the hash that an approval names."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

from holdfast.changes.model import Item, NodeType, Op

BATCH_ITEMS = 100
BATCH_DIRECTORIES = 100
"""A batch holds each of its directories open, so a plan that is spread wide has smaller batches."""

_ORDER = {Op.MKDIR: 0, Op.MOVE: 1, Op.RMDIR: 2}


def sort_items(items: Iterable[Item]) -> list[Item]:
    """Return items in the order of execution: directories are made first and removed last, units stay together."""
    items = list(items)
    heads: dict[str, int] = {}
    for item in items:
        if item.unit is not None:
            heads[item.unit] = min(item.position, heads.get(item.unit, item.position))
    if not heads:
        return sorted(items, key=lambda item: (_ORDER[item.op], item.position))
    return sorted(items, key=lambda item: (_ORDER[item.op], heads.get(item.unit or "", item.position), item.position))


def split_batches(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Yield the items in order, batch by batch; a directory that moves has, with its unit, a batch of its own."""
    batch: list[Item] = []
    parents: set[str] = set()
    units_with_directory = {item.unit for item in items if item.unit is not None and _is_directory_move(item)}
    was_alone = False
    for item in sort_items(items):
        is_alone = item.unit in units_with_directory or _is_directory_move(item)
        if batch and (item.unit is None or item.unit != batch[-1].unit):
            is_full = len(batch) >= BATCH_ITEMS or len(parents) >= BATCH_DIRECTORIES - 1
            if is_full or is_alone or was_alone or item.op is not batch[-1].op:
                yield batch
                batch, parents = [], set()
        was_alone = is_alone
        batch.append(item)
        parents.add(item.src_path.rpartition("/")[0])
        if item.dest_path:
            parents.add(item.dest_path.rpartition("/")[0])
    if batch:
        yield batch


def _is_directory_move(item: Item) -> bool:
    return item.node is NodeType.DIRECTORY and item.op is Op.MOVE


def plan_hash(folder: str, items: Iterable[Item]) -> str:
    """Return the hash of what a person approves: every item with its reason and the identity of its source."""
    digest = sha256(_bytes(folder))
    for item in sort_items(items):
        which = f"{item.op}\0{item.identity}\0{item.size_bytes}\0{item.mtime_ns}\0{item.composite_hash}"
        line = _bytes(f"{item.position}\0{which}\0{item.src_path}\0{item.dest_path}\0{item.reasoning}")
        if item.source_directory is not None or item.dest_directory is not None:
            inodes = (_inode(item.source_directory), _inode(item.dest_directory))
            line += _bytes(f"\0{inodes}\0{item.confidence}")
        digest.update(b"\0%d\0%b" % (len(line), line))
    return digest.hexdigest()


def _inode(directory: str | None) -> str | None:
    return None if directory is None else directory.rpartition(":")[2]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
