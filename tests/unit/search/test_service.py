"""The path of a query, with parts that fail on demand."""

from typing import Any, cast

import pytest

from holdfast.auth.context import LOCAL_USER, AuthContext, Caller
from holdfast.call import Call
from holdfast.errors import Cancelled, InvalidPath, InvalidQuery, PermissionDenied, SearchBackendError
from holdfast.search.model import Candidate, PendingFile, SearchLimits
from holdfast.search.ports import Index
from holdfast.search.retrieve import PENDING_BYTES
from holdfast.search.service import Search
from holdfast.secret import Secret
from tests.helpers.indexing import Topics
from tests.unit.search.parts import FakeIndex, FakeReranker

ME = AuthContext("a" * 64, "me")


def searching(index: FakeIndex, limits: SearchLimits | None = None, **parts: Any) -> Search:
    return Search(cast("Index", index), limits or SearchLimits(), **parts)


def ids(search: Search, limit: int = 20) -> list[str]:
    return [hit.path for hit in search.search(ME, "p", "flow", limit=limit)]


def many(count: int, first: int = 0) -> list[Candidate]:
    return [Candidate(first + number, float(count - number)) for number in range(count)]


@pytest.mark.req("SE-10.a")
@pytest.mark.parametrize("query", ["", "  \n", "\ud800"])
def test_a_blank_query_is_refused(query: str) -> None:
    with pytest.raises(InvalidQuery):
        searching(FakeIndex()).search(ME, "p", query)


@pytest.mark.req("SE-10.e")
def test_a_query_that_is_too_long_is_refused_with_the_limit_and_its_length() -> None:
    search = searching(FakeIndex(lexical=many(1)))
    assert len(search.search(ME, "p", "flow" * 1000)) == 1
    with pytest.raises(InvalidQuery, match="at most 4000 characters long: it has 4001"):
        search.search(ME, "p", "flow" * 1000 + "!")


@pytest.mark.req("SE-10.f")
def test_a_cancelled_search_stops_in_the_middle_of_a_pending_text() -> None:
    text = b"some words that go on and on\n" * 10_000
    index = FakeIndex(waiting=[PendingFile("p", "/long", 1, text)])
    call = Call(Caller(LOCAL_USER))
    checked = 0

    def check() -> None:
        nonlocal checked
        checked += 1
        if checked == 5:
            call.cancel()
        call.check()

    with pytest.raises(Cancelled):
        searching(index).search(ME, "p", "words", check=check)
    assert checked == 5


@pytest.mark.req("SE-10.b")
def test_limits_are_five_by_default_and_twenty_at_most() -> None:
    search = searching(FakeIndex(lexical=many(30)))
    assert [len(search.search(ME, "p", "flow", limit=limit)) for limit in (0, -1, 3, 20, 99)] == [5, 5, 3, 20, 20]


@pytest.mark.req("SE-10.d")
def test_no_hits_are_an_empty_answer_and_a_query_of_signs_finds_none() -> None:
    assert searching(FakeIndex()).search(ME, "p", "flow") == []
    assert searching(FakeIndex(lexical=many(3))).search(ME, "p", "?!") == []


def test_a_caller_and_a_project_are_needed() -> None:
    with pytest.raises(PermissionDenied):
        searching(FakeIndex()).search(None, "p", "flow")
    with pytest.raises(InvalidPath):
        searching(FakeIndex()).search(ME, "a b", "flow")


@pytest.mark.req("SE-12.a")
def test_thirty_candidates_of_each_kind_are_merged_and_reranked() -> None:
    index = FakeIndex(many(50), many(50, first=20), texts={number: f"text {number}" for number in range(80)})
    reranker = FakeReranker({"text 44": 2.0, "text 3": 1.0})
    key = Secret("the caller's")
    search = searching(index, embedder=Topics("flow"), reranker=reranker)
    hits = search.search(AuthContext("a" * 64, "me", key), "p", "flow", limit=2)
    assert [(hit.path, hit.score) for hit in hits] == [("/44", 2.0), ("/3", 1.0)]
    ((query, texts, used, timeout_ms),) = reranker.seen
    assert (query, sorted(texts), used, timeout_ms) == ("flow", sorted(f"text {n}" for n in range(50)), key, 6000)
    assert ("find_by_words", 30) in index.asked
    assert ("find_nearest", 30) in index.asked


@pytest.mark.req("SE-13.b")
@pytest.mark.parametrize("reranker", [FakeReranker(is_down=True), FakeReranker(is_short=True)])
def test_a_reranker_that_fails_leaves_the_fused_order_and_is_counted(reranker: FakeReranker) -> None:
    search = searching(FakeIndex(many(3)), reranker=reranker)
    assert ids(search) == ["/0", "/1", "/2"]
    assert search.counts()["reranker_failed"] == 1


@pytest.mark.req("SE-14.a")
def test_one_retriever_down_leaves_the_other() -> None:
    model = Topics("flow")
    assert ids(searching(FakeIndex(many(2), many(2, 5), down={"find_nearest"}), embedder=model)) == ["/0", "/1"]
    assert ids(searching(FakeIndex(many(2), many(2, 5), down={"find_by_words"}), embedder=model)) == ["/5", "/6"]
    assert ids(searching(FakeIndex(many(2), many(2, 5), down={"load_pending_files"}), embedder=model)) == ["/5", "/6"]
    model.is_down = True
    search = searching(FakeIndex(many(2), many(2, 5)), embedder=model)
    assert ids(search) == ["/0", "/1"]
    assert search.counts()["meaning_failed"] == 1


@pytest.mark.req("SE-14.b")
@pytest.mark.parametrize("down", [{"find_by_words", "find_nearest"}, {"load_passages"}])
def test_both_down_is_a_backend_error(down: set[str]) -> None:
    with pytest.raises(SearchBackendError) as caught:
        ids(searching(FakeIndex(many(2), many(2), down=down), embedder=Topics("flow")))
    assert caught.value.retryable


@pytest.mark.req("SE-14.b")
def test_words_down_without_a_model_is_a_backend_error() -> None:
    with pytest.raises(SearchBackendError):
        ids(searching(FakeIndex(many(2), down={"find_by_words"})))


@pytest.mark.req("SE-14.c")
def test_search_that_is_switched_off_is_a_backend_error() -> None:
    with pytest.raises(SearchBackendError, match=r"settings\.mcp\.files\.search\.enabled"):
        ids(searching(FakeIndex(many(2)), SearchLimits(enabled=False)))


@pytest.mark.req("SE-16.a")
def test_only_returned_chunks_are_touched() -> None:
    index = FakeIndex(many(10))
    ids(searching(index), limit=2)
    assert index.touched == [0, 1]


@pytest.mark.req("SE-16.b")
def test_a_failure_to_touch_fails_no_search() -> None:
    search = searching(FakeIndex(many(2), down={"mark_served"}))
    assert ids(search) == ["/0", "/1"]
    assert search.counts()["served_at_failed"] == 1


@pytest.mark.req("SE-18.a")
def test_pending_text_is_ranked_among_indexed_text_and_not_touched() -> None:
    waiting = [PendingFile("p", "/new", 3, b"flow flow flow"), PendingFile("p", "/other", 4, b"nothing of it")]
    index = FakeIndex([Candidate(1, 0.5)], waiting=waiting)
    assert ids(searching(index)) == ["/new", "/1"]
    assert index.touched == [1]
    assert ("load_pending_files", PENDING_BYTES) in index.asked


@pytest.mark.req("SE-15.b")
def test_a_search_is_made_again_when_a_file_changed_under_it() -> None:
    index = FakeIndex(many(3), gone_once={1})
    assert ids(searching(index)) == ["/0", "/1", "/2"]
    assert [name for name, _ in index.asked].count("find_by_words") == 2


@pytest.mark.req("SE-31.c")
def test_a_model_that_needs_a_key_is_asked_only_with_the_callers_own() -> None:
    model = Topics("flow", needs_key=True)
    index = FakeIndex(many(1), many(1, 5))
    assert ids(searching(index, embedder=model, local_key=Secret("of this machine"))) == ["/0"]
    search = searching(index, embedder=model, local_key=Secret("of this machine"))
    assert {hit.path for hit in search.search(LOCAL_USER, "p", "flow")} == {"/0", "/5"}
