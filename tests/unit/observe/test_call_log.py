"""The call log takes every record at once, writes in batches, and neither fails nor holds up a call."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.errors import StorageDamaged
from holdfast.observe import call_log
from holdfast.observe.call_log import CallLog, CallLogLimits, EndedCall
from holdfast.observe.model import CallerLabels, CallFilter, CallRecord, CallStatus, LoggedCall
from holdfast.observe.ports import CallsLost
from holdfast.observe.redact import NOT_RECORDED, Redactor

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def ended(
    arguments: dict[str, Any], tenant: str = "local", tool: str = "read_files", *, is_small: bool = True
) -> EndedCall:
    caller = CallerLabels(tenant, "someone", "agent", "desk", "1", "socket")
    return EndedCall(tool, caller, NOW.timestamp(), 1.0, CallStatus.OK, "", arguments, is_small)


class Table:
    """Keeps records in a list; `fault` is raised instead, and nothing is saved while `gate` is closed."""

    def __init__(self) -> None:
        self.batches: list[list[CallRecord]] = []
        self.trimmed: list[tuple[list[str], int]] = []
        self.expired: list[datetime] = []
        self.fault: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.is_closed = False

    @property
    def records(self) -> list[CallRecord]:
        return [saved for batch in self.batches for saved in batch]

    def save(self, records: Sequence[CallRecord]) -> None:
        self.gate.wait(10)
        if self.fault:
            raise self.fault
        self.batches.append(list(records))

    def find(self, tenant: str, call_filter: CallFilter, limit: int, offset: int = 0) -> list[LoggedCall]:
        matching = [saved for saved in self.records if saved.tenant == tenant]
        return [LoggedCall(position, saved) for position, saved in enumerate(matching)][offset : offset + limit]

    def count(self, tenant: str, call_filter: CallFilter) -> int:
        return len(self.find(tenant, call_filter, len(self.records)))

    def trim(self, tenants: Sequence[str], max_rows: int) -> int:
        self.trimmed.append((list(tenants), max_rows))
        return 0

    def expire(self, before: datetime) -> int:
        self.expired.append(before)
        return 0

    def close(self) -> None:
        self.is_closed = True


Make = Callable[..., CallLog]


@pytest.fixture
def local() -> Table:
    return Table()


@pytest.fixture
def tenants() -> Table:
    return Table()


@pytest.fixture
def dropped() -> list[int]:
    return []


@pytest.fixture
def log(local: Table, tenants: Table, dropped: list[int]) -> Iterator[CallLog]:
    redactor = Redactor(lambda: (frozenset({"path", "content"}), frozenset()))
    made = CallLog("local", local, tenants, redactor, CallLogLimits(10, 100), dropped.append, lambda: NOW)
    yield made
    local.gate.set()
    made.close()


def test_rows_go_to_the_table_of_their_tenant_in_order_and_in_one_batch(
    log: CallLog, local: Table, tenants: Table
) -> None:
    for tool in "abc":
        log.add(ended({"path": tool}, tool=tool))
        log.add(ended({}, "t" * 64, tool))
    log.flush()
    assert [[saved.tool for saved in batch] for batch in local.batches] == [["a", "b", "c"]]
    assert [saved.tool for saved in tenants.records] == ["a", "b", "c"]
    assert [saved.parameters for saved in local.records] == [{"path": "a"}, {"path": "b"}, {"path": "c"}]


def test_a_search_sees_what_ended_just_before_it(log: CallLog) -> None:
    for count in range(1, 20):
        log.add(ended({}))
        assert len(log.find("local", CallFilter(), 100)) == count


def test_adding_never_waits_and_what_is_too_much_is_dropped_and_counted(
    log: CallLog, local: Table, dropped: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_log, "_MAX_WAITING", 50)
    local.gate.clear()
    log.add(ended({}))
    log.flush(0.2)
    for _ in range(60):
        log.add(ended({}))
    assert sum(dropped) == 10
    local.gate.set()
    log.flush()
    assert len(local.records) == 51


def test_large_arguments_are_held_for_few_calls_at_once(log: CallLog, local: Table) -> None:
    local.gate.clear()
    log.add(ended({}))
    log.flush(0.2)
    for _ in range(20):
        log.add(ended({"content": "x" * 100_000}, is_small=False))
    local.gate.set()
    log.flush()
    recorded = [saved.parameters or {} for saved in local.records[1:]]
    assert sum("content" in parameters for parameters in recorded) == 8
    assert sum(NOT_RECORDED in parameters for parameters in recorded) == 12
    log.add(ended({"content": "y" * 100_000}, is_small=False))
    log.flush()
    assert "content" in (local.records[-1].parameters or {})


def test_a_table_that_fails_fails_no_call_and_the_log_says_so_once_without_values(
    log: CallLog, local: Table, dropped: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    local.fault = RuntimeError("could not save 's3cr3t'")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            log.add(ended({}))
            log.flush()
    assert sum(dropped) == 3
    assert [entry.message for entry in caplog.records] == ["calls could not be recorded: RuntimeError"]
    local.fault = None
    log.add(ended({}))
    log.flush()
    assert len(local.records) == 1


def test_what_was_lost_of_a_batch_is_counted_and_no_more(
    log: CallLog, tenants: Table, dropped: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    tenants.fault = CallsLost(2)
    tenants.fault.__cause__ = StorageDamaged("x")
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            log.add(ended({}, "t" * 64))
        log.flush()
    assert dropped == [2]
    assert [entry.message for entry in caplog.records] == ["calls could not be recorded: StorageDamaged"]


class Strange(dict[str, Any]):
    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("s3cr3t")


def test_parameters_that_cannot_be_made_cost_the_parameters_alone(log: CallLog, local: Table) -> None:
    log.add(ended(Strange(path="x")))
    log.flush()
    assert [saved.parameters for saved in local.records] == [{NOT_RECORDED: "RuntimeError"}]


def test_old_rows_go_with_the_first_batch_and_surplus_rows_after_some_thousands(
    log: CallLog, local: Table, tenants: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.add(ended({}))
    log.flush()
    until = time.monotonic() + 10
    while not (local.expired and tenants.expired) and time.monotonic() < until:
        time.sleep(0.01)
    assert local.expired == tenants.expired == [NOW - timedelta(days=10)]
    monkeypatch.setattr(call_log, "_TRIM_ROWS", 5)
    local.trimmed.clear()
    for _ in range(6):
        log.add(ended({}))
    log.flush()
    while not local.trimmed and time.monotonic() < until:
        time.sleep(0.01)
    assert local.trimmed == [(["local"], 100)]


def test_closing_writes_what_waits_and_takes_no_more(
    log: CallLog, local: Table, tenants: Table, dropped: list[int]
) -> None:
    log.add(ended({}))
    log.close()
    assert len(local.records) == 1
    assert local.is_closed and tenants.is_closed
    log.add(ended({}))
    assert dropped == [1]
