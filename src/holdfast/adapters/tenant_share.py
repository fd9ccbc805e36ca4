"""Counts what a tenant holds, and makes room for a change by evicting its oldest history, on both databases.

Both have a table of counters, changed in the transaction that changes the rows that it counts: neither a write nor a
look at the usage reads the rows themselves.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any, NamedTuple

from holdfast.store.tenant_share import Growth, TenantShare, TenantUsage, excess_after

RETURN_SIZES = frozenset({"prune_versions", "purge_file_versions", "purge_files", "purge_versions"})
"""Statements that remove history and answer the size of each row that they removed."""

_EVICTED_AT_ONCE = 256

Run = Callable[[str, Mapping[str, Any]], Sequence[Mapping[str, Any]]]
"""Runs a named statement for one tenant, in the transaction of a change, and returns its rows."""


class _HistoryRow(NamedTuple):
    """One row of history. A deleted file goes after its versions, so a tie in time is settled by `is_file`."""

    kept_at: datetime
    is_file: bool
    file_id: int
    version: int
    size: int


def removed_bytes(rows: Iterable[Any]) -> int:
    """Return the size of what a statement of RETURN_SIZES removed."""
    return sum(row["size"] for row in rows)


def count_growth(run: Run, growth: Growth, share: TenantShare) -> None:
    """Add what a change added to its tenant's counters; over the share the oldest history goes first.

    QuotaExceeded when that is not enough. Nobody else may count for the tenant between this and the commit, unless the
    share has no limit.
    """
    live_bytes, history_bytes = growth
    if share.max_bytes:
        usage = TenantUsage(**run("tenant_usage", {})[0])
        history_bytes -= _evict_oldest(run, excess_after(usage, growth, share))
    if live_bytes or history_bytes:
        run("count_bytes", {"live_bytes": live_bytes, "history_bytes": history_bytes})


def _evict_oldest(run: Run, excess: int) -> int:
    """Remove the oldest history until that many bytes are free, or none is left; returns the bytes."""
    freed = 0
    while freed < excess:
        oldest = list[_HistoryRow]()
        missing = excess - freed
        for row in _find_oldest(run):
            if missing <= 0:
                break
            oldest.append(row)
            missing -= row.size
        versions = [[row.file_id, row.version] for row in oldest if not row.is_file]
        files = [row.file_id for row in oldest if row.is_file]
        removed = [*run("evict_versions", {"versions": json.dumps(versions)})] if versions else []
        removed += run("evict_files", {"files": json.dumps(files)}) if files else []
        if not removed:
            break
        freed += removed_bytes(removed)
    return freed


def _find_oldest(run: Run) -> list[_HistoryRow]:
    """Return the oldest versions and deleted files of a tenant in the order in which they go."""
    limit = {"limit": _EVICTED_AT_ONCE}
    versions = [
        _HistoryRow(row["kept_at"], False, row["file_id"], row["version"], row["size"])
        for row in run("oldest_versions", limit)
    ]
    files = [_HistoryRow(row["deleted_at"], True, row["id"], 0, row["size"]) for row in run("oldest_deleted", limit)]
    # Beyond the end of a list that was cut, the other one is not yet next.
    ends = [max(part) for part in (versions, files) if len(part) == _EVICTED_AT_ONCE]
    return list(takewhile(lambda row: not ends or row <= min(ends), sorted(versions + files)))
