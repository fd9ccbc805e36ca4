"""The before-images in state.db: each content once, its uses by path and root, and what each root takes up."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from holdfast.adapters.sqlite.state.database import Database, read_path, state_statements, stored_path
from holdfast.changes.model import MIN_PACKED_BYTES, Image, Item, Op, Plan, RootUsage, share_of
from holdfast.changes.selection import PruneSelection

_MAX_INTEGER = 2**63 - 1
_MAX_EXPIRED = 500
_MAX_UNPACKED = 50
_WITH_IMAGE = (Op.REPLACE, Op.REMOVE)

StoredRoot = str | bytes


class SqliteImageTable:
    """Implements `holdfast.changes.ports.ImageTable`.

    The sums by root are kept in memory: an image counts once in each root that uses it. A RUNNING change is held: its
    uses, and what it restores, stay until it is released.
    """

    def __init__(self, database: Database) -> None:
        self._db = database
        self._running: dict[str, tuple[int, frozenset[str]]] = {}
        self._roots: dict[StoredRoot, RootUsage] = {}
        self._may_be_unpacked = True
        self._oldest_kept_at = ""
        self._load_usage()

    def find(self, hash_: str) -> Image | None:
        """Return kept bytes, or the file that holds them."""
        rows = self._db.fetch("find_image", {"hash": hash_})
        if not rows:
            return None
        fields = dict(rows[0])
        return Image(**{**fields, "is_packed": bool(fields["is_packed"])})

    def files(self) -> set[str]:
        """Return the names of the image files in use."""
        return {row["file"] for row in self._db.fetch("image_files")}

    def usage(self) -> dict[str, RootUsage]:
        """Return what each root takes up."""
        return {read_path(root) or "/": usage for root, usage in self._roots.copy().items()}

    def has_oldest(self, path: str) -> bool:
        """Return whether an earlier content of a path is kept."""
        return bool(self._db.fetch("has_oldest_use", {"path": stored_path(path)}))

    def expire(self, cap_bytes: int, kept_since: str) -> list[str]:
        """Remove what is past its days, then over the cap what is not the oldest of its path, oldest change first."""
        if self._used_bytes() <= cap_bytes and self._oldest_kept_at >= kept_since:
            return []
        files: list[str] = []
        with self.recount_on_error(), self._db.transaction(durable=False):
            before_seq = self._first_running_seq()
            self._expire_by_age(kept_since, before_seq, files)
            self._expire_by_size(cap_bytes, before_seq, files)
        return files

    def choose(self, selection: PruneSelection) -> list[sqlite3.Row]:
        """Return the images that a person lets go, within a transaction; RUNNING changes keep theirs."""
        roots = json.dumps(list(selection.roots)) if selection.roots else None
        rows = self._db.run("prunable_images", {"before_seq": self._first_running_seq(), "roots": roots}).fetchall()
        if selection.before is not None:
            return [row for row in rows if row["kept_at"] < selection.before]
        left = sum(row["stored_bytes"] for row in rows)
        rows_to_remove = []
        for row in rows:
            if left <= (selection.to_bytes or 0):
                break
            rows_to_remove.append(row)
            left -= row["stored_bytes"]
        return rows_to_remove

    def let_go(self, rows: Sequence[sqlite3.Row]) -> list[str]:
        """Remove images with all their uses, within a transaction; returns their files."""
        files: list[str] = []
        for row in rows:
            for use in self._db.run("uses_of_image", {"hash": row["hash"]}).fetchall():
                self._remove_use(use, files)
                if use["is_oldest"]:
                    self._mark_next_oldest(use["path"])
        return files

    def forget_unused(self) -> list[str]:
        """Remove images that no change uses."""
        files: list[str] = []
        with self._db.transaction(durable=False):
            for row in self._db.run("unused_images").fetchall():
                self._forget(row["hash"], files)
        return files

    def list_unpacked(self) -> list[str]:
        """Return the largest images that nobody has tried to pack."""
        if not self._may_be_unpacked:
            return []
        hashes = [row["hash"] for row in self._db.fetch("unpacked_images", {"limit": _MAX_UNPACKED})]
        self._may_be_unpacked = bool(hashes)
        return hashes

    def base_for(self, hash_: str) -> str | None:
        """Return the oldest image of a path that also had this content."""
        rows = self._db.fetch("base_of_image", {"hash": hash_})
        return rows[0]["hash"] if rows else None

    def pack(self, hash_: str, packed: Image | None) -> str | None:
        """Store an image in less space, unless it or its base has gone meanwhile; returns the file to remove."""
        with self.recount_on_error(), self._db.transaction(durable=False):
            stored = self._db.run("stored_image", {"hash": hash_}).fetchone()
            if packed is None or stored is None:
                self._db.run("leave_image_plain", {"hash": hash_})
                return None if packed is None else packed.file
            data_id = None
            if packed.data is not None:
                data_id = self._db.run("insert_image_data", {"data": packed.data}).lastrowid
            row = {"hash": hash_, "stored_bytes": packed.stored_bytes, "data_id": data_id, "file": packed.file}
            row |= {name: getattr(packed, name) for name in ("base_hash", "prefix_bytes", "suffix_bytes")}
            if self._db.run("pack_image", row).rowcount != 1:
                self._db.run("delete_image_data", {"id": data_id})
                self._db.run("leave_image_plain", {"hash": hash_})
                return packed.file
            self._db.run("delete_image_data", {"id": stored["data_id"]})
            self._load_usage()
            return str(stored["file"]) if stored["file"] else None

    def add(self, image: Image) -> bool:
        """Add an image, within a transaction; False when it is kept already."""
        if self._db.run("has_image", {"hash": image.hash}).fetchone() is not None:
            return False
        data_id = None
        if image.data is not None:
            data_id = self._db.run("insert_image_data", {"data": image.data}).lastrowid
        packing = None if image.size_bytes >= MIN_PACKED_BYTES else "plain"
        row = {"hash": image.hash, "size_bytes": image.size_bytes, "data_id": data_id, "file": image.file}
        self._db.run("insert_image", {**row, "packing": packing})
        self._may_be_unpacked = self._may_be_unpacked or packing is None
        return True

    def add_uses(self, plan: Plan, at: str) -> None:
        """Record which image each item of a change began with, within the transaction that begins it."""
        for item in plan.items:
            if item.op in _WITH_IMAGE and item.before_hash is not None:
                self._add_use(stored_path(plan.root_dir) or "/", plan.seq, item, at)

    def add_saved(self, plan_id: str, saved: Item, at: str) -> None:
        """Record the image of another program's bytes that a change saved, within the transaction that ends it."""
        (plan,) = self._db.run("find_plan", {"id": plan_id}).fetchall()
        self._add_use(plan["root_dir"], plan["seq"], saved, at)

    def hold(self, plan: Plan) -> None:
        """Keep the images of a RUNNING change, and those that it restores."""
        self._running[plan.id] = (plan.seq, frozenset(item.after_hash for item in plan.items if item.after_hash))

    def release(self, plan_id: str) -> None:
        """Let go of the images of a change that has ended."""
        self._running.pop(plan_id, None)

    @contextmanager
    def recount_on_error(self) -> Iterator[None]:
        """Count the sums again when a transaction fails: what it added to them is not there."""
        try:
            yield
        except BaseException:
            self._load_usage()
            raise

    def _first_running_seq(self) -> int:
        return min((seq for seq, _ in self._running.values()), default=_MAX_INTEGER)

    def _load_usage(self) -> None:
        self._roots = _read_usage(self._db.fetch("root_usage"))

    def _used_bytes(self) -> int:
        return sum(usage.used_bytes for usage in self._roots.copy().values())

    def _count(self, root: StoredRoot, used: int, oldest: int) -> None:
        usage = self._roots.get(root, RootUsage())
        counted = RootUsage(usage.used_bytes + used, usage.oldest_bytes + oldest)
        if counted.used_bytes:
            self._roots[root] = counted
        else:
            self._roots.pop(root, None)

    def _add_use(self, root: StoredRoot, seq: int, item: Item, at: str) -> None:
        use = {"path": stored_path(item.src_path), "seq": seq, "hash": item.before_hash, "root_dir": root}
        added = self._db.run("add_image_use", {**use, "kept_at": at}).fetchall()
        for row in added:
            uses, oldest, stored_bytes = self._db.run("uses_in_root", use).fetchone()
            is_first_oldest = bool(row["is_oldest"]) and oldest == 1
            self._count(root, stored_bytes if uses == 1 else 0, stored_bytes if is_first_oldest else 0)

    def _remove_use(self, use: Any, files: list[str]) -> None:
        row = {name: use[name] for name in ("path", "seq", "hash", "root_dir")}
        self._db.run("delete_image_use", row)
        uses, oldest, stored_bytes = self._db.run("uses_in_root", row).fetchone()
        lost_oldest = bool(use["is_oldest"]) and oldest == 0
        self._count(use["root_dir"], -stored_bytes if uses == 0 else 0, -stored_bytes if lost_oldest else 0)
        self._forget(use["hash"], files)

    def _forget(self, hash_: str, files: list[str]) -> None:
        """Delete an image that nothing needs any more, and then the one that it was a difference from."""
        next_hash: str | None = hash_
        while next_hash is not None and not any(next_hash in hashes for _, hashes in self._running.values()):
            rows = self._db.run("forget_image", {"hash": next_hash}).fetchall()
            if not rows:
                return
            if rows[0]["data_id"] is not None:
                self._db.run("delete_image_data", {"id": rows[0]["data_id"]})
            if rows[0]["file"]:
                files.append(rows[0]["file"])
            next_hash = rows[0]["base_hash"]

    def _expire_by_age(self, kept_since: str, before_seq: int, files: list[str]) -> None:
        left, oldest_left = _MAX_EXPIRED, []
        for root in list(self._roots):
            for is_oldest in (0, 1):
                for use in self._first_uses(root, is_oldest, before_seq):
                    if use["kept_at"] >= kept_since or left == 0:
                        oldest_left.append(use["kept_at"])
                        break
                    left -= 1
                    self._remove_use(use, files)
                    if is_oldest:
                        self._mark_next_oldest(use["path"])
        self._oldest_kept_at = min(oldest_left, default="")

    def _mark_next_oldest(self, path: StoredRoot) -> None:
        for row in self._db.run("mark_oldest_use", {"path": path}).fetchall():
            counts = {"hash": row["hash"], "root_dir": row["root_dir"]}
            _, oldest, stored_bytes = self._db.run("uses_in_root", counts).fetchone()
            if oldest == 1:
                self._count(row["root_dir"], 0, stored_bytes)

    def _expire_by_size(self, cap_bytes: int, before_seq: int, files: list[str]) -> None:
        exhausted: set[StoredRoot] = set()
        for _ in range(_MAX_EXPIRED):
            if self._used_bytes() <= cap_bytes:
                return
            share = share_of(cap_bytes, len(self._roots))
            over = {root: usage.used_bytes for root, usage in self._roots.items() if root not in exhausted}
            root = max(over, key=over.__getitem__, default=None)
            if root is None or over[root] <= share:
                return
            uses = self._first_uses(root, 0, before_seq, limit=1)
            if uses:
                self._remove_use(uses[0], files)
            else:
                exhausted.add(root)

    def _first_uses(self, root: StoredRoot, is_oldest: int, before_seq: int, limit: int = _MAX_EXPIRED) -> list[Any]:
        row = {"root_dir": root, "is_oldest": is_oldest, "before_seq": before_seq, "limit": limit}
        return self._db.run("first_uses", row).fetchall()


def read_image_usage(path: str) -> dict[str, RootUsage]:
    """Return what each root takes up by the state.db at a path, which is only looked at; nothing when there is none."""
    try:
        connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=5)
    except sqlite3.Error:
        return {}
    connection.row_factory = sqlite3.Row
    try:
        rows = connection.execute(state_statements()["root_usage"]).fetchall()
    except sqlite3.Error:
        return {}
    finally:
        connection.close()
    return {read_path(root) or "/": usage for root, usage in _read_usage(rows).items()}


def _read_usage(rows: Sequence[Any]) -> dict[StoredRoot, RootUsage]:
    return {row["root_dir"]: RootUsage(row["used_bytes"], row["oldest_bytes"]) for row in rows}
