"""What only PostgreSQL does in search: blocks of postings, graphs of vectors, the wall around both."""

import random
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import psycopg
import pytest

from holdfast.adapters.postgres.search import blocks as search_blocks
from holdfast.adapters.postgres.search.index import PostgresIndex
from holdfast.adapters.postgres.search.vectors import graph_name
from holdfast.adapters.postgres.store.store import open_pool
from holdfast.auth.context import AuthContext
from holdfast.clock import utc_clock
from holdfast.search.index import Indexer
from holdfast.search.model import Scope, SearchLimits
from holdfast.search.service import Search
from holdfast.store.paths import span_with_prefix
from tests.helpers.databases import Backend, new_caller, postgres_backend, postgres_database, sqlite_backend
from tests.helpers.doors import until
from tests.helpers.indexing import drain

EVERYTHING = Scope(None, span_with_prefix(""))
WORDS = [f"word{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(200)]


@pytest.fixture
def url(postgres_server_url: str) -> Iterator[str]:
    with postgres_database(postgres_server_url) as made:
        yield made


@pytest.fixture
def alone(url: str) -> Iterator[Backend]:
    with postgres_backend(url) as opened:
        yield opened


def planted(backend: Backend, me: AuthContext, count: int, seed: int = 1) -> None:
    choose, store = random.Random(seed), backend.store()
    for number in range(count):
        text = " ".join(choose.choices(WORDS, weights=range(1, 201), k=30))
        store.write(me, choose.choice("pq"), f"/d{number % 3}/{number}", text, mode="TRUNCATE")
    drain(backend.open_queue(), Indexer(backend.open_index(), None))


@pytest.mark.req("SE-12.b")
def test_packed_words_rank_as_loose_ones_and_as_on_sqlite(
    alone: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = new_caller()
    planted(alone, me, 120)
    loose = answers(alone, me)
    monkeypatch.setattr(search_blocks, "MAX_UNPACKED", 20)
    monkeypatch.setattr(search_blocks, "MAX_BLOCK_CHUNKS", 50)
    monkeypatch.setattr(search_blocks, "PACK_BATCH", 40)
    store = alone.store()
    store.write(me, "p", "/one-more", "unrelated")
    drain(alone.open_queue(), Indexer(alone.open_index(), None))
    (blocks,) = alone.look(me, "SELECT count(*) AS blocks FROM mcp_file_chunk_blocks")
    assert blocks["blocks"] > 1
    packed = answers(alone, me)
    assert [[path for path, _ in found] for found in packed] == [[path for path, _ in found] for found in loose]
    with sqlite_backend(tmp_path / "twin") as twin:
        planted(twin, me, 120)
        twin.store().write(me, "p", "/one-more", "unrelated")
        drain(twin.open_queue(), Indexer(twin.open_index(), None))
        same = answers(twin, me)
    for ours, theirs in zip(packed, same, strict=True):
        assert [path for path, _ in ours] == [path for path, _ in theirs]
        assert [score for _, score in ours] == pytest.approx([score for _, score in theirs], rel=1e-4)


def answers(backend: Backend, me: AuthContext) -> list[list[tuple[str, float]]]:
    index, found = backend.open_index(), []
    for query, project, prefix in [
        ([WORDS[3], WORDS[150]], None, ""),
        ([WORDS[10], WORDS[10], WORDS[77], WORDS[199]], "p", ""),
        ([WORDS[199], WORDS[198], WORDS[197]], "q", "/d1/"),
        (["absent"], None, ""),
    ]:
        scope = Scope(project, span_with_prefix(prefix))
        candidates = index.find_by_words(me.apikey_hash, scope, query, 10).candidates
        passages = {
            one.chunk_id: one.path
            for one in index.load_passages(me.apikey_hash, scope, [c.chunk_id for c in candidates])
        }
        found.append([(passages[one.chunk_id], one.score) for one in candidates])
    return found


def test_a_block_that_is_mostly_dead_is_packed_anew(alone: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_blocks, "MAX_UNPACKED", 10)
    me = new_caller()
    planted(alone, me, 60)
    planted(alone, me, 60, seed=2)
    planted(alone, me, 60, seed=3)
    (totals,) = alone.look(me, "SELECT sum(chunks) AS chunks, sum(dead) AS dead FROM mcp_file_chunk_blocks")
    assert totals["chunks"] - totals["dead"] <= 120
    assert totals["dead"] * 2 <= totals["chunks"] + 60
    hits = Search(alone.open_index(), SearchLimits(limit_max=100)).search(me, "*", WORDS[199], limit=100)
    for hit in hits:
        assert alone.store().read(me, hit.project, hit.path).text == hit.text


@pytest.mark.req("SE-06.d")
def test_all_blocks_that_died_together_are_packed_anew_together(
    alone: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_blocks, "MAX_UNPACKED", 10)
    monkeypatch.setattr(search_blocks, "MAX_BLOCK_CHUNKS", 8)
    monkeypatch.setattr(search_blocks, "PACK_BATCH", 4)
    me, store, queue = new_caller(), alone.store(), alone.open_queue()
    indexer = Indexer(alone.open_index(), None)
    for turn in range(3):
        for number in range(40):
            store.write(me, "p", f"/{number}", f"{WORDS[number]} {turn}", mode="TRUNCATE")
        indexer.index_words(queue.claim(100, 60_000, utc_clock() + timedelta(hours=turn + 1)))
        (totals,) = alone.look(me, "SELECT sum(chunks) AS chunks, sum(dead) AS dead FROM mcp_file_chunk_blocks")
        assert (totals["chunks"], totals["dead"]) == (40, 0)


@pytest.mark.req("SE-02.b")
def test_whoever_lets_chunks_die_waits_for_whoever_packs_so_that_no_two_wait_in_turn(url: str, alone: Backend) -> None:
    me, store, index = new_caller(), alone.store(), alone.open_index()
    planted(alone, me, 5)
    store.delete(me, "p", "/d0", recursive=True)
    jobs = alone.open_queue().claim(100, 60_000, utc_clock() + timedelta(hours=1))
    waits = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    worker = threading.Thread(target=Indexer(index, None).index_words, args=(jobs,))
    with open_pool(url, "holdfast_app", 1) as pool, pool.connection() as packer:
        with packer.transaction():
            search_blocks.lock_blocks(packer, me.apikey_hash)
            worker.start()
            until("the worker waits", lambda: alone.look(me, waits))
            assert all(index.load_indexed_chunks(me.apikey_hash, "p", job.path) for job in jobs)
        worker.join(30)
    assert not any(index.load_indexed_chunks(me.apikey_hash, "p", job.path) for job in jobs)


@pytest.mark.req("SE-19.c")
def test_a_graph_finds_what_the_exact_scan_finds_for_a_small_tenant_too(url: str, alone: Backend) -> None:
    small, large = new_caller(), new_caller()
    planted(alone, small, 40)
    planted(alone, large, 400)
    noise = np.random.default_rng(1)
    exact, graph = alone.open_index(), PostgresIndex(url, graph_from=20)
    try:
        for tenant in (small, large):
            for project, path in exact.find_files_without_vectors(tenant.apikey_hash, "m", 10**6):
                rows = [
                    (chunk.id, chunk.content_hash, unit(noise))
                    for chunk in exact.load_chunks_without_vectors(tenant.apikey_hash, project, path, "m")
                ]
                graph.put_vectors(tenant.apikey_hash, "m", rows, utc_clock())
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("ANALYZE")
        assert (graph.run_maintenance(), graph.run_maintenance()) == (1, 0)
        assert alone.look(small, f"SELECT 1 FROM pg_indexes WHERE indexname = '{graph_name('m')}'")
        for tenant in (small, large):
            for _ in range(5):
                query = unit(noise)
                wanted = exact.find_nearest(tenant.apikey_hash, EVERYTHING, "m", query, 10)
                found = graph.find_nearest(tenant.apikey_hash, EVERYTHING, "m", query, 10)
                assert len(found) == 10
                assert len({one.chunk_id for one in found} & {one.chunk_id for one in wanted}) >= 8
                assert found[0].score == pytest.approx(wanted[0].score, abs=1e-4)
    finally:
        graph.close()


def unit(noise: np.random.Generator) -> list[float]:
    made = noise.normal(size=16)
    return [float(value) for value in made / np.linalg.norm(made)]


@pytest.mark.req("SE-19.b", "ST-41")
def test_the_index_is_behind_the_wall_too(url: str, alone: Backend) -> None:
    planted(alone, new_caller(), 5)
    with psycopg.connect(url) as connection:
        connection.execute("SET ROLE holdfast_app")
        for table in ("chunks", "chunk_states", "chunk_bm25", "chunk_blocks", "chunk_words", "chunk_embeddings"):
            assert connection.execute(f"SELECT count(*) FROM mcp_file_{table}".encode()).fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO mcp_file_chunk_states VALUES ('x', 'p', '/a', 1, now())")
