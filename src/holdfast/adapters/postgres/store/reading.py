"""One moment of a tenant's store in PostgreSQL."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.adapters.postgres.store.rows import Connection, run
from holdfast.store.model import FileSummary, PathType, ProjectSummary, Stat, Version, Window
from holdfast.store.paths import Span


class PostgresReading:
    """Reads within one read-only transaction."""

    def __init__(self, connection: Connection, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant

    def stat(self, project: str, path: str, below: Span) -> Stat:
        """Return what is at a path."""
        rows = self._rows("stat_path", project=project, path=path, low=below.low, high=below.high)
        return Stat(**{**rows[0], "type": PathType(rows[0]["type"])}) if rows else Stat()

    def window(self, project: str, path: str, below: Span, start: int, count: int) -> Window | Stat:
        """Return bytes of a file, or what else is at the path."""
        rows = self._rows(
            "read_window", project=project, path=path, low=below.low, high=below.high, start=start, count=count
        )
        if not rows:
            return Stat()
        if rows[0]["type"] == PathType.DIRECTORY:
            return Stat(PathType.DIRECTORY)
        return Window(rows[0]["size"], start, rows[0]["data"] or b"")

    def heads(self, project: str, span: Span, components: int, limit: int) -> list[FileSummary]:
        """Return the first file of each group that shares its first components."""
        rows = self._rows(
            "list_heads", project=project, low=span.low, high=span.high, components=components, limit=limit
        )
        return [FileSummary(**row) for row in rows]

    def directories_among(self, project: str, paths: Sequence[str]) -> list[str]:
        """Return those of the paths that have live files beneath them."""
        return [row["path"] for row in self._rows("directories_among", project=project, paths=json.dumps(list(paths)))]

    def knows(self, project: str, path: str) -> bool:
        """Return whether a path is a live file or one that was deleted and not yet purged."""
        return bool(self._rows("known_path", project=project, path=path)[0]["found"])

    def history(self, project: str, path: str, since: datetime, limit: int) -> list[Version]:
        """Return the versions of a path replaced since then, newest first."""
        rows = self._rows("list_versions", project=project, path=path, since=since, limit=limit)
        return [Version(**row) for row in rows]

    def version_content(self, project: str, path: str, version: int, since: datetime) -> bytes | None:
        """Return bytes that a path had, None when they are not kept."""
        rows = self._rows("version_content", project=project, path=path, version=version, since=since)
        return rows[0]["content"] if rows else None

    def projects(self) -> list[ProjectSummary]:
        """Return the tenant's projects that hold a live file."""
        return [ProjectSummary(**row) for row in self._rows("list_projects")]

    def _rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        return run(self._connection, name, {"apikey_hash": self._tenant, **parameters}).fetchall()
