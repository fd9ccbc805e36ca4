"""Pure: the model of a change: plans, their items, which status may follow which, before-images and outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from holdfast.auth.context import ClientInfo
from holdfast.errors import HoldfastError


class ChangeKind(StrEnum):
    """What a change does, in the words of the caller."""

    WRITE = "write"
    EDIT = "edit"
    APPEND = "append"
    MOVE = "move"
    DELETE = "delete"
    MKDIR = "mkdir"
    UNDO = "undo"
    ORGANISE = "organise"
    REVIEW = "review"


class PlanStatus(StrEnum):
    """CREATED → APPROVED → RUNNING → EXECUTED | FAILED; also CANCELLED and UNDONE. `PLAN_NEXT` has the table."""

    CREATED = "CREATED"
    APPROVED = "APPROVED"
    RUNNING = "RUNNING"
    EXECUTED = "EXECUTED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    UNDONE = "UNDONE"


class ItemStatus(StrEnum):
    """PENDING → DONE | SKIPPED | ERROR; also UNDONE."""

    PENDING = "PENDING"
    DONE = "DONE"
    SKIPPED = "SKIPPED"
    ERROR = "ERROR"
    UNDONE = "UNDONE"


class Op(StrEnum):
    """What one item does to one path; each has its reverse in the same list, so an undo is a change like any other.

    REPLACE replaces the content of a file; REMOVE and RESTORE remove and restore a file, link or directory of a tree
    whose top is the first item; SAVE records bytes of another program that were saved.
    """

    REPLACE = "replace"
    REMOVE = "remove"
    RESTORE = "restore"
    MOVE = "move"
    MKDIR = "mkdir"
    RMDIR = "rmdir"
    SAVE = "kept"


class NodeType(StrEnum):
    """The type of a directory entry."""

    FILE = "file"
    DIRECTORY = "dir"
    LINK = "link"


MIN_PACKED_BYTES = 4096
"""A smaller before-image stays as it is."""


@dataclass(frozen=True, slots=True)
class Image:
    """A before-image, bytes kept under their SHA-256: inside the journal (`data`) or as a file of the image store (`file`).

    What is stored of a packed one is compressed. With a `base_hash` it is only what differs from that image, between its
    first `prefix_bytes` and its last `suffix_bytes`.
    """

    hash: str
    size_bytes: int
    data: bytes | None = None
    file: str | None = None
    stored_bytes: int = 0
    is_packed: bool = False
    base_hash: str | None = None
    prefix_bytes: int = 0
    suffix_bytes: int = 0


@dataclass(frozen=True, slots=True)
class RootUsage:
    """What the before-images of one allowed directory take up: all of them, and the oldest of each path."""

    used_bytes: int = 0
    oldest_bytes: int = 0


class Item(NamedTuple):
    """One step of a plan. `before_hash` is the content before it, `after_hash` the content after; None means no file.

    `identity`, size, times and `composite_hash` identify the source. For a copy to another device, `temp_name` is its
    temporary name, `dest_identity` the copy and `quarantine_path` where its source is kept; `reverses` is the position
    of the item that an undo reverses. Moves with the same `unit` are made together or not at all. `source_directory` and
    `dest_directory` are the identities of the directories that a plan was made for, None where there was none.
    """

    op: Op
    src_path: str
    dest_path: str | None = None
    node: NodeType = NodeType.FILE
    before_hash: str | None = None
    after_hash: str | None = None
    size_bytes: int = 0
    mode: int = 0
    uid: int = -1
    gid: int = -1
    mtime_ns: int = 0
    identity: str | None = None
    status: ItemStatus = ItemStatus.PENDING
    error_msg: str | None = None
    position: int = 0
    reasoning: str | None = None
    confidence: float | None = None
    ctime_ns: int = 0
    composite_hash: str | None = None
    xattrs: str | None = None
    temp_name: str | None = None
    quarantine_path: str | None = None
    intended_at: str | None = None
    reverses: int | None = None
    dest_identity: str | None = None
    unit: str | None = None
    source_directory: str | None = None
    dest_directory: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A change. `seq` orders changes; times are only shown. `temp_name` is the temporary name that a crash may leave.

    `other_root` is set when a move goes from one allowed directory to another. A `stepwise` plan is executed item by
    item, in batches; `folder` is the folder it was made for, and its approval holds for `approved_hash`. `client` is
    the program that made the change: the one that executed it, where that is not the one that made the plan.
    """

    id: str
    kind: ChangeKind
    root_dir: str
    items: tuple[Item, ...]
    created_at: str
    other_root: str | None = None
    temp_name: str | None = None
    undoes: str | None = None
    status: PlanStatus = PlanStatus.RUNNING
    executed_at: str | None = None
    seq: int = 0
    stepwise: bool = False
    folder: str | None = None
    approved_hash: str | None = None
    approved_by: str | None = None
    approved_at: str | None = None
    client: ClientInfo = field(default=ClientInfo())

    @property
    def first(self) -> Item:
        """Return the first item: the file, or the top of the tree."""
        return self.items[0]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a plan ended. Items get `item_status`, except those in `exceptions`, by position. `saved` are foreign bytes."""

    status: PlanStatus
    item_status: ItemStatus
    message: str | None = None
    exceptions: dict[int, tuple[ItemStatus, str | None]] = field(default_factory=dict)
    identity: str | None = None
    saved: Item | None = None

    @classmethod
    def done(cls, identity: str | None = None) -> "Outcome":
        """Return the outcome of a change that was made."""
        return cls(PlanStatus.EXECUTED, ItemStatus.DONE, identity=identity)

    @classmethod
    def failed(cls, message: str, saved: Item | None = None) -> "Outcome":
        """Return the outcome of a change that was not made; `saved` are another program's bytes that it saved on the way."""
        return cls(PlanStatus.FAILED, ItemStatus.ERROR, message, saved=saved)


@dataclass(frozen=True, slots=True)
class Change:
    """A change as lists show it; `size_bytes` are those of its files as they were before."""

    seq: int
    id: str
    kind: ChangeKind
    status: PlanStatus
    path: str
    dest_path: str | None
    items: int
    created_at: str
    undoes: str | None
    images_missing: int
    done: int = 0
    saved: int = 0
    client: ClientInfo = field(default=ClientInfo())
    executed_at: str | None = None
    size_bytes: int = 0

    @property
    def at(self) -> str:
        """Return when the change was made; one that is not finished, when it was begun."""
        return self.executed_at or self.created_at

    @property
    def is_in_effect(self) -> bool:
        """Return whether anything of the change is in effect."""
        return self.status is PlanStatus.EXECUTED or (self.status is not PlanStatus.UNDONE and self.done > 0)

    @property
    def undoable(self) -> bool:
        """Return whether an undo restores something: the change, or another program's bytes that it saved."""
        return self.images_missing == 0 and (self.is_in_effect or self.saved > 0)


@dataclass(frozen=True, slots=True)
class PlanOverview:
    """A plan as `list_plans` shows it: its folder, and how many of its moves have which status."""

    seq: int
    id: str
    status: PlanStatus
    folder: str
    created_at: str
    executed_at: str | None
    moves: dict[ItemStatus, int]
    roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """The source of a move to another device, kept in quarantine; `roots` are those of its plan."""

    plan_id: str
    position: int
    path: str
    roots: tuple[str, ...]


class ItemOutcome(NamedTuple):
    """How one item of a stepwise plan ended; `identity` is that of its copy on another device."""

    position: int
    status: ItemStatus
    message: str | None = None
    identity: str | None = None


@dataclass(frozen=True, slots=True)
class UndoResult:
    """The result of an undo: the id of the change that undid the plan, None when the plan was undone before.

    For a stepwise plan, `back` is how many moves were undone, and `stayed` are the moves that were not, each with the
    reason; their `src_path` is where the file is.
    """

    plan: Plan
    change_id: str | None
    back: int = 0
    stayed: tuple[Item, ...] = ()


def share_of(cap_bytes: int, roots: int) -> int:
    """Return the part of the cap on before-images that is each root's own."""
    return cap_bytes // max(1, roots)


def is_beneath(path: str, roots: Sequence[str]) -> bool:
    """Return whether a path is one of the roots or lies inside one."""
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)


def reverse_items(items: Sequence[Item]) -> tuple[Item, ...]:
    """Return the items that undo these, in the order of execution.

    A tree keeps its order, top first; `Removals` knows at which end to begin.
    """
    done_items = [
        item for item in items if item.status in (ItemStatus.DONE, ItemStatus.UNDONE) and item.op is not Op.SAVE
    ]
    if done_items and done_items[0].op in (Op.MKDIR, Op.RMDIR):
        done_items.reverse()
    return tuple(_reverse_item(item) for item in done_items)


def _reverse_item(item: Item) -> Item:
    if item.op is Op.REPLACE and item.before_hash is None:
        return _copy(item, Op.REMOVE, before=item.after_hash, after=None)
    if item.op is Op.REPLACE:
        return _copy(item, Op.REPLACE, before=item.after_hash, after=item.before_hash)
    if item.op is Op.REMOVE:
        return _copy(item, Op.RESTORE, before=None, after=item.before_hash)
    if item.op is Op.RESTORE:
        return _copy(item, Op.REMOVE, before=item.after_hash, after=None)
    if item.op is Op.MOVE:
        back = item.dest_path or item.src_path
        return _copy(item, Op.MOVE, item.before_hash, item.after_hash, src=back, dest=item.src_path)
    return _copy(item, Op.RMDIR if item.op is Op.MKDIR else Op.MKDIR, None, None)


def _copy(
    item: Item, op: Op, before: str | None, after: str | None, *, src: str | None = None, dest: str | None = None
) -> Item:
    return Item(
        op=op,
        src_path=src or item.src_path,
        dest_path=dest,
        node=item.node,
        before_hash=before,
        after_hash=after,
        size_bytes=item.size_bytes,
        mode=item.mode,
        uid=item.uid,
        gid=item.gid,
        mtime_ns=item.mtime_ns,
        identity=item.identity,
        xattrs=item.xattrs,
    )


class ChangeAbandoned(Exception):
    """Raised by the work of a change that changed nothing; has the error, and foreign bytes that were saved."""

    def __init__(self, error: HoldfastError, saved: Item | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.saved = saved


PLAN_NEXT: Mapping[PlanStatus, frozenset[PlanStatus]] = {
    PlanStatus.CREATED: frozenset({PlanStatus.APPROVED, PlanStatus.CANCELLED}),
    PlanStatus.APPROVED: frozenset({PlanStatus.RUNNING, PlanStatus.CANCELLED}),
    PlanStatus.RUNNING: frozenset({PlanStatus.EXECUTED, PlanStatus.FAILED, PlanStatus.UNDONE, PlanStatus.CANCELLED}),
    PlanStatus.EXECUTED: frozenset({PlanStatus.UNDONE}),
    PlanStatus.FAILED: frozenset({PlanStatus.RUNNING, PlanStatus.UNDONE}),
    PlanStatus.CANCELLED: frozenset(),
    PlanStatus.UNDONE: frozenset({PlanStatus.EXECUTED, PlanStatus.FAILED}),
}
"""A failed plan is RUNNING again while the next execution retries it; a plan is cancelled only before its first item
was begun; an undo that is undone brings a plan back."""

ITEM_NEXT: Mapping[ItemStatus, frozenset[ItemStatus]] = {
    ItemStatus.PENDING: frozenset({ItemStatus.DONE, ItemStatus.SKIPPED, ItemStatus.ERROR}),
    ItemStatus.DONE: frozenset({ItemStatus.UNDONE}),
    ItemStatus.SKIPPED: frozenset(),
    ItemStatus.ERROR: frozenset({ItemStatus.PENDING}),
    ItemStatus.UNDONE: frozenset({ItemStatus.DONE}),
}

Counts = Mapping[tuple[Op, ItemStatus], int]


def plan_may_become(present: PlanStatus, target: PlanStatus) -> bool:
    """Return whether a plan may go from one status to the other."""
    return target in PLAN_NEXT[present]


def item_may_become(present: ItemStatus, target: ItemStatus) -> bool:
    """Return whether an item may go from one status to the other."""
    return target in ITEM_NEXT[present]


def status_of(counts: Counts) -> PlanStatus:
    """Return the status of a plan that was started, by how many of its items have which status.

    Directories do not count while there are moves: a plan all of whose moves are undone is UNDONE, even when one of
    its directories has other entries by now and stays.
    """
    if any(count for (_, status), count in counts.items() if status is ItemStatus.PENDING):
        return PlanStatus.RUNNING
    moves = {status: count for (op, status), count in counts.items() if op is Op.MOVE and count}
    counted = moves or {status: count for (_, status), count in counts.items() if count}
    if ItemStatus.UNDONE in counted and ItemStatus.DONE not in counted:
        return PlanStatus.UNDONE
    has_errors = any(count for (_, status), count in counts.items() if status is ItemStatus.ERROR)
    return PlanStatus.FAILED if has_errors else PlanStatus.EXECUTED
