"""What indexing and searching cost in PostgreSQL: rows that are counted, never time."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import psycopg
import pytest

from holdfast.adapters.postgres.search.rows import STATEMENTS
from holdfast.adapters.postgres.store.store import open_pool
from tests.contract.test_store_cost import plan_on, rows_read
from tests.helpers.databases import new_caller, postgres_database

MANY, FEW = 20_000, 50
PLANT = """
INSERT INTO mcp_file_chunks (apikey_hash, project, file_path, chunk_index, start_byte, end_byte, chunk_content,
                             content_hash, version, created_at, updated_at)
SELECT %s, 'p', '/f' || i / 100, i, 0, 1, 'x', lpad(md5(%s || i), 64), 1, now(), now()
FROM generate_series(0, %s - 1) AS i RETURNING id
"""

PLANT_LIVE = (
    """
    INSERT INTO mcp_files (apikey_hash, project, path, size, created_at, updated_at, version, written_version, content)
    SELECT %(me)s, 'p', '/f' || i, 1, now(), now(), 1, 1, 'a' FROM generate_series(0, %(many)s / 100) AS i
    """,
    """
    INSERT INTO mcp_file_chunk_states (apikey_hash, project, file_path, version, updated_at)
    SELECT apikey_hash, project, path, version, now() FROM mcp_files
    """,
    """
    INSERT INTO mcp_file_chunk_bm25 (apikey_hash, project, chunk_id, tokens, token_count, tokenizer, block, slot,
                                     created_at, updated_at)
    SELECT apikey_hash, project, id, '{}', 1, 't', 0, chunk_index, now(), now() FROM mcp_file_chunks
    """,
)


@pytest.mark.req("SE-05")
@pytest.mark.parametrize("known", [0, 3, 5_000])
def test_looking_for_vectors_to_keep_does_not_grow_with_the_index(postgres_server_url: str, known: int) -> None:
    me = new_caller()
    with postgres_database(postgres_server_url) as url, psycopg.connect(url, autocommit=True) as owner:
        owner.execute("ALTER TABLE mcp_file_chunks SET (autovacuum_enabled = false)")
        owner.execute(PLANT, [me.apikey_hash, "known", known])
        owner.execute("ANALYZE mcp_file_chunks")
        with open_pool(url, "holdfast_app", 1, steady_plans=True) as pool, pool.connection() as connection:

            def read(ids: Sequence[int]) -> float:
                asked = {"ids": json.dumps(list(ids)), "at": datetime.now(UTC)}
                return sum(rows_read(plan_on(connection, me, STATEMENTS["copy_vectors"], **asked)))

            read([1])
            owner.execute("UPDATE mcp_file_chunks SET chunk_index = chunk_index - 1000000")
            rows = owner.execute(PLANT, [me.apikey_hash, "new", MANY]).fetchall()
            ids = [number for (number,) in rows[-FEW:]]
            assert [read(ids) <= 3 * FEW for _ in range(3)] == [True] * 3


@pytest.mark.req("SE-15", "SE-19.b")
@pytest.mark.parametrize(("name", "parameter"), [("live_chunks", "ids"), ("live_slots", "slots")])
@pytest.mark.parametrize("is_analyzed", [True, False])
def test_looking_whether_hits_are_live_begins_with_the_hits(
    postgres_server_url: str, name: str, parameter: str, is_analyzed: bool
) -> None:
    me = new_caller()
    with postgres_database(postgres_server_url) as url, psycopg.connect(url, autocommit=True) as owner:
        rows = owner.execute(PLANT, [me.apikey_hash, "live", MANY]).fetchall()
        for statement in PLANT_LIVE:
            owner.execute(statement.encode(), {"me": me.apikey_hash, "many": MANY})
        if is_analyzed:
            owner.execute("ANALYZE")
        wanted = [number for (number,) in rows[:FEW]] if parameter == "ids" else [[0, slot] for slot in range(FEW)]
        asked = {"low": "/", "high": "0", parameter: json.dumps(wanted)}
        with open_pool(url, "holdfast_app", 1, steady_plans=True) as pool, pool.connection() as connection:
            plan = plan_on(connection, me, STATEMENTS[name], **asked)
        assert plan["Actual Rows"] == FEW
        assert sum(rows_read(plan)) <= 5 * FEW
