"""The journal of changes in state.db."""

import json
import os
from collections.abc import Sequence
from typing import Any

from holdfast.adapters.sqlite.database import Database
from holdfast.changes.model import Change, Image, Item, ItemStatus, Kind, Node, Op, Outcome, Plan, PlanStatus

_NEWEST = 2**63 - 1
_EXPIRED_AT_ONCE = 500


def open_journal(state_dir: str) -> "SqliteJournal":
    """Open, or make, the journal of a state folder."""
    return SqliteJournal(Database(os.path.join(state_dir, "state.db")))


class SqliteJournal:
    """Implements `holdfast.changes.ports.Journal`."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._under_way = {row["id"]: row["seq"] for row in database.fetch("unfinished_plans")}
        self._kept_bytes: int = database.fetch("images_bytes")[0][0]
        self._ages_seen_at = ""

    def begin(self, plan: Plan, images: Sequence[Image]) -> list[Image]:
        """Make a plan and its before-images durable in one transaction."""
        with self._db.transaction(durable=True):
            seq = self._db.run("insert_plan", _plan_row(plan)).lastrowid or 0
            known = [image for image in images if not self._add_image(image, plan.created_at, seq)]
            given = {image.hash for image in images}
            for hash_ in {h for item in plan.items for h in (item.before_hash, item.after_hash) if h} - given:
                self._db.run("touch_image", {"hash": hash_, "kept_at": plan.created_at, "used_seq": seq})
            self._db.run_many("insert_item", [_item_row(plan.id, n, item) for n, item in enumerate(plan.items)])
            self._under_way[plan.id] = seq
        return known

    def keep(self, image: Image, at: str) -> bool:
        """Make one more image durable."""
        with self._db.transaction(durable=True):
            (seq,) = self._db.run("last_seq").fetchone()
            return self._add_image(image, at, seq)

    def finish(self, plan_id: str, outcome: Outcome, at: str) -> None:
        """Record how a plan ended; recovery can tell by the disk, so this need not wait for it."""
        with self._db.transaction(durable=False):
            for position, (status, message) in outcome.exceptions.items():
                row = {"plan_id": plan_id, "position": position, "status": status.value, "error_msg": message}
                self._db.run("finish_item", row)
            items = {"plan_id": plan_id, "status": outcome.item_status.value, "error_msg": outcome.message}
            self._db.run("finish_items", {**items, "identity": outcome.identity})
            if outcome.kept is not None:
                (position,) = self._db.run("next_position", {"plan_id": plan_id}).fetchone()
                self._db.run("insert_item", _item_row(plan_id, position, outcome.kept))
            plan = {"id": plan_id, "status": outcome.status.value, "executed_at": at, "error_msg": outcome.message}
            self._db.run("finish_plan", plan)
            if outcome.status is PlanStatus.EXECUTED:
                self._settle_undone(plan_id)
        self._under_way.pop(plan_id, None)

    def find(self, plan_id: str) -> Plan | None:
        """Return a plan with its items."""
        rows = self._db.fetch("find_plan", {"id": plan_id})
        if not rows:
            return None
        items = tuple(_item(row) for row in self._db.fetch("find_items", {"plan_id": plan_id}))
        row = rows[0]
        return Plan(
            id=row["id"],
            kind=Kind(row["kind"]),
            root_dir=_path(row["root_dir"]) or "/",
            items=items,
            created_at=row["created_at"],
            other_root=_path(row["other_root"]),
            temp_name=row["temp_name"],
            undoes=row["undoes"],
            status=PlanStatus(row["status"]),
            executed_at=row["executed_at"],
            seq=row["seq"],
        )

    def unfinished(self) -> list[Plan]:
        """Return the plans without an outcome, oldest first."""
        found = (self.find(row["id"]) for row in self._db.fetch("unfinished_plans"))
        return [plan for plan in found if plan is not None]

    def changes(self, roots: Sequence[str], limit: int, before_seq: int | None) -> list[Change]:
        """Return finished changes beneath the roots, newest first."""
        parameters = {
            "roots": json.dumps(list(roots)),
            "limit": limit,
            "before_seq": _NEWEST if before_seq is None else before_seq,
        }
        return [
            Change(
                seq=row["seq"],
                id=row["id"],
                kind=Kind(row["kind"]),
                status=PlanStatus(row["status"]),
                path=_path(row["src_path"]) or "",
                dest_path=_path(row["dest_path"]),
                items=row["items"],
                created_at=row["created_at"],
                undoes=row["undoes"],
                images_missing=row["images_missing"],
            )
            for row in self._db.fetch("list_changes", parameters)
        ]

    def latest_on(self, path: str, after_seq: int) -> str | None:
        """Return the newest later change in effect on a path."""
        rows = self._db.fetch("latest_on_path", {"path": _stored(path), "after_seq": after_seq})
        return rows[0]["id"] if rows else None

    def image(self, hash_: str) -> Image | None:
        """Return kept bytes, or the file that holds them."""
        rows = self._db.fetch("find_image", {"hash": hash_})
        return Image(**dict(rows[0])) if rows else None

    def image_files(self) -> set[str]:
        """Return the names of the image files in use."""
        return {row["file"] for row in self._db.fetch("image_files")}

    def expire(self, max_bytes: int, kept_since: str) -> list[str]:
        """Let images go, oldest use first, until the rest is within the limits."""
        if self._kept_bytes <= max_bytes and self._ages_seen_at >= kept_since:
            return []
        files: list[str] = []
        with self._db.transaction(durable=False):
            first_in_use = min(self._under_way.values(), default=_NEWEST)
            for row in self._db.run(
                "oldest_images", {"before_seq": first_in_use, "limit": _EXPIRED_AT_ONCE}
            ).fetchall():
                if self._kept_bytes <= max_bytes and row["kept_at"] >= kept_since:
                    self._ages_seen_at = row["kept_at"]
                    break
                self._forget_image(row)
                if row["file"]:
                    files.append(row["file"])
        return files

    def checkpoint(self) -> None:
        """Fold the log into the database file."""
        self._db.fold()

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def _add_image(self, image: Image, at: str, seq: int) -> bool:
        use = {"hash": image.hash, "kept_at": at, "used_seq": seq}
        if self._db.run("touch_image", use).rowcount == 1:
            return False
        data_id = None
        if image.data is not None:
            data_id = self._db.run("insert_image_data", {"data": image.data}).lastrowid
        self._db.run("insert_image", {**use, "size_bytes": image.size_bytes, "data_id": data_id, "file": image.file})
        self._kept_bytes += image.size_bytes
        return True

    def _forget_image(self, row: Any) -> None:
        self._db.run("delete_image", {"hash": row["hash"]})
        if row["data_id"] is not None:
            self._db.run("delete_image_data", {"id": row["data_id"]})
        self._kept_bytes -= row["size_bytes"]

    def _settle_undone(self, plan_id: str) -> None:
        """What this plan undid is UNDONE, what that one had undone is in effect again, and so on down the chain."""
        is_undone = True
        (below,) = self._db.run("undone_by_plan", {"id": plan_id}).fetchone()
        while below is not None:
            if is_undone:
                self._mark(below, PlanStatus.UNDONE, ItemStatus.DONE, ItemStatus.UNDONE)
            else:
                self._mark(below, PlanStatus.EXECUTED, ItemStatus.UNDONE, ItemStatus.DONE)
            is_undone = not is_undone
            (below,) = self._db.run("undone_by_plan", {"id": below}).fetchone()

    def _mark(self, plan_id: str, status: PlanStatus, present: ItemStatus, items: ItemStatus) -> None:
        self._db.run("set_plan_status", {"id": plan_id, "status": status.value})
        row = {"plan_id": plan_id, "present": present.value, "status": items.value}
        self._db.run("set_items_status", row)


def _plan_row(plan: Plan) -> dict[str, Any]:
    return {
        "id": plan.id,
        "kind": plan.kind.value,
        "root_dir": _stored(plan.root_dir),
        "other_root": _stored(plan.other_root),
        "temp_name": plan.temp_name,
        "undoes": plan.undoes,
        "status": plan.status.value,
        "created_at": plan.created_at,
    }


def _item_row(plan_id: str, position: int, item: Item) -> dict[str, Any]:
    return {
        "plan_id": plan_id,
        "position": position,
        "op": item.op.value,
        "src_path": _stored(item.src_path),
        "dest_path": _stored(item.dest_path),
        "node": item.node.value,
        "before_hash": item.before_hash,
        "after_hash": item.after_hash,
        "size_bytes": item.size_bytes,
        "mode": item.mode,
        "uid": item.uid,
        "gid": item.gid,
        "mtime_ns": item.mtime_ns,
        "identity": item.identity,
        "status": item.status.value,
        "error_msg": item.error_msg,
    }


def _item(row: Any) -> Item:
    fields = dict(row)
    fields.update(src_path=_path(fields["src_path"]), dest_path=_path(fields["dest_path"]))
    fields.update(op=Op(fields["op"]), node=Node(fields["node"]), status=ItemStatus(fields["status"]))
    return Item(**fields)


def _stored(path: str | None) -> str | bytes | None:
    """Return a path as SQLite can hold it: text, or bytes for a name that is not Unicode."""
    if path is None or path.isascii():
        return path
    raw = os.fsencode(path)
    try:
        raw.decode()
    except UnicodeDecodeError:
        return raw
    return path


def _path(stored: str | bytes | None) -> str | None:
    return os.fsdecode(stored) if isinstance(stored, bytes) else stored
