"""The project store as callers use it: validates a request, then reads a snapshot or runs a mutation.

Each method takes the caller first, and every statement below is scoped by the caller's tenant.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import sha256

from holdfast.auth.context import AuthContext
from holdfast.clock import utc_clock
from holdfast.errors import InvalidOffset, InvalidPath, IsDirectory, PayloadTooLarge, PermissionDenied
from holdfast.observe.spans import record_part
from holdfast.store.browse import Check, DirectoryPage, ProjectBrowser, list_beneath
from holdfast.store.content import (
    check_offset,
    check_range,
    encode_content,
    parse_mode,
    slice_text,
    window_for_range,
)
from holdfast.store.listing import effective_limit, list_levels, list_path
from holdfast.store.model import (
    ContentSlice,
    DirectoryListing,
    FileSummary,
    PathType,
    ProjectSummary,
    Stat,
    StoreLimits,
    Version,
    Window,
    WrittenFile,
    tenant_of,
)
from holdfast.store.mutations import (
    IdempotentRequest,
    MutationContext,
    MutationResult,
    Work,
    delete_counted,
    delete_path,
    identify_request,
    rename_path,
    replace_text,
    restore_deleted,
    restore_version,
    run_mutation,
    stored_version,
    version_not_found,
    write_file,
)
from holdfast.store.paths import (
    ROOT,
    StorePath,
    check_project,
    parse_file_path,
    parse_path,
    path_not_found,
    span_beneath,
)
from holdfast.store.ports import StoreDatabase, StoreUpkeep
from holdfast.store.tenant_share import TenantUsage, share_of


class Store:
    """Files of every tenant; a caller sees and changes its own alone. PermissionDenied without a caller."""

    def __init__(self, database: StoreDatabase, limits: StoreLimits, now: Callable[[], datetime] = utc_clock) -> None:
        self._database = database
        self._limits = limits
        self._share = share_of(limits.max_tenant_bytes, limits.max_file_bytes)
        self._now = now
        self._browser = ProjectBrowser()

    def stat(self, auth: AuthContext | None, project: str, path: str) -> Stat:
        """Return type, size and times of what is at a path; that nothing is there is no error."""
        tenant, project, checked = tenant_of(auth), check_project(project), parse_path(path)
        with self._database.snapshot(tenant) as snapshot:
            return snapshot.stat(project, checked, span_beneath(checked))

    def read(
        self, auth: AuthContext | None, project: str, path: str, offset: int = 0, length: int = -1
    ) -> ContentSlice:
        """Return the text of a byte range; a range past the end is empty. InvalidOffset, IsDirectory or NotFound."""
        tenant, project, checked = tenant_of(auth), check_project(project), parse_file_path(path)
        check_range(offset, length)
        start, count = window_for_range(offset, length)
        with self._database.snapshot(tenant) as snapshot:
            window = snapshot.read_window(project, checked, span_beneath(checked), start, count)
        if isinstance(window, Stat):
            raise IsDirectory(f"path is a directory: {checked}") if window.exists else path_not_found(checked)
        return slice_text(window, offset, length)

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
    ) -> WrittenFile:
        """Write text; what the file held before is kept as a version."""
        tenant, project, checked = tenant_of(auth), check_project(project), parse_file_path(path)
        write_mode = parse_mode(mode)
        check_offset(write_mode, offset)
        data = encode_content(content, content_encoding)
        if len(data) > self._limits.max_payload_bytes:
            raise PayloadTooLarge(f"content has {len(data)} bytes; the limit is {self._limits.max_payload_bytes}")
        request = identify_request(idempotency_key, "write", checked, content, offset, write_mode)
        result = self._mutate(
            tenant, project, request, lambda context: write_file(context, checked, data, write_mode, offset)
        )
        return _written_file(result)

    def delete(
        self,
        auth: AuthContext | None,
        project: str,
        path: str,
        *,
        recursive: bool = False,
        idempotency_key: str | None = None,
    ) -> int:
        """Delete and return the number of files; NotFound, NotEmpty for a directory without `recursive`."""
        tenant, project, checked = tenant_of(auth), check_project(project), parse_path(path)
        if checked == ROOT and not recursive:
            raise InvalidPath(
                "path must name a file or directory; the root of a project can only be deleted recursively"
            )
        if checked == ROOT and not self._limits.allow_root_wipe:
            raise PermissionDenied("deleting a whole project is switched off (settings.mcp.files.allow_root_wipe)")
        request = identify_request(idempotency_key, "delete", checked, recursive)
        return self._mutate(
            tenant, project, request, lambda context: delete_path(context, checked, recursive=recursive)
        ).answer

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
        """Move and return the number of files; a directory merges into an existing one only with `overwrite`."""
        tenant, project = tenant_of(auth), check_project(project)
        source, target = parse_file_path(from_path), parse_file_path(to_path)
        request = identify_request(idempotency_key, "rename", source, target, overwrite)
        return self._mutate(
            tenant, project, request, lambda context: rename_path(context, source, target, overwrite=overwrite)
        ).answer

    def listing(
        self, auth: AuthContext | None, project: str, path: str = "", depth: int = 1, limit: int = 0
    ) -> DirectoryListing:
        """Return the first entries of a directory; depth 0 is the path itself. NotFound for what is no directory."""
        tenant, project, checked = tenant_of(auth), check_project(project), parse_path(path)
        if depth < 0:
            raise InvalidOffset(f"depth must be 0 or more: {max(depth, -(10**18))}")
        with self._database.snapshot(tenant) as snapshot:
            if depth == 0:
                return list_path(snapshot, project, checked)
            return list_levels(snapshot, project, checked, depth, effective_limit(limit, self._limits))

    def history(self, auth: AuthContext | None, project: str, path: str) -> list[Version]:
        """Return the kept versions of a path, newest first, also of a deleted one. NotFound for an unknown path."""
        tenant, project, checked = tenant_of(auth), check_project(project), parse_file_path(path)
        since = self._days_ago(self._limits.version_days)
        with self._database.snapshot(tenant) as snapshot:
            versions = snapshot.list_versions(project, checked, since, self._limits.versions_kept)
            if not versions and not snapshot.knows(project, checked):
                raise path_not_found(checked)
            return versions

    def version_text(self, auth: AuthContext | None, project: str, path: str, version: int) -> str:
        """Return the text of one version; NotFound when it is not kept."""
        tenant, project, checked = tenant_of(auth), check_project(project), parse_file_path(path)
        since = self._days_ago(self._limits.version_days)
        with self._database.snapshot(tenant) as snapshot:
            content = snapshot.load_version(project, checked, stored_version(version), since)
        if content is None:
            raise version_not_found(checked, version)
        return content.decode()

    def restore(
        self, auth: AuthContext | None, project: str, path: str, version: int, idempotency_key: str | None = None
    ) -> WrittenFile:
        """Write the bytes of an earlier version; a deleted path comes back. NotFound."""
        tenant, project, checked = tenant_of(auth), check_project(project), parse_file_path(path)
        request = identify_request(idempotency_key, "restore", checked, version)
        since = self._days_ago(self._limits.version_days)
        return _written_file(
            self._mutate(tenant, project, request, lambda context: restore_version(context, checked, version, since))
        )

    def browse(
        self,
        auth: AuthContext | None,
        project: str,
        path: str,
        *,
        offset: int,
        limit: int,
        name_part: str = "",
        check: Check = lambda: None,
    ) -> DirectoryPage:
        """Return a page of a directory with the true total, directories first. NotFound for what is no directory."""
        tenant, project, checked = tenant_of(auth), check_project(project), parse_path(path)
        with self._database.snapshot(tenant) as snapshot:
            return self._browser.browse(
                snapshot, tenant, project, checked, offset=offset, limit=limit, name_part=name_part, check=check
            )

    def list_beneath(
        self, auth: AuthContext | None, project: str, path: str, check: Check = lambda: None
    ) -> list[FileSummary]:
        """Return the file at a path, or every file beneath it, in the order of their paths. NotFound when there is none."""
        tenant, project, checked = tenant_of(auth), check_project(project), parse_path(path)
        with self._database.snapshot(tenant) as snapshot:
            return list_beneath(snapshot, project, checked, check)

    def read_project(
        self, auth: AuthContext | None, project: str, check: Check = lambda: None
    ) -> Iterator[tuple[FileSummary, int, bytes]]:
        """Yield each live file of a project, how many there are, and its bytes; all of one moment. NotFound for none."""
        tenant, project = tenant_of(auth), check_project(project)
        with self._database.snapshot(tenant) as snapshot:
            files = list_beneath(snapshot, project, ROOT, check)
            for summary in files:
                path = StorePath(summary.path)
                window = snapshot.read_window(project, path, span_beneath(path), 0, summary.size)
                if not isinstance(window, Window):
                    raise path_not_found(path)
                yield summary, len(files), window.data

    def hashes_of(self, auth: AuthContext | None, project: str, paths: Sequence[str]) -> dict[str, str]:
        """Return the SHA-256 of what those of the paths hold that are live files, all of one moment."""
        tenant, project, hashes = tenant_of(auth), check_project(project), {}
        with self._database.snapshot(tenant) as snapshot:
            for path in map(parse_file_path, paths):
                stat = snapshot.stat(project, path, span_beneath(path))
                if stat.type is PathType.FILE:
                    window = snapshot.read_window(project, path, span_beneath(path), 0, stat.size)
                    hashes[str(path)] = sha256(window.data if isinstance(window, Window) else b"").hexdigest()
        return hashes

    def replace_text(
        self, auth: AuthContext | None, project: str, path: str, text: str, expected_hash: str | None
    ) -> str:
        """Write a whole text where a file has the expected SHA-256, or none is there; returns its own. Conflict."""
        tenant, project, checked = tenant_of(auth), check_project(project), parse_file_path(path)
        data = encode_content(text, "")
        self._mutate(tenant, project, None, lambda context: replace_text(context, checked, data, expected_hash))
        return sha256(data).hexdigest()

    def delete_counted(self, auth: AuthContext | None, project: str, path: str, expected_files: int) -> list[str]:
        """Delete a file or directory of so many files and return their paths. NotFound, Conflict for another number."""
        tenant, project, checked = tenant_of(auth), check_project(project), parse_file_path(path)
        result = self._mutate(tenant, project, None, lambda context: delete_counted(context, checked, expected_files))
        return [job.path for job in result.jobs]

    def restore_deleted(self, auth: AuthContext | None, project: str, path: str) -> None:
        """Bring back a deleted file as it was last. NotFound when nothing is kept of it, AlreadyExists."""
        tenant, project, checked = tenant_of(auth), check_project(project), parse_file_path(path)
        since = self._days_ago(self._limits.version_days)
        with self._database.snapshot(tenant) as snapshot:
            versions = snapshot.list_versions(project, checked, since, 1)
        if not versions:
            raise path_not_found(checked)
        version = versions[0].version
        self._mutate(tenant, project, None, lambda context: restore_deleted(context, checked, version, since))

    def projects(self, auth: AuthContext | None) -> list[ProjectSummary]:
        """Return the caller's own projects that hold files, by name."""
        with self._database.snapshot(tenant_of(auth)) as snapshot:
            return snapshot.list_projects()

    def usage(self, auth: AuthContext | None) -> TenantUsage:
        """Return what the caller holds in all its projects, versions and deleted files included."""
        with self._database.snapshot(tenant_of(auth)) as snapshot:
            return snapshot.usage()

    @property
    def max_tenant_bytes(self) -> int:
        """Return the most that a tenant may hold; 0 is no limit."""
        return self._share.max_bytes

    def purge(self, upkeep: StoreUpkeep) -> int:
        """Remove, for every tenant, what has outlived its retention; returns the rows removed. For the worker alone."""
        return upkeep.purge(
            self._days_ago(self._limits.delete_retention_days),
            self._days_ago(self._limits.version_days),
            self._days_ago(self._limits.idempotency_days),
        )

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _mutate(self, tenant: str, project: str, request: IdempotentRequest | None, work: Work) -> MutationResult:
        transaction = self._database.mutation(tenant, project, self._limits.lock_timeout_ms, self._share)
        with record_part("store transaction"), transaction as mutation:
            return run_mutation(MutationContext(mutation, self._limits, self._now()), request, work)

    def _days_ago(self, days: float) -> datetime:
        return self._now() - timedelta(days=days)


def _written_file(result: MutationResult) -> WrittenFile:
    return WrittenFile(result.answer, result.size, is_new=result.files > 0)
