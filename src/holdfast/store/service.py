"""The use cases of the store: each takes the caller first, and every statement below is scoped by its tenant."""

from collections.abc import Callable
from datetime import datetime

from holdfast.auth.context import AuthContext
from holdfast.clock import utc_clock
from holdfast.store import delete, history, listing, projects, read, rename, restore, stat, write
from holdfast.store.model import ContentSlice, DirectoryListing, ProjectSummary, Stat, StoreLimits, Version, tenant_of
from holdfast.store.mutation import Desk
from holdfast.store.ports import StoreDatabase, StoreUpkeep


class Store:
    """Files of every tenant; a caller sees and changes its own alone. PermissionDenied without a caller."""

    def __init__(self, database: StoreDatabase, limits: StoreLimits, now: Callable[[], datetime] = utc_clock) -> None:
        self._desk = Desk(database, limits, now)

    def stat(self, auth: AuthContext | None, project: str, path: str) -> Stat:
        """Return what is at a path."""
        return stat.stat(self._desk, tenant_of(auth), project, path)

    def read(
        self, auth: AuthContext | None, project: str, path: str, offset: int = 0, length: int = -1
    ) -> ContentSlice:
        """Return the text of a byte range."""
        return read.read(self._desk, tenant_of(auth), project, path, offset, length)

    def write(
        self,
        auth: AuthContext | None,
        project: str,
        path: str,
        content: str,
        content_encoding: str = "utf-8",
        offset: int = 0,
        mode: str = "APPEND",
        idempotency_key: str | None = None,
    ) -> int:
        """Write and return the bytes of the content."""
        return write.write(
            self._desk, tenant_of(auth), project, path, content, content_encoding, offset, mode, idempotency_key
        )

    def delete(
        self,
        auth: AuthContext | None,
        project: str,
        path: str,
        *,
        recursive: bool = False,
        idempotency_key: str | None = None,
    ) -> int:
        """Delete and return the number of files."""
        return delete.delete(
            self._desk, tenant_of(auth), project, path, recursive=recursive, idempotency_key=idempotency_key
        )

    def rename(
        self,
        auth: AuthContext | None,
        project: str,
        from_path: str,
        to_path: str,
        *,
        overwrite: bool = False,
        idempotency_key: str | None = None,
    ) -> int:
        """Move and return the number of files."""
        return rename.rename(
            self._desk,
            tenant_of(auth),
            project,
            from_path,
            to_path,
            overwrite=overwrite,
            idempotency_key=idempotency_key,
        )

    def listing(
        self, auth: AuthContext | None, project: str, path: str = "", depth: int = 1, limit: int = 0
    ) -> DirectoryListing:
        """Return the entries of a directory."""
        return listing.listing(self._desk, tenant_of(auth), project, path, depth, limit)

    def history(self, auth: AuthContext | None, project: str, path: str) -> list[Version]:
        """Return the kept versions of a path."""
        return history.history(self._desk, tenant_of(auth), project, path)

    def version_text(self, auth: AuthContext | None, project: str, path: str, version: int) -> str:
        """Return the text of one version."""
        return history.version_text(self._desk, tenant_of(auth), project, path, version)

    def restore(
        self, auth: AuthContext | None, project: str, path: str, version: int, idempotency_key: str | None = None
    ) -> int:
        """Bring back a version and return its bytes."""
        return restore.restore(self._desk, tenant_of(auth), project, path, version, idempotency_key)

    def projects(self, auth: AuthContext | None) -> list[ProjectSummary]:
        """Return the caller's projects."""
        return projects.projects(self._desk, tenant_of(auth))

    def purge(self, upkeep: StoreUpkeep) -> int:
        """Remove, for every tenant, what has outlived its time; returns the rows removed. For the worker alone."""
        limits = self._desk.limits
        return upkeep.purge(
            self._desk.days_ago(limits.delete_retention_days),
            self._desk.days_ago(limits.version_days),
            self._desk.days_ago(limits.idempotency_days),
        )

    def close(self) -> None:
        """Give up the database."""
        self._desk.database.close()
