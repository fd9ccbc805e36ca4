"""The store on SQLite: one file per tenant, a lock per project, one short write transaction per mutation."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.adapters.sqlite.store.files import TenantFiles, file_name
from holdfast.adapters.sqlite.store.locks import ProjectLocks, busy
from holdfast.adapters.sqlite.store.mutation import SqliteMutation
from holdfast.adapters.sqlite.store.reading import SqliteReading
from holdfast.adapters.sqlite.store.rows import run


class SqliteStore:
    """Every tenant's files beneath one private folder."""

    def __init__(self, folder: str) -> None:
        self.files = TenantFiles(folder)
        self._locks = ProjectLocks(os.path.join(folder, "locks"))

    @contextmanager
    def mutation(self, tenant: str, project: str, lock_timeout_ms: int) -> Iterator[SqliteMutation]:
        """Hold a project's lock and change it; ResourceBusy when the lock is not free in time."""
        deadline = time.monotonic() + lock_timeout_ms / 1000
        with self._locks.hold(tenant, project, deadline):
            with self.files.snapshot(tenant) as connection:
                change = SqliteMutation(connection, tenant, project)
                yield change
            if change.steps:
                self._commit(tenant, project, change, time.monotonic() + lock_timeout_ms / 1000)
                self.files.changed()

    def snapshot(self, tenant: str) -> SqliteReading:
        """Look at one moment of a tenant's store."""
        return SqliteReading(self.files.snapshot(tenant), tenant)

    def close(self) -> None:
        """Close every connection."""
        self.files.close()

    def _commit(self, tenant: str, project: str, change: SqliteMutation, deadline: float) -> None:
        try:
            with self.files.writing(file_name(tenant), deadline) as connection:
                for step in change.steps:
                    run(connection, step.name, step.parameters)
        except sqlite3.IntegrityError as error:
            # How `save_project` refuses a version that is not the next one.
            if str(error) == "NOT NULL constraint failed: mcp_projects.version":
                raise busy(project) from None
            raise
