"""What is known of plans beside their moves, in state.db, and the moves that a path has to do with."""

import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from holdfast.adapters.sqlite.state.journal_rows import read_path, stored_path
from holdfast.adapters.sqlite.state.migrations import migrate
from holdfast.adapters.statements import named_statements
from holdfast.changes.model import is_beneath
from holdfast.organiser.model import (
    DestinationFolder,
    Measures,
    Notes,
    PastMove,
    SkippedFile,
    SkipReason,
    UncertainFile,
)

_BUSY_MS = 10_000
_MOST = 500


def open_plan_notes(state_dir: str) -> "SqlitePlanNotes":
    """Open the notes of a state folder; in a server, after the journal that makes the file."""
    return SqlitePlanNotes(os.path.join(state_dir, "state.db"))


class SqlitePlanNotes:
    """Implements `holdfast.organiser.ports.PlanNotes`, by a connection of its own."""

    def __init__(self, path: str) -> None:
        self._statements = named_statements(__package__, "plan_notes.sql")
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS:d}")
        migrate(self._connection)

    def save(self, plan_id: str, notes: Notes) -> None:
        """Keep the notes of a plan."""
        packed = zlib.compress(json.dumps(asdict(notes)).encode(), 1)
        self._fetch("save_notes", {"plan_id": plan_id, "notes": packed})

    def load(self, plan_id: str) -> Notes | None:
        """Return the notes of a plan."""
        rows = self._fetch("load_notes", {"plan_id": plan_id})
        return _notes(json.loads(zlib.decompress(rows[0][0]))) if rows else None

    def past_of(self, paths: Sequence[str], roots: Sequence[str]) -> list[PastMove]:
        """Return the moves from or to one of the paths, newest first, by plans that lie beneath the roots."""
        asked = json.dumps([path for path in paths if isinstance(stored_path(path), str)])
        rows = self._fetch("past_of", {"paths": asked, "most": _MOST})
        return [_past(row) for row in rows if all(is_beneath(root, roots) for root in _roots(row))]

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    def _fetch(self, name: str, values: dict[str, Any]) -> list[Any]:
        with self._lock:
            return self._connection.execute(self._statements[name], values).fetchall()


def _roots(row: Any) -> list[str]:
    return [read_path(root) or "/" for root in row[4:6] if root is not None]


def _past(row: Any) -> PastMove:
    plan_id, seq, kind, at = row[:4]
    src, dest, status, reasoning, confidence, file_hash = row[6:]
    places = read_path(src) or "", read_path(dest) or ""
    return PastMove(plan_id, seq, kind, at, *places, status, reasoning or "", confidence, file_hash or "")


def _notes(kept: dict[str, Any]) -> Notes:
    measures = kept["measures"]
    skipped = {SkipReason(reason): count for reason, count in measures.pop("skipped").items()}
    return Notes(
        decider=kept["decider"],
        folder=kept.get("folder", ""),
        shelves=tuple(DestinationFolder(**shelf) for shelf in kept["shelves"]),
        doubts=tuple(UncertainFile(**doubt) for doubt in kept["doubts"]),
        doubted=kept["doubted"],
        skips=tuple(SkippedFile(relative, SkipReason(reason), detail) for relative, reason, detail in kept["skips"]),
        measures=Measures(**measures, skipped=skipped),
        decisions=kept["decisions"],
        deep=kept["deep"],
        remark=kept["remark"],
        maker=kept.get("maker", ""),
    )
