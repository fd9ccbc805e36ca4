"""Reads and changes the store's files with the named statements that both databases define."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.errors import ResourceBusy
from holdfast.observe.spans import current_traceparent
from holdfast.store.model import (
    AppliedRequest,
    FileSummary,
    IndexJob,
    ProjectState,
    ProjectSummary,
    Stamp,
    StoredFile,
    Version,
)
from holdfast.store.paths import Move, PathRange
from holdfast.store.tenant_share import Growth, TenantUsage


def project_busy(project: str) -> ResourceBusy:
    """Return the error for a project whose lock is not free in time."""
    return ResourceBusy(f"another change of project {project} is under way; try again")


class StatementSnapshot(ABC):
    """Implements what is the same on both databases of `holdfast.store.ports.StoreSnapshot`."""

    __slots__ = ()

    def find_directories_among(self, project: str, paths: Sequence[str]) -> list[str]:
        """Return those of the paths that have live files beneath them."""
        return [row["path"] for row in self._rows("directories_among", project=project, paths=json.dumps(list(paths)))]

    def knows(self, project: str, path: str) -> bool:
        """Return whether a path is a live file or one that was deleted and not yet purged."""
        return bool(self._rows("known_path", project=project, path=path)[0]["found"])

    def list_versions(self, project: str, path: str, since: datetime, limit: int) -> list[Version]:
        """Return the versions of a path replaced since then, newest first."""
        rows = self._rows("list_versions", project=project, path=path, since=since, limit=limit)
        return [Version(**row) for row in rows]

    def load_version(self, project: str, path: str, version: int, since: datetime) -> bytes | None:
        """Return the bytes of a version, None when they are not kept."""
        rows = self._rows("version_content", project=project, path=path, version=version, since=since)
        return rows[0]["content"] if rows else None

    def list_projects(self) -> list[ProjectSummary]:
        """Return the tenant's projects that hold a live file."""
        return [ProjectSummary(**row) for row in self._rows("list_projects")]

    def usage(self) -> TenantUsage:
        """Return what the tenant holds in all its projects."""
        return TenantUsage(**self._rows("tenant_usage")[0])

    @abstractmethod
    def _rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        """Return the rows of a statement for the snapshot's tenant."""


class StatementMutation(ABC):
    """Implements what is the same on both databases of `holdfast.store.ports.Mutation`."""

    def find_applied(self, key: str) -> AppliedRequest | None:
        """Return the request that was applied under an idempotency key."""
        rows = self._rows("find_applied", key=key)
        return AppliedRequest(**rows[0]) if rows else None

    def list_files_in(self, span: PathRange) -> list[FileSummary]:
        """Return the live files of a span in byte order."""
        return [FileSummary(**row) for row in self._rows("files_in", low=span.low, high=span.high)]

    def find_files_among(self, paths: Sequence[str]) -> list[str]:
        """Return those of the paths that are live files."""
        return [row["path"] for row in self._rows("files_among", paths=json.dumps(list(paths)))]

    def find_directories_among(self, paths: Sequence[str]) -> list[str]:
        """Return those of the paths that have live files beneath them."""
        return [row["path"] for row in self._rows("directories_among", paths=json.dumps(list(paths)))]

    def load_version(self, path: str, version: int, since: datetime) -> bytes | None:
        """Return the bytes of a version, None when they are not kept."""
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

    def delete(self, span: PathRange, stamp: Stamp) -> None:
        """Mark the live files of a span as deleted."""
        self._write("delete_files", stamp, low=span.low, high=span.high)

    def move(self, moves: Sequence[Move], stamp: Stamp) -> None:
        """Give live files other paths."""
        self._write("move_files", stamp, moves=json.dumps([[move.source, move.target] for move in moves]))

    def enqueue(self, jobs: Sequence[IndexJob], stamp: Stamp) -> None:
        """Add index jobs in the order of their paths; workers lock jobs in the same order, so there is no deadlock."""
        in_order = sorted([job.path, job.operation] for job in jobs)
        self._write("enqueue_jobs", stamp, jobs=json.dumps(in_order), traceparent=current_traceparent())

    def settle(self, state: ProjectState, stamp: Stamp, applied: AppliedRequest | None, growth: Growth) -> None:
        """Write the counters, and the answer of a request with an idempotency key."""
        self._write("save_project", stamp, file_count=state.file_count, total_bytes=state.total_bytes)
        if applied is not None:
            self._write("remember_applied", stamp, key=applied.key, digest=applied.digest, answer=applied.answer)
        self._count(growth)

    @abstractmethod
    def _rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        """Return the rows of a statement; RuntimeError once something was written."""

    @abstractmethod
    def _count(self, growth: Growth) -> None:
        """Add what the mutation added to its tenant's usage, less what it pruned, at the latest when the mutation ends."""

    @abstractmethod
    def _write(self, name: str, stamp: Stamp, **parameters: Any) -> None:
        """Run a statement, at the latest when the mutation ends."""
