"""What the call log needs from a database."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from holdfast.observe.model import CallFilter, CallRecord, LoggedCall


class CallsLost(Exception):
    """Raised when so many records could not be saved; the others are. Its cause is the first fault."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


class CallTable(Protocol):
    """Recorded calls. Safe to use from any thread. A fault of one tenant's place costs no other tenant anything."""

    def save(self, records: Sequence[CallRecord]) -> None:
        """Add records of any tenants; those of a tenant that has no place here are left out. CallsLost for some of them."""

    def find(self, tenant: str, call_filter: CallFilter, limit: int, offset: int = 0) -> list[LoggedCall]:
        """Return the newest calls of a tenant that match, after so many of them."""

    def count(self, tenant: str, call_filter: CallFilter) -> int:
        """Return how many calls of a tenant match."""

    def trim(self, tenants: Sequence[str], max_rows: int) -> int:
        """Remove the oldest calls of these tenants beyond the number; return how many."""

    def expire(self, before: datetime) -> int:
        """Remove the calls of every tenant that began before then; return how many."""

    def close(self) -> None:
        """Close what was opened."""
