"""Rows of the journal as plans and items, and back."""

import os
from typing import Any

from holdfast.changes.model import ChangeKind, Item, ItemStatus, NodeType, Op, Plan, PlanStatus

_OPS = {op.value: op for op in Op}
_NODES = {node.value: node for node in NodeType}
_STATUSES = {status.value: status for status in ItemStatus}
_OP, _NODE, _STATUS, _MTIME = map(Item._fields.index, ("op", "node", "status", "mtime_ns"))
_PATHS = tuple(map(Item._fields.index, ("src_path", "dest_path", "quarantine_path", "unit")))
_INTEGER_LIMIT = 2**63
_NS = "ns"
"""Prefix of a time that is too large for an integer of SQLite, such as one in the year 2446; it is stored as text."""


def plan_row(plan: Plan) -> dict[str, Any]:
    """Return a plan as a row of `plans`."""
    return {
        "id": plan.id,
        "kind": plan.kind.value,
        "root_dir": stored_path(plan.root_dir),
        "other_root": stored_path(plan.other_root),
        "temp_name": plan.temp_name,
        "undoes": plan.undoes,
        "status": plan.status.value,
        "created_at": plan.created_at,
        "stepwise": plan.stepwise,
        "folder": stored_path(plan.folder),
    }


def read_plan(row: Any, items: tuple[Item, ...]) -> Plan:
    """Return a row of `plans` with its items."""
    fields = dict(row)
    fields.update(
        kind=ChangeKind(fields["kind"]), status=PlanStatus(fields["status"]), stepwise=bool(fields["stepwise"])
    )
    fields.update(root_dir=read_path(fields["root_dir"]) or "/", other_root=read_path(fields["other_root"]))
    fields.update(folder=read_path(fields["folder"]))
    return Plan(**fields, items=items)


def item_row(plan_id: str, position: int, item: Item) -> dict[str, Any]:
    """Return an item as a row of `plan_items`."""
    return {
        "plan_id": plan_id,
        "position": position,
        "op": item.op.value,
        "src_path": stored_path(item.src_path),
        "dest_path": stored_path(item.dest_path),
        "node": item.node.value,
        "before_hash": item.before_hash,
        "after_hash": item.after_hash,
        "size_bytes": item.size_bytes,
        "mode": item.mode,
        "uid": item.uid,
        "gid": item.gid,
        "mtime_ns": item.mtime_ns if abs(item.mtime_ns) < _INTEGER_LIMIT else f"{_NS}{item.mtime_ns}",
        "identity": item.identity,
        "status": item.status.value,
        "error_msg": item.error_msg,
        "reasoning": item.reasoning,
        "confidence": item.confidence,
        "ctime_ns": item.ctime_ns,
        "composite_hash": item.composite_hash,
        "xattrs": item.xattrs,
        "temp_name": item.temp_name,
        "aside": stored_path(item.quarantine_path),
        "intended_at": item.intended_at,
        "reverses": item.reverses,
        "dest_identity": item.dest_identity,
        "unit": stored_path(item.unit),
    }


def read_item(row: Any) -> Item:
    """Return a row of `plan_items` with the columns of `Item._fields`, in that order."""
    fields = list(row)
    fields[_OP], fields[_NODE], fields[_STATUS] = _OPS[fields[_OP]], _NODES[fields[_NODE]], _STATUSES[fields[_STATUS]]
    for path in _PATHS:
        if isinstance(fields[path], bytes):
            fields[path] = read_path(fields[path])
    if isinstance(fields[_MTIME], str):
        fields[_MTIME] = int(fields[_MTIME].removeprefix(_NS))
    return Item._make(fields)


def stored_path(path: str | None) -> str | bytes | None:
    """Return a path as SQLite can hold it: text, or bytes for a name that is not Unicode."""
    if path is None or path.isascii():
        return path
    raw = os.fsencode(path)
    try:
        raw.decode()
    except UnicodeDecodeError:
        return raw
    return path


def read_path(stored: str | bytes | None) -> str | None:
    """Return a path as it was stored."""
    return os.fsdecode(stored) if isinstance(stored, bytes) else stored
