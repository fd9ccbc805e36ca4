"""Erases a tenant: every row in every table, until nothing that was under way adds one again, and shows the counts."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from holdfast.errors import ResourceBusy

_SETTLE_SECONDS = 1.5
"""A call that began before its key was revoked has ended by then, or ends into the next round."""
_MAX_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Trace:
    """A file or table that was searched for the tenant after the erasure, its size, and how often the tenant is in it."""

    place: str
    bytes: int
    occurrences: int


class TenantEraser(Protocol):
    """Counts, deletes and looks for what a database holds of a tenant."""

    def count(self, tenant: str) -> Mapping[str, int]:
        """Return how many rows of the tenant each table holds."""

    def delete(self, tenant: str) -> None:
        """Delete every row of the tenant, and overwrite or give back the space that they were in."""

    def find_traces(self, tenant: str) -> list[Trace]:
        """Search what is left for the tenant."""

    def close(self) -> None:
        """Close every connection."""


@dataclass(frozen=True, slots=True)
class ErasedTenant:
    """The proof of an erasure: rows by table before and after, and where the tenant was searched for."""

    tenant: str
    before: Mapping[str, int]
    after: Mapping[str, int]
    traces: tuple[Trace, ...]


def erase_tenant(
    eraser: TenantEraser,
    tenant: str,
    forget_keys: Callable[[str], object],
    pause: Callable[[float], None] = time.sleep,
) -> ErasedTenant:
    """Erase a tenant whose keys open nothing any more; the keys are forgotten last. ResourceBusy when somebody still writes
    for it.
    """
    before = eraser.count(tenant)
    for _ in range(_MAX_ROUNDS):
        eraser.delete(tenant)
        pause(_SETTLE_SECONDS)
        after = eraser.count(tenant)
        if not any(after.values()):
            forget_keys(tenant)
            return ErasedTenant(tenant, before, after, tuple(eraser.find_traces(tenant)))
    raise ResourceBusy(
        "Rows were added again and again while the tenant was erased: it still has a way in. Rows left: "
        + ", ".join(f"{table} {count}" for table, count in after.items() if count)
    )
