"""Keeps the notes of plans in state.db, and finds moves in the journal by path.

The keys of the stored JSON are a format of their own: notes that an earlier version wrote must stay readable.
"""

import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from holdfast.adapters.sqlite.state.database import read_path, state_errors, stored_path
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
_MAX_MOVES = 500


def open_plan_notes(state_dir: str) -> "SqlitePlanNotes":
    """Open the notes in a state folder; in a server, after the journal, which creates the file."""
    return SqlitePlanNotes(os.path.join(state_dir, "state.db"))


class SqlitePlanNotes:
    """Implements `holdfast.organiser.ports.PlanNotes`, with a connection of its own."""

    def __init__(self, path: str) -> None:
        self._statements = named_statements(__package__, "plan_notes.sql")
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        with state_errors():
            self._connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS:d}")
            migrate(self._connection)

    def save(self, plan_id: str, notes: Notes) -> None:
        """Save the notes of a plan."""
        compressed = zlib.compress(json.dumps(_to_json(notes)).encode(), 1)
        self._fetch("save_notes", {"plan_id": plan_id, "notes": compressed})

    def load(self, plan_id: str) -> Notes | None:
        """Return the notes of a plan."""
        rows = self._fetch("load_notes", {"plan_id": plan_id})
        return _from_json(json.loads(zlib.decompress(rows[0][0]))) if rows else None

    def find_moves(self, paths: Sequence[str], roots: Sequence[str]) -> list[PastMove]:
        """Return the moves from or to one of the paths, newest first, by plans that lie beneath the roots."""
        stored = json.dumps([path for path in paths if isinstance(stored_path(path), str)])
        rows = self._fetch("find_moves", {"paths": stored, "max_moves": _MAX_MOVES})
        return [_read_move(row) for row in rows if all(is_beneath(root, roots) for root in _read_roots(row))]

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    def _fetch(self, name: str, values: dict[str, Any]) -> list[Any]:
        with self._lock, state_errors():
            return self._connection.execute(self._statements[name], values).fetchall()


def _read_roots(row: Any) -> list[str]:
    return [read_path(root) or "/" for root in row[4:6] if root is not None]


def _read_move(row: Any) -> PastMove:
    plan_id, seq, kind, moved_at = row[:4]
    src, dest, status, reasoning, confidence, file_hash = row[6:]
    paths = read_path(src) or "", read_path(dest) or ""
    return PastMove(plan_id, seq, kind, moved_at, *paths, status, reasoning or "", confidence, file_hash or "")


def _to_json(notes: Notes) -> dict[str, Any]:
    measures = asdict(notes.measures)
    measures["kept"] = measures.pop("staying")
    return {
        "decider": notes.decider,
        "folder": notes.folder,
        "shelves": [
            {"name": folder.name, "folder": folder.folder, "is_new": folder.is_new, "known": folder.example_count}
            for folder in notes.destinations
        ],
        "doubts": [_uncertain_to_json(file) for file in notes.uncertain],
        "doubted": notes.uncertain_count,
        "skips": notes.skipped,
        "measures": measures,
        "decisions": dict(notes.decisions),
        "decided_by_agent": sorted(notes.agent_decisions),
        "deep": notes.include_subfolders,
        "remark": notes.remark,
        "maker": notes.made_by,
    }


def _uncertain_to_json(file: UncertainFile) -> dict[str, Any]:
    fields = asdict(file)
    fields["look"] = fields.pop("version_text")
    return fields


def _uncertain_from_json(stored: dict[str, Any]) -> UncertainFile:
    return UncertainFile(version_text=stored.pop("look", ""), **stored)


def _from_json(stored: dict[str, Any]) -> Notes:
    measures = stored["measures"]
    skip_counts = {SkipReason(reason): count for reason, count in measures.pop("skipped").items()}
    return Notes(
        decider=stored["decider"],
        folder=stored.get("folder", ""),
        destinations=tuple(
            DestinationFolder(shelf["name"], shelf["folder"], shelf["is_new"], shelf["known"])
            for shelf in stored["shelves"]
        ),
        uncertain=tuple(_uncertain_from_json(file) for file in stored["doubts"]),
        uncertain_count=stored["doubted"],
        skipped=tuple(SkippedFile(path, SkipReason(reason), detail) for path, reason, detail in stored["skips"]),
        measures=Measures(staying=measures.pop("kept"), **measures, skipped=skip_counts),
        decisions=stored["decisions"],
        agent_decisions=frozenset(stored.get("decided_by_agent", ())),
        include_subfolders=stored["deep"],
        remark=stored["remark"],
        made_by=stored.get("maker", ""),
    )
