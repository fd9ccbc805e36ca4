"""Text that a file does not hold is never handed out, whoever writes, moves, deletes and indexes at the same time."""

import re
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from holdfast.auth.context import AuthContext
from holdfast.clock import utc_clock
from holdfast.errors import HoldfastError
from holdfast.search.index import Indexer
from holdfast.search.service import Search
from holdfast.secret import Secret
from holdfast.store.model import Stage
from holdfast.store.service import Store
from tests.helpers.databases import Backend
from tests.helpers.indexing import Topics, drain

ROUNDS = 100


@pytest.mark.req("SE-15.c")
@pytest.mark.parametrize("kind", ["overwritten", "deleted", "renamed"])
def test_what_was_acknowledged_before_a_search_is_what_it_finds(backend: Backend, me: AuthContext, kind: str) -> None:
    raced = race(backend, me, kind, ROUNDS)
    assert raced == ROUNDS


def race(backend: Backend, me: AuthContext, kind: str, rounds: int) -> int:
    """Change a file and search at once, with an indexer running all the time; returns the rounds that were checked."""
    store, model = backend.store(), Topics("needle", "straw")
    search = backend.search(embedder=model)
    stop, faults = threading.Event(), list[BaseException]()
    worker = threading.Thread(target=guarded, args=(faults, lambda: index_until(backend, model, stop)))
    worker.start()
    checked = 0
    try:
        for number in range(rounds):
            {"overwritten": _overwritten, "deleted": _deleted, "renamed": _renamed}[kind](store, search, me, number)
            checked += 1
            assert not faults, faults
    finally:
        stop.set()
        worker.join(30)
    return checked


def _overwritten(store: Store, search: Search, me: AuthContext, number: int) -> None:
    store.write(me, "p", "/f", f"needle number {number} in straw", mode="TRUNCATE")
    numbers = {
        int(found) for hit in search.search(me, "p", "needle straw") for found in re.findall(r"number (\d+)", hit.text)
    }
    assert numbers == {number}


def _deleted(store: Store, search: Search, me: AuthContext, number: int) -> None:
    store.write(me, "p", f"/{number}", f"needle number {number}", mode="TRUNCATE")
    assert f"/{number}" in {hit.path for hit in search.search(me, "p", f"needle number {number}", limit=20)}
    store.delete(me, "p", f"/{number}")
    assert f"/{number}" not in {hit.path for hit in search.search(me, "p", f"needle number {number}", limit=20)}


def _renamed(store: Store, search: Search, me: AuthContext, number: int) -> None:
    if number == 0:
        store.write(me, "p", "/0", "a needle that moves", mode="TRUNCATE")
    store.rename(me, "p", f"/{number}", f"/{number + 1}")
    assert [hit.path for hit in search.search(me, "p", "needle moves")] == [f"/{number + 1}"]


def index_until(backend: Backend, model: Topics, stop: threading.Event) -> None:
    queue, indexer = backend.open_queue(), Indexer(backend.open_index(), model)
    while not stop.is_set():
        for stage in (Stage.WORDS, Stage.MEANING):
            jobs = queue.claim(5, 60_000, utc_clock() + timedelta(seconds=1), stage)
            for job in jobs:
                further = Stage.MEANING if stage is Stage.WORDS and indexer.index_words([job])[0] else None
                if stage is Stage.MEANING:
                    indexer.index_meaning(job, None)
                queue.finish(job, utc_clock(), further)
        stop.wait(0.001)


def guarded(faults: list[BaseException], work: Callable[[], None]) -> None:
    try:
        work()
    except (HoldfastError, AssertionError, RuntimeError, ValueError) as error:
        faults.append(error)


class Thinking:
    """A reranker that likes all texts alike, and while it thinks about them something happens."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._meanwhile = meanwhile

    def rank(self, query: str, texts: Sequence[str], key: Secret | None, timeout_ms: int) -> list[float]:
        self._meanwhile()
        return [1.0 for _ in texts]


@pytest.mark.req("SE-15.b")
@pytest.mark.parametrize("is_indexed", [True, False], ids=["indexed", "pending"])
def test_what_changed_while_a_reranker_thought_about_it_is_left_out(
    backend: Backend, me: AuthContext, is_indexed: bool
) -> None:
    store, model = backend.store(), Topics("needle", "straw")
    for path in ("/overwritten", "/deleted", "/moved", "/kept"):
        store.write(me, "p", path, f"needle {path}")
    if is_indexed:
        drain(backend.open_queue(), Indexer(backend.open_index(), model))

    def meanwhile() -> None:
        store.write(me, "p", "/overwritten", "straw", mode="TRUNCATE")
        store.delete(me, "p", "/deleted")
        store.rename(me, "p", "/moved", "/elsewhere")

    search = backend.search(embedder=model, reranker=Thinking(meanwhile))
    assert [hit.path for hit in search.search(me, "p", "needle", limit=20)] == ["/kept"]


@pytest.mark.req("SE-03.b")
def test_two_indexers_of_one_file_leave_its_last_state(backend: Backend, me: AuthContext) -> None:
    store, index, queue, search = backend.store(), backend.open_index(), backend.open_queue(), backend.search()
    for number in range(30):
        store.write(me, "p", "/f", f"state {number} " + "filler words " * 300, mode="TRUNCATE")
        (job, *_) = [
            one for one in queue.claim(10_000, 1, utc_clock() + timedelta(hours=1)) if one.tenant == me.apikey_hash
        ]
        indexers = [threading.Thread(target=Indexer(index, None).index_words, args=([job],)) for _ in range(3)]
        for thread in indexers:
            thread.start()
        store.write(me, "p", "/f", f"later {number}", mode="TRUNCATE")
        for thread in indexers:
            thread.join(30)
        Indexer(index, None).index_words([job])
        (hit,) = search.search(me, "p", f"later {number}")
        assert hit.text == f"later {number}"
        known = index.load_indexed_chunks(me.apikey_hash, "p", "/f")
        assert [(chunk.position, chunk.start) for chunk in known] == [(0, 0)]
