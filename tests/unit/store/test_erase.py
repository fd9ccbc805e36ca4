"""A tenant is erased until nothing adds rows again; one that still has a way in is reported, not called erased."""

from collections.abc import Mapping

import pytest

from holdfast.errors import ResourceBusy
from holdfast.store.erase import Trace, erase_tenant


class RefillingEraser:
    """Holds rows that come back so many times."""

    def __init__(self, times: int) -> None:
        self.rows, self._times = 5, times

    def count(self, _tenant: str) -> Mapping[str, int]:
        return {"mcp_files": self.rows}

    def delete(self, _tenant: str) -> None:
        self.rows = 1 if self._times else 0
        self._times -= 1

    def find_traces(self, _tenant: str) -> list[Trace]:
        return [Trace("mcp_files", 0, self.rows)]

    def close(self) -> None:
        raise AssertionError


def test_rows_that_a_call_under_way_adds_are_erased_too_and_keys_go_last() -> None:
    eraser, rows_when_forgotten = RefillingEraser(3), []
    proof = erase_tenant(eraser, "t", lambda _tenant: rows_when_forgotten.append(eraser.rows), lambda _seconds: None)
    assert (proof.before, proof.after) == ({"mcp_files": 5}, {"mcp_files": 0})
    assert [trace.occurrences for trace in proof.traces] == [0]
    assert rows_when_forgotten == [0]


def test_a_tenant_that_goes_on_writing_is_not_called_erased() -> None:
    forgotten_tenants: list[str] = []
    with pytest.raises(ResourceBusy, match="mcp_files 1"):
        erase_tenant(RefillingEraser(1_000), "t", forgotten_tenants.append, lambda _seconds: None)
    assert forgotten_tenants == []
