"""Pure: what a tenant may hold in all of its projects together, and what a change does to it.

History is what the store keeps besides live files: versions, and deleted files until their purge.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.errors import QuotaExceeded
from holdfast.text.display import quantity

_WARN_AT = 0.8
_IN_FLIGHT = 64
"""Changes of one tenant that may run at once without exceeding its share unnoticed, each as large as two files."""


@dataclass(frozen=True, slots=True)
class TenantShare:
    """The most that a tenant may hold, in bytes; 0 is no limit. Below `margin_bytes` of it there is nothing to check."""

    max_bytes: int = 0
    margin_bytes: int = 0


NO_LIMIT = TenantShare()


class TenantUsage(NamedTuple):
    """What a tenant holds in all of its projects: bytes of live files, and of versions and deleted files."""

    live_bytes: int = 0
    history_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """Return both together, which is what the share limits."""
        return self.live_bytes + self.history_bytes


class Growth(NamedTuple):
    """What one change adds to a tenant's usage: to its live files, and to its history. Either may be negative."""

    live_bytes: int
    history_bytes: int


def share_of(max_tenant_bytes: int, max_file_bytes: int) -> TenantShare:
    """Return the share that the settings give to each tenant."""
    return TenantShare(max_tenant_bytes, 2 * _IN_FLIGHT * max_file_bytes)


def describe_usage(usage: TenantUsage, max_bytes: int) -> str:
    """Return what a tenant holds, and of how much, as one sentence."""
    text = (
        f"In all projects: {usage.live_bytes:,} bytes of files, {usage.history_bytes:,} of versions and deleted files"
    )
    return f"{text}; the limit for both is {max_bytes:,} bytes." if max_bytes else f"{text}."


def describe_usages(usages: Sequence[TenantUsage], max_bytes: int) -> tuple[str, bool]:
    """Return what all tenants hold as one sentence, and whether one of them has used 80 % of its share."""
    files, history = (sum(usage[column] for usage in usages) for column in (0, 1))
    text = f"{quantity(len(usages), 'tenant')}, {files:,} bytes of files, {history:,} of versions and deleted files"
    if not max_bytes or not usages:
        return text, False
    most = max(usage.total_bytes for usage in usages)
    return f"{text}; one uses {most * 100 // max_bytes} % of its {max_bytes:,} bytes", most >= _WARN_AT * max_bytes


def is_near_limit(usage: TenantUsage, share: TenantShare) -> bool:
    """Return whether a change could take a tenant over its share, others that run beside it included."""
    return share.max_bytes > 0 and usage.total_bytes > share.max_bytes - share.margin_bytes


def excess_after(usage: TenantUsage, growth: Growth, share: TenantShare) -> int:
    """Return how many bytes of history have to go so that a change keeps within the share; 0 when none.

    QuotaExceeded when the live files alone would be too much, unless the change adds nothing to them.
    """
    if not share.max_bytes:
        return 0
    live_bytes = usage.live_bytes + growth.live_bytes
    if growth.live_bytes > 0 and live_bytes > share.max_bytes:
        raise QuotaExceeded(
            f"your files of all projects would hold {live_bytes} bytes; the limit is {share.max_bytes}. "
            f"They hold {quantity(usage.live_bytes, 'byte')}, and versions and deleted files {usage.history_bytes}, which"
            " make room by themselves. Delete or shorten files that are no longer needed"
            " (the limit is settings.mcp.files.max_tenant_bytes)."
        )
    return max(0, usage.total_bytes + growth.live_bytes + growth.history_bytes - share.max_bytes)
