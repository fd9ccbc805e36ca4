"""The reviews in state.db, in the same transactions as their plans."""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from holdfast.adapters.sqlite.state.database import Database
from holdfast.adapters.sqlite.state.journal import SqliteJournal
from holdfast.adapters.sqlite.state.journal_rows import read_path, stored_path
from holdfast.changes.model import PlanStatus
from holdfast.review.model import Action, Listed, Review, action_of

_NEWEST = 2**63 - 1


def reviews_beside(journal: SqliteJournal) -> "SqliteReviews":
    """Return the reviews of the database that a journal has open."""
    return SqliteReviews(journal._db)


class SqliteReviews:
    """Implements `holdfast.review.ports.ReviewBook`."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, review: Review) -> None:
        """Keep a review and its plan, as one."""
        item = {
            "plan_id": review.id,
            "src_path": stored_path(review.path),
            "before_hash": _hash(review.base),
            "after_hash": _hash(review.proposed),
            "size_bytes": len(review.base or b""),
        }
        plan = {"id": review.id, "root_dir": stored_path(review.root), "created_at": review.created_at}
        with self._db.transaction(durable=True):
            self._db.run("insert_review_plan", plan)
            self._db.run("insert_review_item", item)
            self._db.run("insert_review", {"session": review.session, "version": review.version, **_row(review)})

    def find(self, review_id: str) -> Review | None:
        """Return a review with its texts."""
        rows = self._db.fetch("find_review", {"id": review_id})
        return _review(rows[0]) if rows else None

    def find_session(self, session: str) -> Review | None:
        """Return the review of a session."""
        rows = self._db.fetch("review_of_session", {"session": session})
        return self.find(rows[0]["plan_id"]) if rows else None

    def find_twin(self, twin: str, rejected_since: str) -> Review | None:
        """Return the newest review of an equal proposal."""
        rows = self._db.fetch("review_twin", {"twin": twin, "rejected_since": rejected_since})
        return self.find(rows[0]["plan_id"]) if rows else None

    def listed(self, roots: Sequence[str] | None, limit: int, before_seq: int | None) -> list[Listed]:
        """Return open reviews, newest first."""
        parameters = {
            "roots": None if roots is None else json.dumps(list(roots)),
            "limit": limit,
            "before_seq": _NEWEST if before_seq is None else before_seq,
        }
        return [
            Listed(
                seq=row["seq"],
                id=row["id"],
                session=row["session"],
                path=read_path(row["src_path"]) or "",
                root=read_path(row["root_dir"]) or "/",
                action=action_of(PlanStatus(row["status"]), None, has_answer=bool(row["has_answer"])),
                round=row["round"],
                created_at=row["created_at"],
                expires_at=row["expires_at"],
                decided_by=row["decided_by"],
            )
            for row in self._db.fetch("list_reviews", parameters)
        ]

    def replace(self, before: Review, after: Review) -> bool:
        """Store the review if nobody changed it since it was read."""
        plan = {"id": before.id, "status": after.status.value, "was": before.status.value}
        try:
            with self._db.transaction(durable=True):
                self._change("save_review", {**_row(after), **_words(after), "version": before.version})
                self._change("save_review_plan", plan)
                self._db.run("save_review_item", {"id": after.id, "after_hash": _hash(after.text)})
        except _ChangedMeanwhile:
            return False
        return True

    def forget(self, review_id: str) -> None:
        """Let a review's texts go."""
        with self._db.transaction(durable=False):
            self._db.run("forget_texts", {"id": review_id})

    def sweep(self) -> set[str]:
        """Let the texts of ended reviews go and say which sessions are open."""
        for row in self._db.fetch("ended_reviews"):
            self.forget(row["plan_id"])
        return {row["session"] for row in self._db.fetch("open_sessions")}

    def _change(self, name: str, parameters: dict[str, Any]) -> None:
        if self._db.run(name, parameters).rowcount != 1:
            raise _ChangedMeanwhile


class _ChangedMeanwhile(Exception):
    """Somebody else was first."""


def _row(review: Review) -> dict[str, Any]:
    return {
        "id": review.id,
        "round": review.round,
        "request": review.request,
        "twin": review.twin,
        "base": review.base,
        "proposed": review.proposed,
        "expires_at": review.expires_at,
    }


def _words(review: Review) -> dict[str, Any]:
    ended = review.closed_as is not None
    return {
        "proposed": None if ended else review.proposed,
        "answered": review.answered,
        "decided_by": review.decided_by,
        "decided_at": review.decided_at,
        "reason": review.reason,
        "closed_as": review.closed_as.value if review.closed_as else None,
    }


def _review(row: Any) -> Review:
    return Review(
        id=row["id"],
        session=row["session"],
        path=read_path(row["src_path"]) or "",
        root=read_path(row["root_dir"]) or "/",
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        request=row["request"],
        base=row["base"],
        proposed=row["proposed"] or b"",
        seq=row["seq"],
        status=PlanStatus(row["status"]),
        version=row["version"],
        round=row["round"],
        answered=row["answered"],
        decided_by=row["decided_by"],
        decided_at=row["decided_at"],
        reason=row["reason"],
        closed_as=Action(row["closed_as"]) if row["closed_as"] else None,
    )


def _hash(data: bytes | None) -> str | None:
    return None if data is None else sha256(data).hexdigest()
