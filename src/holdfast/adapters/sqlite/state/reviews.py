"""The reviews in state.db, in the same transactions as their plans."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from holdfast.adapters.sqlite.state.database import Database, read_path, stored_path
from holdfast.adapters.sqlite.state.journal import SqliteJournal
from holdfast.adapters.sqlite.state.review_texts import pack_base, pack_text, unpack_base, unpack_text
from holdfast.auth.context import ClientInfo
from holdfast.changes.model import ChangeKind, Op, PlanStatus
from holdfast.changes.path_change import PathChange
from holdfast.review.model import (
    CHANGE_KINDS,
    TRANSITIONS,
    DiffSize,
    Review,
    ReviewKind,
    ReviewState,
    ReviewSummary,
)

_MAX_INTEGER = 2**63 - 1
_PLAN_STATUSES = {
    ReviewState.PENDING: PlanStatus.CREATED,
    ReviewState.CHANGES_REQUESTED: PlanStatus.CREATED,
    ReviewState.APPROVED: PlanStatus.APPROVED,
    ReviewState.REJECTED: PlanStatus.CANCELLED,
    ReviewState.EXPIRED: PlanStatus.CANCELLED,
}
"""The status of a review's plan; COMMITTED is written by the journal, with the plan's EXECUTED."""


_OPS = {
    ReviewKind.EDIT: Op.REPLACE.value,
    ReviewKind.MOVE: Op.MOVE.value,
    ReviewKind.DELETE: Op.REMOVE.value,
    ReviewKind.CREATE_DIRECTORY: Op.MKDIR.value,
    ReviewKind.UNDO: Op.RESTORE.value,
}
"""The op of a review's one item; the items of the change take its place when it is committed."""


def reviews_beside(journal: SqliteJournal) -> "SqliteReviews":
    """Return the reviews of the database that a journal has open."""
    return SqliteReviews(journal._db)


class SqliteReviews:
    """Implements `holdfast.review.ports.ReviewTable`."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, review: Review) -> None:
        """Keep a review and its plan, as one."""
        change = review.path_change
        item = {
            "plan_id": review.id,
            "op": _OPS[review.kind],
            "src_path": stored_path(review.path),
            "dest_path": stored_path(review.dest_path),
            "before_hash": _hash(review.base),
            "after_hash": _hash(review.proposed) if change is None else None,
            "size_bytes": len(review.base or b""),
            "source_directory": review.directory,
        }
        plan = {
            "id": review.id,
            "kind": CHANGE_KINDS[review.kind].value,
            "root_dir": stored_path(review.root),
            "other_root": stored_path(None if change is None or change.dest_root == review.root else change.dest_root),
            "undoes": None if change is None else change.undoes,
            "created_at": review.created_at,
        }
        with self._db.transaction(durable=True):
            self._db.run("insert_review_plan", plan)
            self._db.run("insert_review_item", item)
            row = {"session": review.session, "version": review.version, "path_change": _dump_path_change(change)}
            client = {"client_name": review.client.name, "client_version": review.client.version}
            self._db.run("insert_review", {**row, **client, **_row(review)})

    def find(self, review_id: str) -> Review | None:
        """Return a review with its texts."""
        rows = self._db.fetch("find_review", {"id": review_id})
        return _review(rows[0]) if rows else None

    def find_by_session(self, session: str) -> Review | None:
        """Return the review of a session."""
        rows = self._db.fetch("review_of_session", {"session": session})
        return self.find(rows[0]["plan_id"]) if rows else None

    def find_equal_proposal(self, proposal_hash: str, rejected_since: str) -> Review | None:
        """Return the newest review of an equal proposal."""
        parameters = {"proposal_hash": proposal_hash, "rejected_since": rejected_since}
        rows = self._db.fetch("find_equal_proposal", parameters)
        return self.find(rows[0]["plan_id"]) if rows else None

    def list_open(self, roots: Sequence[str] | None, limit: int, before_seq: int | None) -> list[ReviewSummary]:
        """Return open reviews, newest first."""
        parameters = {
            "roots": None if roots is None else json.dumps(list(roots)),
            "limit": limit,
            "before_seq": _MAX_INTEGER if before_seq is None else before_seq,
        }
        return [_summary(row) for row in self._db.fetch("list_open_reviews", parameters)]

    def list_closed(self, limit: int, before_seq: int | None) -> list[ReviewSummary]:
        """Return ended reviews, the last one first."""
        parameters = {"limit": limit, "before_seq": _MAX_INTEGER if before_seq is None else before_seq}
        return [_summary(row) for row in self._db.fetch("list_closed_reviews", parameters)]

    def replace(self, before: Review, after: Review) -> bool:
        """Store the review if nobody changed it since it was read."""
        if after.state not in TRANSITIONS[before.state]:
            return False
        decision = {
            "proposed": pack_text(after.base, after.proposed) if after.is_open else None,
            "answered": pack_text(after.base, after.answered),
            "decided_by": after.decided_by,
            "decided_at": after.decided_at,
            "reason": after.reason,
        }
        try:
            with self._db.transaction(durable=True):
                self._update("save_review", {**_row(after), **decision, "version": before.version})
                self._update("save_review_plan", {"id": before.id, "status": _PLAN_STATUSES[after.state].value})
                self._db.run("save_review_item", {"id": after.id, "after_hash": _hash(after.text)})
        except _ChangedMeanwhile:
            return False
        return True

    def _update(self, statement: str, parameters: dict[str, Any]) -> None:
        if self._db.run(statement, parameters).rowcount != 1:
            raise _ChangedMeanwhile


class _ChangedMeanwhile(Exception):
    """The review was changed since it was read."""


def _row(review: Review) -> dict[str, Any]:
    return {
        "id": review.id,
        "state": review.state.value,
        "round": review.round,
        "request": review.request,
        "proposal_hash": review.proposal_hash,
        "base": pack_base(review.base),
        "proposed": pack_text(review.base, review.proposed),
        "expires_at": review.expires_at,
        "note": review.note,
        "diff_size": _dump_diff_size(review),
    }


def _dump_diff_size(review: Review) -> str | None:
    size = review.diff_size
    return None if size is None else json.dumps(asdict(size))


def _summary(row: Any) -> ReviewSummary:
    change = _read_path_change(row["path_change"])
    return ReviewSummary(
        seq=row["seq"],
        id=row["id"],
        session=row["session"],
        path=(read_path(row["src_path"]) or "") if change is None else change.path,
        root=read_path(row["root_dir"]) or "/",
        state=ReviewState(row["state"]),
        round=row["round"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        decided_by=row["decided_by"],
        path_change=change,
        decided_at=row["decided_at"],
        reason=row["reason"],
        note=row["note"],
        client=ClientInfo(row["client_name"], row["client_version"]),
        diff_size=DiffSize(**json.loads(row["diff_size"])) if row["diff_size"] else None,
        plan_status=PlanStatus(row["plan_status"]),
    )


def _review(row: Any) -> Review:
    base, proposed, answered = row["base"], row["proposed"], row["answered"]
    if row["is_packed"]:
        base = unpack_base(base)
        proposed, answered = unpack_text(base, proposed), unpack_text(base, answered)
    change = _read_path_change(row["path_change"], proposed or b"")
    return Review(
        id=row["id"],
        session=row["session"],
        path=(read_path(row["src_path"]) or "") if change is None else change.path,
        root=read_path(row["root_dir"]) or "/",
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        request=row["request"],
        base=base,
        proposed=proposed or b"",
        seq=row["seq"],
        state=ReviewState(row["state"]),
        version=row["version"],
        round=row["round"],
        answered=answered,
        decided_by=row["decided_by"],
        decided_at=row["decided_at"],
        reason=row["reason"],
        directory=row["source_directory"] if change is None else change.directory,
        path_change=change,
        note=row["note"],
        client=ClientInfo(row["client_name"], row["client_version"]),
    )


def _dump_path_change(change: PathChange | None) -> str | None:
    """Return a change of paths as JSON, without its statement, which is stored as the text that is proposed."""
    if change is None:
        return None
    return json.dumps(
        {name: value for name, value in asdict(change).items() if name != "statement" and value is not None}
    )


def _read_path_change(stored: str | None, statement: bytes = b"") -> PathChange | None:
    if stored is None:
        return None
    fields = json.loads(stored)
    text = statement.decode("utf-8", "surrogateescape")
    return PathChange(kind=ChangeKind(fields.pop("kind")), statement=text, **fields)


def _hash(data: bytes | None) -> str | None:
    return None if data is None else sha256(data).hexdigest()
