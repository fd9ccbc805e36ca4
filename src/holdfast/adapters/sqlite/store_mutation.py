"""One change of a project in a tenant's store file: reads now, writes gathered for one short transaction."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.adapters.sqlite.store_rows import stored_time, table
from holdfast.store.model import Applied, FileLine, Job, Place, ProjectState, Stamp, StoredFile
from holdfast.store.paths import Move, Span


@dataclass(frozen=True, slots=True)
class Step:
    """A statement to run at the end."""

    name: str
    parameters: dict[str, Any]


class SqliteMutation:
    """Gathers `steps`; nothing is written before the block ends."""

    def __init__(self, connection: sqlite3.Connection, tenant: str, project: str) -> None:
        self._connection = connection
        self._scope = {"apikey_hash": tenant, "project": project}
        self.steps: list[Step] = []
        states = self._rows("project_state")
        self._state = ProjectState(**states[0]) if states else ProjectState()

    @property
    def state(self) -> ProjectState:
        """The project's counters as the lock found them."""
        return self._state

    def applied(self, key: str) -> Applied | None:
        """Return what a mutation with that idempotency key did before."""
        rows = self._rows("find_applied", key=key)
        return Applied(**rows[0]) if rows else None

    def place(self, path: str, above: Sequence[str], below: Span, *, with_content: bool) -> Place:
        """Return what is at a path, below it, and above it."""
        found = self._rows("find_file", path=path, with_content=with_content)
        files_above = self.files_among(above) if above else []
        is_directory = not found and bool(self._rows("any_file_in", low=below.low, high=below.high)[0]["found"])
        return Place(StoredFile(**found[0]) if found else None, is_directory, files_above[0] if files_above else None)

    def files_in(self, span: Span) -> list[FileLine]:
        """Return the live files of a span in byte order."""
        return [FileLine(**row) for row in self._rows("files_in", low=span.low, high=span.high)]

    def files_among(self, paths: Sequence[str]) -> list[str]:
        """Return those of the paths that are live files."""
        return [row["path"] for row in self._rows("files_among", paths=json.dumps(list(paths)))]

    def directories_among(self, paths: Sequence[str]) -> list[str]:
        """Return those of the paths that have live files beneath them."""
        return [row["path"] for row in self._rows("directories_among", paths=json.dumps(list(paths)))]

    def version_content(self, path: str, version: int, since: datetime) -> bytes | None:
        """Return bytes that a path had, None when they are not kept."""
        rows = self._rows("version_content", path=path, version=version, since=stored_time(since))
        return rows[0]["content"] if rows else None

    def create(self, path: str, content: bytes, stamp: Stamp) -> None:
        """Add a file."""
        self._later("insert_file", stamp, path=path, content=content, size=len(content))

    def replace(self, file: StoredFile, content: bytes, stamp: Stamp, versions_kept: int) -> None:
        """Give a file new bytes and keep the ones before as a version."""
        self._later("keep_version", stamp, path=file.path)
        self._later("update_file", stamp, path=file.path, content=content, size=len(content))
        self._later("prune_versions", stamp, id=file.id, kept=versions_kept)

    def append(self, file: StoredFile, tail: bytes, stamp: Stamp, versions_kept: int) -> None:
        """Add bytes to the end of a file and keep the ones before as a version."""
        self._later("keep_version", stamp, path=file.path)
        self._later("append_file", stamp, path=file.path, tail=tail, size=file.size + len(tail))
        self._later("prune_versions", stamp, id=file.id, kept=versions_kept)

    def delete(self, span: Span, stamp: Stamp) -> None:
        """Mark the live files of a span as deleted."""
        self._later("delete_files", stamp, low=span.low, high=span.high)

    def move(self, moves: Sequence[Move], stamp: Stamp) -> None:
        """Give live files other paths."""
        self._later("move_files", stamp, moves=json.dumps([[move.source, move.target] for move in moves]))

    def enqueue(self, jobs: Sequence[Job], stamp: Stamp) -> None:
        """Add index jobs."""
        self._later("enqueue_jobs", stamp, jobs=json.dumps([[job.path, job.operation] for job in jobs]))

    def settle(self, state: ProjectState, stamp: Stamp, applied: Applied | None) -> None:
        """Write the project's counters, and what was answered when the caller may ask again."""
        self._later("save_project", stamp, file_count=state.file_count, total_bytes=state.total_bytes)
        if applied is not None:
            self._later("remember_applied", stamp, key=applied.key, digest=applied.digest, answer=applied.answer)

    def _rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        if self.steps:
            raise RuntimeError("a mutation reads before it writes")
        return table(self._connection, name, {**self._scope, **parameters})

    def _later(self, name: str, stamp: Stamp, **parameters: Any) -> None:
        stamped = {**self._scope, "at": stored_time(stamp.at), "version": stamp.version}
        self.steps.append(Step(name, {**stamped, **parameters}))
