"""What only PostgreSQL has: a wall of row-level security, two roles, and migrations from several instances."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from holdfast.adapters.postgres.migrate import load_migrations, migrate
from holdfast.adapters.postgres.store.store import lock_key
from holdfast.auth.context import AuthContext
from holdfast.errors import PermissionDenied
from holdfast.store.paths import span_beneath
from tests.helpers.databases import new_caller, postgres_backend, postgres_database, postgres_server

TENANT_TABLES = [
    "mcp_projects",
    "mcp_files",
    "mcp_file_versions",
    "mcp_applied",
    "mcp_file_index_jobs",
    "mcp_file_chunks",
    "mcp_file_chunk_embeddings",
    "mcp_file_chunk_bm25",
]
AS_WORKER_ACROSS = {"mcp_file_index_jobs", "mcp_files", "mcp_file_versions", "mcp_applied"}
INSERT_FILE = (
    "INSERT INTO mcp_files (apikey_hash, project, path, content, size, created_at, updated_at, version, written_version) "
    "VALUES (%s, 'p', '/intruder', 'x', 1, now(), now(), 1, 1)"
)


@pytest.fixture
def peopled(postgres_url: str, me: AuthContext) -> Iterator[tuple[str, AuthContext]]:
    """Give a database in which a tenant has a row in every table."""
    with postgres_backend(postgres_url) as backend:
        store = backend.store()
        for text in ("one", "two"):
            store.write(me, "p", "/a", text, idempotency_key=text)
        store.write(me, "p", "/gone", "x")
        store.delete(me, "p", "/gone")
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(
            "INSERT INTO mcp_file_chunks (apikey_hash, project, file_path, chunk_index, start_byte, end_byte, chunk_content, "
            "content_hash, version, created_at, updated_at) VALUES (%s, 'p', '/a', 0, 0, 3, 'one', %s, 1, now(), now())",
            [me.apikey_hash, "0" * 64],
        )
        owner.execute(
            "INSERT INTO mcp_file_chunk_embeddings SELECT apikey_hash, id, 'm', '[1,2]', now(), now(), project FROM mcp_file_chunks "
            "WHERE apikey_hash = %s",
            [me.apikey_hash],
        )
        owner.execute(
            "INSERT INTO mcp_file_chunk_bm25 (apikey_hash, project, chunk_id, tokens, token_count, tokenizer, created_at, updated_at) "
            "SELECT apikey_hash, project, id, '{}', 1, 't', now(), now() FROM mcp_file_chunks "
            "WHERE apikey_hash = %s",
            [me.apikey_hash],
        )
        yield postgres_url, me


def counts(url: str, role: str, tenant: str | None) -> dict[str, int]:
    """Return how many rows a role sees in each table, with a tenant set or none."""
    with psycopg.connect(url) as connection:
        connection.execute(f"SET ROLE {role}".encode())
        if tenant is not None:
            connection.execute("SELECT set_config('holdfast.apikey_hash', %s, true)", [tenant])
        return {table: one(connection, f"SELECT count(apikey_hash) FROM {table}") for table in TENANT_TABLES}


def one(connection: "psycopg.Connection[Any]", query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


@pytest.mark.req("ST-41")
def test_without_a_tenant_every_table_reads_empty(peopled: tuple[str, AuthContext]) -> None:
    url, me = peopled
    assert set(counts(url, "holdfast_app", None).values()) == {0}
    assert set(counts(url, "holdfast_app", "").values()) == {0}
    assert set(counts(url, "holdfast_app", new_caller().apikey_hash).values()) == {0}
    assert all(counts(url, "holdfast_app", me.apikey_hash).values())


@pytest.mark.req("ST-41")
def test_the_worker_sees_jobs_and_what_may_be_purged_across_tenants_and_nothing_else(
    peopled: tuple[str, AuthContext],
) -> None:
    url, _ = peopled
    seen = _worker_counts(url)
    assert {table for table, count in seen.items() if count} == AS_WORKER_ACROSS
    with psycopg.connect(url) as connection:
        connection.execute("SET ROLE holdfast_worker")
        assert one(connection, "SELECT count(*) FROM mcp_files WHERE NOT deleted") == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT content FROM mcp_file_versions")


def _worker_counts(url: str) -> dict[str, int]:
    with psycopg.connect(url) as connection:
        connection.execute("SET ROLE holdfast_worker")
        readable = [table for table in TENANT_TABLES if table != "mcp_projects"]
        return {table: one(connection, f"SELECT count(apikey_hash) FROM {table}") for table in readable}


@pytest.mark.req("ST-41")
def test_without_a_tenant_or_for_another_one_every_write_is_refused(peopled: tuple[str, AuthContext]) -> None:
    url, me = peopled
    stranger = new_caller().apikey_hash
    for tenant in (None, "", stranger):
        with psycopg.connect(url) as connection:
            connection.execute("SET ROLE holdfast_app")
            if tenant is not None:
                connection.execute("SELECT set_config('holdfast.apikey_hash', %s, true)", [tenant])
            assert connection.execute("UPDATE mcp_files SET size = 0").rowcount == 0
            assert connection.execute("DELETE FROM mcp_file_versions").rowcount == 0
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(INSERT_FILE, [me.apikey_hash])


@pytest.mark.req("ST-41")
def test_the_wall_stands_before_the_owner_too_and_roles_own_nothing(peopled: tuple[str, AuthContext]) -> None:
    url, _ = peopled
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT relname, relrowsecurity, relforcerowsecurity, pg_get_userbyid(relowner) FROM pg_class "
            "WHERE relname = ANY(%s)",
            [TENANT_TABLES],
        ).fetchall()
        assert {row[0] for row in rows} == set(TENANT_TABLES)
        assert all(row[1] and row[2] and row[3] not in ("holdfast_app", "holdfast_worker") for row in rows)
        attributes = connection.execute(
            "SELECT rolsuper, rolbypassrls, rolcanlogin FROM pg_roles WHERE rolname IN ('holdfast_app', 'holdfast_worker')"
        ).fetchall()
        assert attributes == [(False, False, False)] * 2


@pytest.mark.req("ST-41")
def test_a_connection_of_the_store_is_not_the_owner_and_leaves_no_tenant_behind(
    postgres_url: str, me: AuthContext
) -> None:
    with postgres_backend(postgres_url) as backend:
        database: Any = backend.database()
        with database.mutation(me.apikey_hash, "p", 1000):
            pass
        with database.snapshot(me.apikey_hash) as snapshot:
            assert not snapshot.knows("p", "/a")
        seen = []
        for pool in (database._pool, database._readers):
            with pool.connection() as connection:
                seen.append(
                    connection.execute(
                        "SELECT current_user AS role, coalesce(current_setting('holdfast.apikey_hash', true), '') AS tenant, "
                        "current_setting('transaction_isolation') AS isolation, current_setting('transaction_read_only') AS read_only"
                    ).fetchone()
                )
        writer = {"role": "holdfast_app", "tenant": "", "isolation": "read committed", "read_only": "off"}
        assert seen == [writer, {**writer, "isolation": "repeatable read", "read_only": "on"}]


@pytest.mark.req("ST-37")
def test_a_snapshot_is_one_moment_however_many_questions_it_asks(postgres_url: str, me: AuthContext) -> None:
    with postgres_backend(postgres_url) as backend:
        store, database = backend.store(), backend.database()
        store.write(me, "p", "/a", "old")
        with database.snapshot(me.apikey_hash) as snapshot:
            before = snapshot.stat("p", "/a", span_beneath("/a"))
            store.write(me, "p", "/a", " and new")
            store.write(me, "p", "/b", "x")
            assert snapshot.stat("p", "/a", span_beneath("/a")) == before
            assert not snapshot.knows("p", "/b")


@pytest.mark.req("ST-41")
def test_keys_include_the_tenant_and_the_named_indexes_are_there(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        unique = connection.execute(
            "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index "
            "WHERE indisunique AND indrelid::regclass::text = ANY(%s)",
            [TENANT_TABLES],
        ).fetchall()
        assert len(unique) >= len(TENANT_TABLES)
        assert all("(apikey_hash" in definition for _, definition in unique)
        definitions = " ".join(
            row[0] for row in connection.execute("SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'")
        )
    for wanted in (
        "(apikey_hash, project, path) WHERE (NOT deleted)",
        "(apikey_hash, project, path text_pattern_ops) WHERE (NOT deleted)",
        "(deleted_at) WHERE deleted",
        "(apikey_hash, project, file_path, chunk_index)",
        "(apikey_hash, project, file_path text_pattern_ops)",
        "(status, available_at, id)",
        "(apikey_hash, chunk_id, model)",
    ):
        assert wanted in definitions


@pytest.mark.req("ST-41")
def test_migrations_run_from_several_instances_at_once_and_only_once(postgres_server_url: str) -> None:
    with postgres_database(postgres_server_url, migrated=False) as url, ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(migrate, [url] * 4))
        names = [step.name for step in load_migrations()]
        assert sorted(taken) == sorted([names, [], [], []])
        assert migrate(url) == []


def test_migrations_are_numbered_without_a_gap() -> None:
    assert [step.number for step in load_migrations()] == list(range(1, len(load_migrations()) + 1))


def test_a_migration_that_fails_leaves_nothing(postgres_server_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [*load_migrations(), load_migrations()[0]._replace(number=99, name="0099_broken", sql="SELECT 1 / 0")]
    with postgres_database(postgres_server_url, migrated=False) as url:
        with monkeypatch.context() as patched, pytest.raises(psycopg.errors.DivisionByZero):
            patched.setattr("holdfast.adapters.postgres.migrate.load_migrations", lambda: broken)
            migrate(url)
        with psycopg.connect(url) as connection:
            assert one(connection, "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'mcp%'") == 0


@pytest.mark.req("ST-39")
def test_the_lock_of_a_project_is_a_64_bit_number_of_tenant_and_project() -> None:
    keys = {lock_key(tenant, project) for tenant in ("a", "b", "ap") for project in ("p", "q", "pp")}
    assert len(keys) == 9
    assert all(-(2**63) <= key < 2**63 for key in keys)


@pytest.mark.req("ST-41")
def test_an_owner_without_superuser_rights_can_set_up_and_serve(me: AuthContext) -> None:
    with postgres_server() as server:
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute("CREATE ROLE deployer LOGIN CREATEROLE")
            admin.execute("CREATE DATABASE hosted OWNER deployer")
        url = server.replace("postgres@/postgres", "deployer@/hosted")
        with pytest.raises(PermissionDenied, match="CREATE EXTENSION vector"):
            migrate(url)
        with psycopg.connect(server.replace("/postgres?", "/hosted?"), autocommit=True) as admin:
            admin.execute("CREATE EXTENSION vector")
        assert migrate(url)
        with postgres_backend(url) as backend:
            store = backend.store()
            for text in ("one", "two"):
                store.write(me, "p", "/a", text)
            store.rename(me, "p", "/a", "/b")
            store.delete(me, "p", "/b")
            assert store.restore(me, "p", "/b", 1).bytes_written == 3
            assert len(backend.open_queue().claim(10, 1000, datetime.now(UTC) + timedelta(seconds=1))) == 2
            later = datetime.now(UTC) + timedelta(days=60)
            assert backend.open_upkeep().purge(later, later, later) > 0
            assert store.read(me, "p", "/b").text == "one"
        with psycopg.connect(url) as owner:
            assert one(owner, "SELECT count(*) FROM mcp_files") == 0, "the wall stands before the owner too"
