"""The journal of changes in state.db."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.adapters.sqlite.state.database import (
    Database,
    client_row,
    item_row,
    plan_row,
    read_client,
    read_item,
    read_path,
    read_plan,
    stored_path,
)
from holdfast.adapters.sqlite.state.image_table import SqliteImageTable
from holdfast.adapters.sqlite.state.journal_plans import SqlitePlanJournal
from holdfast.auth.context import ClientInfo
from holdfast.changes.model import (
    Change,
    ChangeKind,
    Image,
    Item,
    ItemStatus,
    Outcome,
    Plan,
    PlanStatus,
    item_may_become,
    plan_may_become,
)
from holdfast.changes.ports import ANY_CHANGE
from holdfast.changes.selection import ChangeFilter, PrunedImages, PruneSelection
from holdfast.clock import utc_now
from holdfast.errors import Conflict

_MAX_INTEGER = 2**63 - 1
_MAX_AFFECTED = 10
_MAX_RECENT = 2_000


def open_journal(state_dir: str) -> "SqliteJournal":
    """Open, or make, the journal of a state folder."""
    return SqliteJournal(Database(os.path.join(state_dir, "state.db")))


class SqliteJournal:
    """Implements `holdfast.changes.ports.Journal`."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._plans = SqlitePlanJournal(database, self.find)
        self._images = SqliteImageTable(database)
        for plan in self.find_unfinished():
            self._images.hold(plan)

    @property
    def plans(self) -> SqlitePlanJournal:
        """Return the stepwise plans."""
        return self._plans

    @property
    def images(self) -> SqliteImageTable:
        """Return the before-images."""
        return self._images

    def begin(self, plan: Plan, images: Sequence[Image]) -> list[Image]:
        """Make a plan and its before-images durable in one transaction."""
        with self._images.recount_on_error(), self._db.transaction(durable=True):
            seq = self._db.run("insert_plan", plan_row(plan)).lastrowid or 0
            return self._add_items(replace(plan, seq=seq), images, plan.created_at)

    def resume(self, plan: Plan, images: Sequence[Image]) -> list[Image]:
        """Begin a proposal; its new seq makes it the newest change."""
        parameters = {
            "id": plan.id,
            "temp_name": plan.temp_name,
            "other_root": None if plan.other_root is None else stored_path(plan.other_root),
            **client_row(plan.client),
        }
        with self._images.recount_on_error(), self._db.transaction(durable=True):
            if self._db.run("resume_plan", parameters).rowcount != 1:
                raise Conflict(f"Change {plan.id} is not approved, or it is running or done already.")
            (seq,) = self._db.run("last_seq").fetchone()
            self._db.run("delete_items", {"plan_id": plan.id})
            return self._add_items(replace(plan, seq=seq), images, utc_now())

    def keep_image(self, image: Image) -> bool:
        """Make one more image durable."""
        with self._db.transaction(durable=True):
            return self._images.add(image)

    def finish(self, plan_id: str, outcome: Outcome, at: str) -> None:
        """Record how a plan ended. Not durable: after a power cut recovery finds the outcome on the disk."""
        with self._images.recount_on_error(), self._db.transaction(durable=False):
            for position, (status, message) in outcome.exceptions.items():
                self._finish_items(plan_id, status, message, None, (position, position))
            self._finish_items(plan_id, outcome.item_status, outcome.message, outcome.identity, (0, _MAX_INTEGER))
            if outcome.saved is not None:
                (position,) = self._db.run("next_position", {"plan_id": plan_id}).fetchone()
                self._db.run("insert_item", item_row(plan_id, position, outcome.saved))
                self._images.add_saved(plan_id, outcome.saved, at)
            plan = {"id": plan_id, "status": outcome.status.value, "executed_at": at, "error_msg": outcome.message}
            if (
                not plan_may_become(PlanStatus.RUNNING, outcome.status)
                or self._db.run("finish_plan", plan).rowcount != 1
            ):
                raise Conflict(f"Change {plan_id} is not running, so it cannot end.")
            if outcome.status is PlanStatus.EXECUTED:
                self._update_review_and_undone_plans(plan_id)
        self._images.release(plan_id)

    def find(self, plan_id: str) -> Plan | None:
        """Return a plan with its items."""
        rows = self._db.fetch("find_plan", {"id": plan_id})
        if not rows:
            return None
        items = self._db.fetch_as(read_item, Item._fields, "find_items", {"plan_id": plan_id})
        for batch in self._db.fetch("begun_batch", {"plan_id": plan_id}):
            begun_positions = set(json.loads(batch["positions"]))
            items = [
                item._replace(intended_at=item.intended_at or batch["intended_at"])
                if item.position in begun_positions
                else item
                for item in items
            ]
        return read_plan(rows[0], tuple(items))

    def find_unfinished(self) -> list[Plan]:
        """Return the single changes that are RUNNING, oldest first."""
        plans = (self.find(row["id"]) for row in self._db.fetch("unfinished_plans"))
        return [plan for plan in plans if plan is not None]

    def list_changes(
        self, roots: Sequence[str] | None, limit: int, before_seq: int | None, change_filter: ChangeFilter = ANY_CHANGE
    ) -> list[Change]:
        """Return finished changes beneath the roots, newest first."""
        parameters = {
            **_filter_parameters(change_filter),
            "roots": None if roots is None else json.dumps(list(roots)),
            "limit": limit,
            "before_seq": _MAX_INTEGER if before_seq is None else before_seq,
        }
        return [
            Change(
                seq=row["seq"],
                id=row["id"],
                kind=ChangeKind(row["kind"]),
                status=PlanStatus(row["status"]),
                path=read_path(row["src_path"]) or "",
                dest_path=read_path(row["dest_path"]),
                items=row["items"],
                created_at=row["created_at"],
                undoes=row["undoes"],
                images_missing=row["images_missing"],
                done=row["done"],
                saved=row["kept"],
                client=read_client(row),
                executed_at=row["executed_at"],
                size_bytes=row["size_bytes"],
            )
            for row in self._db.fetch("list_changes", parameters)
        ]

    def list_clients(self) -> list[ClientInfo]:
        """Return the programs that made changes and said their names."""
        return [read_client(row) for row in self._db.fetch("list_clients")]

    def list_recent_roots(self) -> list[str]:
        """Return the directories of the last changes and plans."""
        rows = self._db.fetch("recent_roots", {"limit": _MAX_RECENT})
        paths = (read_path(row[column]) for row in rows for column in ("root_dir", "other_root"))
        return list(dict.fromkeys(filter(None, paths)))

    def find_ids(self, prefix: str) -> list[str]:
        """Return the ids that begin with a text."""
        return [row["id"] for row in self._db.fetch("find_ids", {"prefix": prefix})]

    def find_undo_of(self, plan_id: str) -> str | None:
        """Return the newest undo of a change that is in effect."""
        rows = self._db.fetch("undo_of", {"plan_id": plan_id})
        return rows[0]["id"] if rows else None

    def find_latest_on(self, path: str, after_seq: int) -> str | None:
        """Return the newest later change in effect on a path."""
        rows = self._db.fetch("latest_on_path", {"path": stored_path(path), "after_seq": after_seq})
        return rows[0]["id"] if rows else None

    def prune(self, selection: PruneSelection, *, dry_run: bool) -> tuple[PrunedImages, list[str]]:
        """Delete images that a person lets go, or only count them."""
        with self._images.recount_on_error(), self._db.transaction(durable=False):
            rows = self._images.choose(selection)
            hashes = json.dumps([row["hash"] for row in rows])
            affected_ids = [row["id"] for row in self._db.run("changes_that_need", {"hashes": hashes}).fetchall()]
            files = [] if dry_run else self._images.let_go(rows)
        newest = (self.find(plan_id) for plan_id in affected_ids[:_MAX_AFFECTED])
        pruned = PrunedImages(
            len(rows),
            sum(row["stored_bytes"] for row in rows),
            len(affected_ids),
            tuple(plan for plan in newest if plan is not None),
        )
        return pruned, files

    def checkpoint(self) -> None:
        """Move the log's pages into the database file."""
        self._db.checkpoint()

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def _add_items(self, plan: Plan, images: Sequence[Image], at: str) -> list[Image]:
        kept_before = [image for image in images if not self._images.add(image)]
        self._images.add_uses(plan, at)
        self._db.run_many(
            "insert_item", [item_row(plan.id, position, item) for position, item in enumerate(plan.items)]
        )
        self._images.hold(plan)
        return kept_before

    def _finish_items(
        self,
        plan_id: str,
        status: ItemStatus,
        message: str | None,
        identity: str | None,
        positions: tuple[int, int],
    ) -> None:
        if not item_may_become(ItemStatus.PENDING, status):
            raise Conflict(f"The items of change {plan_id} cannot become {status}.")
        first, last = positions
        row = {"plan_id": plan_id, "status": status.value, "error_msg": message, "first": first, "last": last}
        self._db.run("finish_items", {**row, "identity": identity, "dest_identity": None})

    def _update_review_and_undone_plans(self, plan_id: str) -> None:
        """Mark the plan's review COMMITTED and what it undid UNDONE.

        What the undone plan had undone is in effect again, and so on down the chain.
        A plan that has another status than expected keeps it, with its items.
        """
        plan_statuses, item_statuses = (PlanStatus.EXECUTED, PlanStatus.UNDONE), (ItemStatus.DONE, ItemStatus.UNDONE)
        (row,) = self._db.run("plan_state", {"id": plan_id}).fetchall()
        self._db.run("commit_review", {"id": plan_id})
        while (undone_id := row["undoes"]) is not None:
            (row,) = self._db.run("plan_state", {"id": undone_id}).fetchall()
            present, status = plan_statuses
            change = {"id": undone_id, "present": present.value, "status": status.value}
            if self._db.run("set_plan_status", {**change, "executed_at": row["executed_at"]}).rowcount == 1:
                items = {"present": item_statuses[0].value, "status": item_statuses[1].value}
                self._db.run("set_item_statuses", {"plan_id": undone_id, **items, "first": 0, "last": _MAX_INTEGER})
            plan_statuses, item_statuses = plan_statuses[::-1], item_statuses[::-1]


def _filter_parameters(change_filter: ChangeFilter) -> dict[str, Any]:
    """Return a filter as parameters of `list_changes`; None where any value will do."""
    client = change_filter.client
    return {
        "by_command": None if client is None else client.is_command,
        "client_name": None if client is None or client.is_command else client.name,
        "client_version": client.version or None if client is not None else None,
        "since": change_filter.since,
        "until": change_filter.until,
        "kinds": json.dumps([kind.value for kind in change_filter.kinds]) if change_filter.kinds else None,
        "directory": json.dumps([change_filter.directory]) if change_filter.directory else None,
        "or_moved_to": json.dumps(change_filter.or_moved_to),
    }
