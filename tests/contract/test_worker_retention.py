"""What the index leaves behind goes: vectors of a model that was replaced, and every trace of files that are gone."""

from datetime import timedelta

import pytest

from holdfast.adapters.postgres.search import blocks
from holdfast.auth.context import AuthContext
from holdfast.clock import utc_clock
from holdfast.search.index import Indexer
from holdfast.search.model import Scope
from holdfast.store.paths import span_with_prefix
from holdfast.store.service import Store
from holdfast.worker import purge as purge_module
from holdfast.worker.purge import OUTDATED_VECTOR_RETENTION, OutdatedVectors, Purge
from tests.helpers.databases import Backend, new_caller
from tests.helpers.indexing import Topics, drain

OLD, NEW = Topics("cat", "boat"), Topics("cat", "boat", "dog", model="topics-2")
EVERYTHING = Scope(None, span_with_prefix(""))
FILES = 5


def written(backend: Backend, store: Store, me: AuthContext) -> None:
    """Write some files and index them with the old model."""
    for number in range(FILES):
        store.write(me, "p", f"/{number}", f"a cat in boat {number}")
    drain(backend.open_queue(), Indexer(backend.open_index(), OLD))


def embed_anew(backend: Backend, me: AuthContext, files: int) -> None:
    """Give so many files vectors of the new model."""
    index = backend.open_index()
    for project, path in index.find_files_without_vectors(me.apikey_hash, NEW.model, files):
        chunks = index.load_chunks_without_vectors(me.apikey_hash, project, path, NEW.model)
        rows = [(chunk.id, chunk.content_hash, NEW._vector(chunk.text)) for chunk in chunks]
        index.put_vectors(me.apikey_hash, NEW.model, rows, utc_clock())


def vectors(backend: Backend, me: AuthContext) -> dict[str, int]:
    rows = backend.look(
        me,
        "SELECT model, count(*) AS vectors FROM mcp_file_chunk_embeddings "
        f"WHERE apikey_hash = '{me.apikey_hash}' GROUP BY model",
    )
    return {row["model"]: row["vectors"] for row in rows}


@pytest.mark.req("SE-06.c", "SE-32")
def test_old_vectors_serve_until_all_are_new_and_go_a_day_later(
    backend: Backend, store: Store, me: AuthContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge_module, "VECTORS_AT_ONCE", 2)
    written(backend, store, me)
    index = backend.open_index()
    assert index.list_models(me.apikey_hash) == [OLD.model]
    purge, later = OutdatedVectors(index, NEW).purge, utc_clock() + OUTDATED_VECTOR_RETENTION + timedelta(minutes=1)
    embed_anew(backend, me, FILES - 1)
    purge(later)
    assert vectors(backend, me) == {OLD.model: FILES, NEW.model: FILES - 1}, "one chunk still needs the old model"
    embed_anew(backend, me, FILES)
    purge(utc_clock())
    assert vectors(backend, me) == {OLD.model: FILES, NEW.model: FILES}, "a day to change one's mind"
    assert purge(later) >= FILES
    assert vectors(backend, me) == {NEW.model: FILES}
    assert purge(later) == 0
    assert index.find_nearest(me.apikey_hash, EVERYTHING, OLD.model, OLD._vector("cat"), 30) == []
    assert len(index.find_nearest(me.apikey_hash, EVERYTHING, NEW.model, NEW._vector("cat"), 30)) == FILES


@pytest.mark.req("SE-06.c")
def test_each_tenant_keeps_its_old_vectors_as_long_as_it_needs_them(backend: Backend, store: Store) -> None:
    done, waiting = new_caller(), new_caller()
    for tenant in (done, waiting):
        written(backend, store, tenant)
    embed_anew(backend, done, FILES)
    purge = Purge(
        store,
        backend.open_upkeep(),
        lambda: utc_clock() + 2 * OUTDATED_VECTOR_RETENTION,
        OutdatedVectors(backend.open_index(), NEW),
        delay_seconds=0,
    )
    assert purge.run_due() >= FILES
    assert vectors(backend, done) == {NEW.model: FILES}
    assert vectors(backend, waiting) == {OLD.model: FILES}


@pytest.mark.req("SE-06.c")
def test_a_worker_that_is_told_to_stop_leaves_the_rest_of_the_vectors(
    backend: Backend, store: Store, me: AuthContext
) -> None:
    written(backend, store, me)
    embed_anew(backend, me, FILES)
    assert (
        OutdatedVectors(backend.open_index(), NEW, lambda: True).purge(utc_clock() + 2 * OUTDATED_VECTOR_RETENTION) == 0
    )
    assert vectors(backend, me) == {OLD.model: FILES, NEW.model: FILES}


@pytest.mark.req("SE-06.d")
def test_nothing_is_left_in_the_index_of_files_that_are_gone(
    backend: Backend, store: Store, me: AuthContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "MAX_UNPACKED", 10)
    queue, indexer = backend.open_queue(), Indexer(backend.open_index(), OLD)
    for number in range(40):
        store.write(me, "p", f"/d/{number}", f"a cat in boat {number}")
    drain(queue, indexer)
    store.rename(me, "p", "/d", "/e")
    drain(queue, indexer)
    assert rows_left(backend, me, "states") == 40, "none of the paths that were left"
    store.delete(me, "p", "/e", recursive=True)
    drain(queue, indexer)
    tables = ["chunks", "states", "embeddings", "bm25", *(["blocks", "words"] if backend.name == "postgres" else [])]
    assert {table: rows_left(backend, me, table) for table in tables} == dict.fromkeys(tables, 0)
    if backend.name == "sqlite":
        assert backend.look(me, "SELECT term FROM chunk_terms") == []


@pytest.mark.req("SE-06.d")
def test_a_file_that_is_overwritten_again_and_again_leaves_a_bounded_index(
    backend: Backend, store: Store, me: AuthContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "MAX_UNPACKED", 10)
    queue, indexer, sizes = backend.open_queue(), Indexer(backend.open_index(), None), list[int]()
    for number in range(200):
        store.write(
            me,
            "p",
            f"/{number % 20}",
            f"boat {number} " + " ".join(f"w{number * 7 % 500}" for _ in range(9)),
            mode="TRUNCATE",
        )
        drain(queue, indexer)
        sizes.append(index_size(backend, me))
    assert max(sizes[100:]) <= 2 * max(sizes[:100]), "it does not grow with the number of writes"


def rows_left(backend: Backend, me: AuthContext, table: str) -> int:
    name = "mcp_file_chunks" if table == "chunks" else f"mcp_file_chunk_{table}"
    (row,) = backend.look(me, f"SELECT count(*) AS found FROM {name} WHERE apikey_hash = '{me.apikey_hash}'")
    return int(row["found"])


def index_size(backend: Backend, me: AuthContext) -> int:
    """Return the slots of all blocks, or the bytes of the full-text index."""
    if backend.name == "sqlite":
        (row,) = backend.look(me, "SELECT sum(length(block)) AS found FROM chunk_words_data")
    else:
        slots = f"SELECT coalesce(sum(chunks), 0) AS found FROM mcp_file_chunk_blocks WHERE apikey_hash = '{me.apikey_hash}'"
        (row,) = backend.look(me, slots)
    return int(row["found"])
