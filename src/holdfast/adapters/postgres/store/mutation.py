"""One change of a project in PostgreSQL; what is written goes out together with the commit."""

import json
from collections.abc import Sequence
from typing import Any

from holdfast.adapters.mutation_statements import StatementMutation
from holdfast.adapters.postgres.store.rows import Connection, run
from holdfast.store.model import PathLookup, ProjectState, Stamp, StoredFile
from holdfast.store.paths import Span


class PostgresMutation(StatementMutation):
    """Statements within the transaction that holds the project's lock, in pipeline mode."""

    def __init__(self, connection: Connection, scope: dict[str, str]) -> None:
        self._connection = connection
        self._scope = scope
        self._is_written = False
        self._asked_state = run(connection, "project_state", scope)
        self._state: ProjectState | None = None

    @property
    def state(self) -> ProjectState:
        """The project's counters as the lock found them."""
        if self._state is None:
            row = self._asked_state.fetchone()
            self._state = ProjectState(**row) if row else ProjectState()
        return self._state

    def look_up(self, path: str, above: Sequence[str], below: Span, *, with_content: bool) -> PathLookup:
        """Return what is at a path, below it, and above it: three questions, one round trip."""
        asked = self._scope | {"path": path, "with_content": with_content, "low": below.low, "high": below.high}
        file = run(self._connection, "find_file", asked)
        files_above = run(self._connection, "files_among", self._scope | {"paths": json.dumps(list(above))})
        any_below = run(self._connection, "any_file_in", asked)
        found, blocking, inside = file.fetchone(), files_above.fetchone(), any_below.fetchone()
        return PathLookup(
            StoredFile(**found) if found else None,
            bool(inside and inside["found"]),
            blocking["path"] if blocking else None,
        )

    def _rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        if self._is_written:
            raise RuntimeError("a mutation reads before it writes")
        return run(self._connection, name, self._scope | parameters).fetchall()

    def _write(self, name: str, stamp: Stamp, **parameters: Any) -> None:
        self._is_written = True
        run(self._connection, name, {**self._scope, "at": stamp.at, "version": stamp.version, **parameters})
