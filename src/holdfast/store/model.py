"""Pure: the values of the store: files, projects, index jobs, versions, and the limits that apply to them.

What a snapshot returns by the hundred is a named tuple, which is built in a third of a frozen dataclass's time.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from holdfast.auth.context import AuthContext
from holdfast.errors import PermissionDenied

ONE_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """The limits that settings change; sizes in bytes, times in days or milliseconds."""

    allow_root_wipe: bool = False
    max_payload_bytes: int = 2_000_000
    max_file_bytes: int = 10_000_000
    max_project_bytes: int = 100_000_000
    max_tenant_bytes: int = 10_000_000_000
    list_limit_default: int = 256
    list_limit_max: int = 1024
    lock_timeout_ms: int = 3000
    delete_retention_days: float = 30.0
    versions_kept: int = 20
    version_days: float = 30.0
    idempotency_days: float = 7.0


class PathType(StrEnum):
    """What is at a path."""

    FILE = "FILE"
    DIRECTORY = "DIRECTORY"


class Operation(StrEnum):
    """What an index job asks for."""

    UPSERT = "UPSERT"
    DELETE = "DELETE"


class Stage(StrEnum):
    """The stage of an index job: words first, which is fast, then meaning, which may be slow or need a key."""

    WORDS = "words"
    MEANING = "meaning"


class Stat(NamedTuple):
    """What is at a path; a directory has no time of creation, and `type` is None when nothing is there."""

    type: PathType | None = None
    size: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def exists(self) -> bool:
        """Return whether anything is there."""
        return self.type is not None


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A live file as a mutation finds it; `content` is None unless it was requested."""

    id: int
    path: str
    size: int
    created_at: datetime
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class PathLookup:
    """What is at a path, below it and above it: its file, whether files are below, a file where a directory is needed."""

    file: StoredFile | None
    is_directory: bool
    file_above: str | None


class FileSummary(NamedTuple):
    """One live file in a listing of many."""

    path: str
    size: int
    created_at: datetime
    updated_at: datetime


class DirectoryEntry(NamedTuple):
    """One entry of a listing. A directory's times would cost a read of all files below it, so it has none."""

    path: str
    type: PathType
    size: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def name(self) -> str:
        """Return the last component."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class DirectoryListing:
    """The first entries of a directory, and whether there are more."""

    entries: tuple[DirectoryEntry, ...]
    has_more: bool


class Window(NamedTuple):
    """Bytes of a file around a requested range; `size` is the whole file's, `data` starts at `start`."""

    size: int
    start: int
    data: bytes


class ContentSlice(NamedTuple):
    """Text of a file and its byte range; `moved` when the range is not the requested one."""

    text: str
    start: int
    end: int
    moved: bool


class WrittenFile(NamedTuple):
    """The result of a write: how many bytes were given, the size of the file after it, and whether it is a new file.

    `size` is None when the idempotency key shows that the same request was applied before: then nothing was written.
    """

    bytes_written: int
    size: int | None
    is_new: bool


@dataclass(frozen=True, slots=True)
class ProjectState:
    """The counters of a project, which only the holder of its lock changes."""

    version: int = 0
    file_count: int = 0
    total_bytes: int = 0
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ProjectSummary:
    """One project of a tenant."""

    project: str
    file_count: int
    total_bytes: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Stamp:
    """The version and the time of one mutation. The version orders; the time is for people."""

    version: int
    at: datetime


@dataclass(frozen=True, slots=True)
class AppliedRequest:
    """A mutation that was applied under an idempotency key: the hash of its request, and its answer."""

    key: str
    digest: str
    answer: int


@dataclass(frozen=True, slots=True)
class IndexJob:
    """Index work that follows from a mutation."""

    path: str
    operation: Operation


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job under a lease: only the holder of the claim can finish it, and only for the version it was claimed with.

    Backlog jobs index existing files again; all other jobs are of fresh changes. `traceparent` names the span of the write
    that added the job, where that was traced.
    """

    tenant: str
    project: str
    path: str
    operation: Operation
    version: int
    retry_count: int
    id: int
    claim: str
    stage: Stage
    written_at: datetime
    is_backlog: bool = False
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class OpenJob:
    """A job that has not ended; `is_waiting` when it waits for its tenant's model key."""

    project: str
    path: str
    id: int
    is_waiting: bool


@dataclass(frozen=True, slots=True)
class FailedJob:
    """A job that was given up, and why."""

    tenant: str
    project: str
    path: str
    stage: Stage
    attempts: int
    error: str
    failed_at: datetime


@dataclass(frozen=True, slots=True)
class Backlog:
    """The number of jobs of one stage and status, and the time of the oldest change among them."""

    stage: Stage
    status: str
    jobs: int
    oldest_at: datetime


@dataclass(frozen=True, slots=True)
class Version:
    """Bytes that a path had before; `replaced_at` is when they stopped being the file."""

    version: int
    size: int
    written_at: datetime
    replaced_at: datetime


def tenant_of(auth: AuthContext | None) -> str:
    """Return the tenant that every statement is scoped by; PermissionDenied when nobody was authenticated."""
    if auth is None or not auth.apikey_hash:
        raise PermissionDenied("The store needs an authenticated caller: give an API key.")
    return auth.apikey_hash


def next_stamp(state: ProjectState, now: datetime) -> Stamp:
    """Return the stamp of the next mutation of a project: strictly later than the last one, whatever the clock says."""
    last = state.updated_at
    at = now if last is None or now > last else last + ONE_TICK
    return Stamp(state.version + 1, at)
