"""What a mutation of the store asks and writes, in the words of the named statements that both databases have."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.store.model import AppliedRequest, FileSummary, IndexJob, ProjectState, Stamp, StoredFile
from holdfast.store.paths import Move, Span


class StatementMutation(ABC):
    """Implements `holdfast.store.ports.Mutation` but for how a database is asked and when it is written to."""

    def find_applied(self, key: str) -> AppliedRequest | None:
        """Return what a mutation with that idempotency key did before."""
        rows = self._rows("find_applied", key=key)
        return AppliedRequest(**rows[0]) if rows else None

    def files_in(self, span: Span) -> list[FileSummary]:
        """Return the live files of a span in byte order."""
        return [FileSummary(**row) for row in self._rows("files_in", low=span.low, high=span.high)]

    def files_among(self, paths: Sequence[str]) -> list[str]:
        """Return those of the paths that are live files."""
        return [row["path"] for row in self._rows("files_among", paths=json.dumps(list(paths)))]

    def directories_among(self, paths: Sequence[str]) -> list[str]:
        """Return those of the paths that have live files beneath them."""
        return [row["path"] for row in self._rows("directories_among", paths=json.dumps(list(paths)))]

    def version_content(self, path: str, version: int, since: datetime) -> bytes | None:
        """Return bytes that a path had, None when they are not kept."""
        rows = self._rows("version_content", path=path, version=version, since=since)
        return rows[0]["content"] if rows else None

    def create(self, path: str, content: bytes, stamp: Stamp) -> None:
        """Add a file."""
        self._write("insert_file", stamp, path=path, content=content, size=len(content))

    def replace(self, file: StoredFile, content: bytes, stamp: Stamp, versions_kept: int) -> None:
        """Give a file new bytes and keep the ones before as a version."""
        self._write("keep_version", stamp, path=file.path)
        self._write("update_file", stamp, path=file.path, content=content, size=len(content))
        self._write("prune_versions", stamp, id=file.id, kept=versions_kept)

    def append(self, file: StoredFile, tail: bytes, stamp: Stamp, versions_kept: int) -> None:
        """Add bytes to the end of a file and keep the ones before as a version."""
        self._write("keep_version", stamp, path=file.path)
        self._write("append_file", stamp, path=file.path, tail=tail, size=file.size + len(tail))
        self._write("prune_versions", stamp, id=file.id, kept=versions_kept)

    def delete(self, span: Span, stamp: Stamp) -> None:
        """Mark the live files of a span as deleted."""
        self._write("delete_files", stamp, low=span.low, high=span.high)

    def move(self, moves: Sequence[Move], stamp: Stamp) -> None:
        """Give live files other paths."""
        self._write("move_files", stamp, moves=json.dumps([[move.source, move.target] for move in moves]))

    def enqueue(self, jobs: Sequence[IndexJob], stamp: Stamp) -> None:
        """Add index jobs, in the order of their paths, as whoever changes several jobs at once: nobody waits in turn."""
        in_order = sorted([job.path, job.operation] for job in jobs)
        self._write("enqueue_jobs", stamp, jobs=json.dumps(in_order))

    def settle(self, state: ProjectState, stamp: Stamp, applied: AppliedRequest | None) -> None:
        """Write the project's counters, and what was answered when the caller may ask again."""
        self._write("save_project", stamp, file_count=state.file_count, total_bytes=state.total_bytes)
        if applied is not None:
            self._write("remember_applied", stamp, key=applied.key, digest=applied.digest, answer=applied.answer)

    @abstractmethod
    def _rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        """Return what a statement finds; RuntimeError once something was written."""

    @abstractmethod
    def _write(self, name: str, stamp: Stamp, **parameters: Any) -> None:
        """Run a statement by the end of the block."""
