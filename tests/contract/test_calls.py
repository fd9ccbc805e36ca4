"""The call log in each place that keeps it: state.db, a tenant's SQLite file, PostgreSQL."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from holdfast.adapters.postgres import calls as postgres_calls
from holdfast.adapters.postgres.calls import PostgresCalls
from holdfast.adapters.sqlite import calls as sqlite_calls
from holdfast.adapters.sqlite.calls import LocalCalls, TenantCalls
from holdfast.adapters.sqlite.state.journal import open_journal
from holdfast.adapters.sqlite.store.files import file_name
from holdfast.adapters.sqlite.store.store import SqliteStore
from holdfast.auth.context import AuthContext
from holdfast.observe.model import CallFilter, CallRecord, CallStatus
from holdfast.observe.ports import CallsLost, CallTable
from holdfast.store.model import StoreLimits
from holdfast.store.service import Store
from tests.helpers.databases import postgres_backend, sqlite_backend
from tests.helpers.mutants import unguarded

Open = Callable[[bool], CallTable]
AT = datetime(2030, 1, 1, 12, tzinfo=UTC)
ACROSS_TENANTS = {"expire_calls"}


@pytest.fixture(params=["state", "sqlite", "postgres"])
def open_table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Give each place in turn, opened as often as a test wants."""
    with ExitStack() as stack:

        def open_it(adds_tenants: bool) -> CallTable:
            table: CallTable
            if request.param == "state":
                open_journal(str(tmp_path)).close()
                table = LocalCalls(str(tmp_path))
            elif request.param == "sqlite":
                store = SqliteStore(str(tmp_path))
                stack.callback(store.close)
                table = TenantCalls(store.files, adds_tenants=adds_tenants)
            else:
                table = PostgresCalls(request.getfixturevalue("postgres_url"), adds_tenants=adds_tenants)
            stack.callback(table.close)
            return table

        yield open_it


@pytest.fixture
def table(open_table: Open) -> CallTable:
    """Give a place where each tenant has a log."""
    return open_table(True)


def new_tenant() -> str:
    return uuid4().hex + uuid4().hex


def record(tenant: str, number: int = 0, **fields: object) -> CallRecord:
    made = CallRecord(
        id=f"{number:016x}",
        tool="file_write",
        kind="agent",
        tenant=tenant,
        identity="someone",
        client_name="desk",
        client_version="1.2",
        door="http",
        started_at=AT + timedelta(seconds=number),
        duration_ms=1.25,
        status=CallStatus.OK,
        parameters={"path": "a/ü.txt", "content": {"bytes": 3}},
    )
    return made._replace(**fields)  # type: ignore[arg-type]


def numbers(
    table: CallTable, tenant: str, wanted: CallFilter | None = None, limit: int = 100, offset: int = 0
) -> list[int]:
    return [int(entry.record.id, 16) for entry in table.find(tenant, wanted or CallFilter(), limit, offset)]


@pytest.mark.req("SV-30")
def test_a_record_comes_back_as_it_was(table: CallTable) -> None:
    tenant = new_tenant()
    kept = record(tenant, 7, status=CallStatus.ERROR, code="CONFLICT", started_at=AT + timedelta(microseconds=123456))
    table.save([kept])
    assert [entry.record for entry in table.find(tenant, CallFilter(), 10)] == [kept]


@pytest.mark.req("SV-30")
def test_each_filter_narrows_and_pages_go_on_where_the_last_one_ended(table: CallTable) -> None:
    tenant = new_tenant()
    table.save(
        [
            record(tenant, 1),
            record(tenant, 2, tool="file_read"),
            record(tenant, 3, status=CallStatus.ERROR, code="NOT_FOUND"),
            record(tenant, 4, status=CallStatus.CANCELLED, code="CANCELLED"),
            record(tenant, 5, client_name="rival"),
            record(tenant, 6, kind="person"),
        ]
    )
    assert numbers(table, tenant) == [6, 5, 4, 3, 2, 1]
    assert numbers(table, tenant, CallFilter(tool="file_read")) == [2]
    assert numbers(table, tenant, CallFilter(status="error")) == [3]
    assert numbers(table, tenant, CallFilter(code="CANCELLED")) == [4]
    assert numbers(table, tenant, CallFilter(client="rival")) == [5]
    assert numbers(table, tenant, CallFilter(kind="person")) == [6]
    assert numbers(table, tenant, CallFilter(since=AT + timedelta(seconds=5))) == [6, 5]
    assert numbers(table, tenant, CallFilter(until=AT + timedelta(seconds=3))) == [2, 1]
    assert numbers(table, tenant, CallFilter(tool="file_write", client="rival", status="error")) == []
    first = table.find(tenant, CallFilter(), 4)
    assert numbers(table, tenant, CallFilter(before=first[-1].position)) == [2, 1]
    assert numbers(table, tenant, limit=2, offset=3) == [3, 2]
    assert numbers(table, tenant, CallFilter(kind="agent"), limit=2, offset=4) == [1]
    assert numbers(table, tenant, offset=6) == []
    assert table.count(tenant, CallFilter()) == 6
    assert table.count(tenant, CallFilter(kind="agent", before=first[0].position)) == 5
    assert table.count(new_tenant(), CallFilter()) == 0


@pytest.mark.req("SV-30")
def test_a_tenant_sees_trims_and_pages_its_own_calls_alone(table: CallTable) -> None:
    one, other = new_tenant(), new_tenant()
    table.save([record(tenant, number) for number in range(6) for tenant in (one, other)])
    assert numbers(table, one) == numbers(table, other) == [5, 4, 3, 2, 1, 0]
    assert table.trim([one], 2) == 4
    assert numbers(table, one) == [5, 4]
    assert numbers(table, other) == [5, 4, 3, 2, 1, 0]
    assert table.trim([one], 2) == 0


def test_what_is_too_old_goes_for_every_tenant(table: CallTable) -> None:
    tenants = [new_tenant() for _ in range(3)]
    table.save([record(tenant, number) for tenant in tenants for number in range(4)])
    assert table.expire(AT + timedelta(seconds=2)) >= 6
    assert [numbers(table, tenant) for tenant in tenants] == [[3, 2]] * 3


def test_rows_outlive_the_connection(open_table: Open) -> None:
    tenant = new_tenant()
    first = open_table(True)
    first.save([record(tenant, 1)])
    assert numbers(open_table(True), tenant) == [1]


def test_names_that_a_database_cannot_hold_cost_no_row(table: CallTable) -> None:
    tenant = new_tenant()
    table.save([record(tenant, 1, client_name="a\0b\ud800", parameters={"limit": float("nan")})])
    assert numbers(table, tenant) == [1]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_where_any_key_is_a_tenant_only_one_that_stores_files_has_a_log(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    is_sqlite = engine == "sqlite"
    chosen = sqlite_backend(tmp_path) if is_sqlite else postgres_backend(request.getfixturevalue("postgres_url"))
    with chosen as opened, ExitStack() as stack:
        database = opened.database()
        if isinstance(database, SqliteStore):
            table: CallTable = TenantCalls(database.files, adds_tenants=False)
        else:
            table = PostgresCalls(request.getfixturevalue("postgres_url"), adds_tenants=False)
        stack.callback(table.close)
        stranger, known = new_tenant(), new_tenant()
        Store(database, StoreLimits()).write(AuthContext(known, "known"), "p", "/a.txt", "text")
        table.save([record(stranger, 1), record(known, 2)])
        assert numbers(table, stranger) == []
        assert numbers(table, known) == [2]
        if isinstance(database, SqliteStore):
            assert len(database.files.names()) == 1


def test_a_tenants_damaged_file_costs_no_other_tenant_its_log(tmp_path: Path) -> None:
    with ExitStack() as stack:
        store = SqliteStore(str(tmp_path))
        stack.callback(store.close)
        table = TenantCalls(store.files, adds_tenants=True)
        one, damaged, other = sorted(new_tenant() for _ in range(3))
        table.save([record(tenant, 1) for tenant in (one, other)])
        (tmp_path / f"{file_name(damaged)}.db").write_bytes(b"no database at all" * 1_000)
        with pytest.raises(CallsLost) as lost:
            table.save([record(tenant, number) for tenant in (one, damaged, other) for number in (2, 3)])
        assert lost.value.count == 2
        assert numbers(table, one) == numbers(table, other) == [3, 2, 1]
        with pytest.raises(sqlite3.DatabaseError):
            table.trim([one, damaged, other], 2)
        assert numbers(table, one) == numbers(table, other) == [3, 2]
        with pytest.raises(sqlite3.DatabaseError):
            table.expire(AT + timedelta(seconds=3))
        assert numbers(table, one) == numbers(table, other) == [3]


def test_both_databases_have_the_same_statements_and_each_says_whose_rows_it_means() -> None:
    statements = {"sqlite": sqlite_calls.STATEMENTS, "postgres": postgres_calls.STATEMENTS}
    assert {*statements["postgres"]} - {*statements["sqlite"]} == {"has_files"}
    for dialect, named in statements.items():
        pattern = r"%\((\w+)\)s" if dialect == "postgres" else r"(?<!:):([a-z_]+)"
        for name, sql in named.items():
            if name not in ACROSS_TENANTS:
                assert unguarded(sql, dialect) == [], (dialect, name)
            if name != "has_files":
                other = statements["sqlite"][name]
                assert set(re.findall(pattern, sql)) == set(re.findall(r"(?<!:):([a-z_]+)", other)), name
