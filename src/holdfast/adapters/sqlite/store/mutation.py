"""One change of a project in a tenant's store file: reads now, writes gathered for one short transaction."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.adapters.mutation_statements import StatementMutation
from holdfast.adapters.sqlite.store.rows import table
from holdfast.clock import format_utc
from holdfast.store.model import PathLookup, ProjectState, Stamp, StoredFile
from holdfast.store.paths import Span


@dataclass(frozen=True, slots=True)
class PendingStatement:
    """A statement to run at the end."""

    name: str
    parameters: dict[str, Any]


class SqliteMutation(StatementMutation):
    """Gathers `steps`; nothing is written before the block ends."""

    def __init__(self, connection: sqlite3.Connection, tenant: str, project: str) -> None:
        self._connection = connection
        self._scope = {"apikey_hash": tenant, "project": project}
        self.steps: list[PendingStatement] = []
        states = self._rows("project_state")
        self._state = ProjectState(**states[0]) if states else ProjectState()

    @property
    def state(self) -> ProjectState:
        """The project's counters as the lock found them."""
        return self._state

    def look_up(self, path: str, above: Sequence[str], below: Span, *, with_content: bool) -> PathLookup:
        """Return what is at a path, below it, and above it."""
        found = self._rows("find_file", path=path, with_content=with_content)
        files_above = self.files_among(above) if above else []
        is_directory = not found and bool(self._rows("any_file_in", low=below.low, high=below.high)[0]["found"])
        return PathLookup(
            StoredFile(**found[0]) if found else None, is_directory, files_above[0] if files_above else None
        )

    def version_content(self, path: str, version: int, since: datetime) -> bytes | None:
        """Return bytes that a path had, None when they are not kept."""
        rows = self._rows("version_content", path=path, version=version, since=format_utc(since))
        return rows[0]["content"] if rows else None

    def _rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        if self.steps:
            raise RuntimeError("a mutation reads before it writes")
        return table(self._connection, name, {**self._scope, **parameters})

    def _write(self, name: str, stamp: Stamp, **parameters: Any) -> None:
        stamped = {**self._scope, "at": format_utc(stamp.at), "version": stamp.version}
        self.steps.append(PendingStatement(name, {**stamped, **parameters}))
