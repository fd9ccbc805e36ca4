"""One moment of a tenant's store file."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self

from holdfast.adapters.sqlite.store.files import Snapshot
from holdfast.adapters.sqlite.store.rows import run, table, time_at, time_of
from holdfast.clock import format_utc
from holdfast.store.model import FileSummary, PathType, ProjectSummary, Stat, Version, Window
from holdfast.store.paths import Span


class SqliteReading:
    """Reads within one transaction of one connection, which it holds for as long as it is entered."""

    __slots__ = ("_connection", "_snapshot", "_tenant")

    def __init__(self, snapshot: Snapshot, tenant: str) -> None:
        self._snapshot = snapshot
        self._tenant = tenant

    def __enter__(self) -> Self:
        self._connection = self._snapshot.__enter__()
        return self

    def __exit__(self, *_fault: object) -> None:
        self._snapshot.__exit__()

    def stat(self, project: str, path: str, below: Span) -> Stat:
        """Return what is at a path."""
        asked = {"apikey_hash": self._tenant, "project": project, "path": path, "low": below.low, "high": below.high}
        row = run(self._connection, "stat_path", asked).fetchone()
        if row is None:
            return Stat()
        kind, size, created_at, updated_at = row
        return Stat(PathType(kind), size, time_of(created_at), time_of(updated_at))

    def window(self, project: str, path: str, below: Span, start: int, count: int) -> Window | Stat:
        """Return bytes of a file, or what else is at the path."""
        asked = {"apikey_hash": self._tenant, "project": project, "path": path, "low": below.low, "high": below.high}
        row = run(self._connection, "read_window", {**asked, "start": start, "count": count}).fetchone()
        if row is None:
            return Stat()
        kind, size, data = row
        return Window(size, start, data or b"") if kind == PathType.FILE else Stat(PathType(kind))

    def heads(self, project: str, span: Span, components: int, limit: int) -> list[FileSummary]:
        """Return the first file of each group that shares its first components."""
        asked = {"apikey_hash": self._tenant, "project": project, "low": span.low, "high": span.high}
        rows = run(self._connection, "list_heads", {**asked, "components": components, "limit": limit})
        return [FileSummary(path, size, time_at(created), time_at(updated)) for path, size, created, updated in rows]

    def directories_among(self, project: str, paths: Sequence[str]) -> list[str]:
        """Return those of the paths that have live files beneath them."""
        return [row["path"] for row in self._rows("directories_among", project=project, paths=json.dumps(list(paths)))]

    def knows(self, project: str, path: str) -> bool:
        """Return whether a path is a live file or one that was deleted and not yet purged."""
        return bool(self._rows("known_path", project=project, path=path)[0]["found"])

    def history(self, project: str, path: str, since: datetime, limit: int) -> list[Version]:
        """Return the versions of a path replaced since then, newest first."""
        rows = self._rows("list_versions", project=project, path=path, since=format_utc(since), limit=limit)
        return [Version(**row) for row in rows]

    def version_content(self, project: str, path: str, version: int, since: datetime) -> bytes | None:
        """Return bytes that a path had, None when they are not kept."""
        rows = self._rows("version_content", project=project, path=path, version=version, since=format_utc(since))
        return rows[0]["content"] if rows else None

    def projects(self) -> list[ProjectSummary]:
        """Return the tenant's projects that hold a live file."""
        return [ProjectSummary(**row) for row in self._rows("list_projects")]

    def _rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        return table(self._connection, name, {"apikey_hash": self._tenant, **parameters})
