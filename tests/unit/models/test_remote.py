"""Models behind HTTP: what is sent, what is taken for an answer, and how every fault ends in time and without a word of it."""

import logging
import math
import time
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.adapters.models.cohere import CohereReranker
from holdfast.adapters.models.openai import OpenAIEmbedder
from holdfast.adapters.models.remote import Endpoint
from holdfast.errors import InvalidArgument
from holdfast.search.ports import EmbedFault, RerankFault
from holdfast.secret import Secret
from tests.helpers.models import Behaviour, ModelServer, Request, embedding_of, embeds, model_server, ranks

KEY = Secret("sk-canary-0ddba11")


@pytest.fixture(scope="module")
def running() -> Iterator[ModelServer]:
    with model_server() as found:
        yield found


@pytest.fixture
def server(running: ModelServer) -> ModelServer:
    running.behave()
    return running


def embedder(server: ModelServer, timeout: float = 5.0) -> OpenAIEmbedder:
    return OpenAIEmbedder(f"{server.url}/v1/embeddings", "some-model", timeout)


def embed(server: ModelServer, *texts: str, timeout: float = 5.0) -> list[Any]:
    return embedder(server, timeout).embed(texts, KEY, lambda: None)


def says(data: Any, status: int = 200, **headers: str) -> Behaviour:
    return lambda request: request.answer(data, status, **headers)


@pytest.mark.req("SE-31.a")
def test_texts_come_back_as_vectors_of_length_one_in_their_order(server: ModelServer) -> None:
    texts = [f"text number {number} {'abc' * number}" for number in range(150)]
    vectors = embed(server, *texts)
    assert len(vectors) == 150
    for text, vector in zip(texts, vectors, strict=True):
        expected = embedding_of(text)
        length = math.hypot(*expected)
        assert [float(value) for value in vector] == pytest.approx([value / length for value in expected], abs=1e-6)
        assert str(vector.dtype) == "float32"
    assert [len(request.body["input"]) for request in server.requests] == [64, 64, 22]
    assert {request.body["model"] for request in server.requests} == {"some-model"}


@pytest.mark.req("SE-31.a")
def test_the_callers_key_goes_along_and_without_one_nothing_is_sent(server: ModelServer) -> None:
    embed(server, "a")
    assert server.keys == [KEY.reveal()]
    with pytest.raises(EmbedFault, match="key"):
        embedder(server).embed(["a"], None, lambda: None)
    assert len(server.requests) == 1
    embedder(server).embed(["a"], Secret(""), lambda: None)
    assert server.keys[-1] is None, "an empty key stands for an endpoint that wants none"


def test_long_texts_are_sent_in_several_requests(server: ModelServer) -> None:
    embed(server, *["x" * 60_000] * 3)
    assert len(server.requests) == 3


def test_a_blank_text_has_a_vector_too(server: ModelServer) -> None:
    assert len(embed(server, "", "  \n", "a")) == 3


@pytest.mark.req("SE-31.b")
def test_a_busy_endpoint_is_asked_again_after_as_long_as_it_says(server: ModelServer) -> None:
    server.behave(says({}, 429, retry_after="0.2"), says({}, 503), embeds)
    begun = time.monotonic()
    assert len(embed(server, "a")) == 1
    assert len(server.requests) == 3
    assert time.monotonic() - begun > 0.2


@pytest.mark.req("SE-31.b")
@pytest.mark.parametrize(
    ("behaviour", "asked", "retryable"),
    [
        (says({"error": KEY.reveal()}, 401), 1, False),
        (says({}, 400), 1, False),
        (says({}, 429, retry_after="3600"), 1, True),
        (says({}, 307, location="http://127.0.0.1:1/"), 1, False),
        (says(b"<html>"), 3, True),
        (says([]), 1, True),
        (says({"data": []}), 1, True),
        (says({"data": [{"index": 0, "embedding": []}]}), 1, True),
        (says({"data": [{"index": 0, "embedding": [0, 0]}]}), 1, True),
        (says({"data": [{"index": 0, "embedding": ["1", "2"]}]}), 1, True),
        (says({"data": [{"index": 0, "embedding": [1e400]}]}), 1, True),
        (says({"data": [{"index": 0, "embedding": [10**400, 1]}]}), 1, True),
        (says(b'{"data": [{"index": 0, "embedding": [NaN]}]}'), 1, True),
        (says({"data": [{"index": 7, "embedding": [1, 2]}]}), 1, True),
        (says({"data": [{"index": True, "embedding": [1, 2]}]}), 1, True),
        (says(b"[" * 100_000), 3, True),
    ],
)
def test_anything_but_an_answer_is_a_fault_without_its_words(
    server: ModelServer, behaviour: Behaviour, asked: int, retryable: bool, caplog: pytest.LogCaptureFixture
) -> None:
    server.behave(behaviour)
    with caplog.at_level(logging.DEBUG), pytest.raises(EmbedFault) as caught:
        embed(server, "the text")
    assert caught.value.retryable is retryable
    assert len(server.requests) == asked
    for told in (str(caught.value), repr(caught.value.__context__), caplog.text):
        assert KEY.reveal() not in told
        assert "the text" not in told


def test_vectors_of_different_lengths_are_a_fault(server: ModelServer) -> None:
    rows = [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1, 2, 3]}]
    server.behave(says({"data": rows}))
    with pytest.raises(EmbedFault, match="different lengths"):
        embed(server, "a", "b")


def silence(request: Request) -> None:
    time.sleep(1.0)


def slow_head(request: Request) -> None:
    request.drip(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{}", 0.1)


def slow_body(request: Request) -> None:
    request.drip(b"HTTP/1.1 200 OK\r\n\r\n", 0)
    request.drip(b" " * 100, 0.1)


def broken_off(request: Request) -> None:
    request.drip(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{}", 0)
    request.handler.connection.close()


@pytest.mark.req("SE-31.b")
@pytest.mark.parametrize("behaviour", [silence, slow_head, slow_body], ids=lambda one: str(one.__name__))
def test_an_endpoint_that_dawdles_is_left_in_time(server: ModelServer, behaviour: Behaviour) -> None:
    server.behave(behaviour)
    begun = time.monotonic()
    with pytest.raises(RerankFault, match="no answer within 0.4 s"):
        CohereReranker(f"{server.url}/v2/rerank", "m").rank("q", ["a"], KEY, 400)
    assert time.monotonic() - begun < 2.0


@pytest.mark.req("SE-14.a")
@pytest.mark.parametrize("behaviour", [silence, says({}, 429, retry_after="5")], ids=["silent", "busy"])
def test_whoever_searches_waits_for_an_endpoint_no_longer_than_one_answer_may_take(
    server: ModelServer, behaviour: Behaviour
) -> None:
    server.behave(behaviour)
    begun = time.monotonic()
    with pytest.raises(EmbedFault):
        embedder(server, 0.5).for_queries().embed(["a"], KEY, lambda: None)
    assert time.monotonic() - begun < 1.5
    assert len(server.requests) == 1


def test_whoever_searches_is_served_after_a_moment_of_weakness(server: ModelServer) -> None:
    server.behave(says({}, 503), embeds)
    assert len(embedder(server).for_queries().embed(["a"], KEY, lambda: None)) == 1


def test_an_answer_that_breaks_off_or_never_ends_is_a_fault(server: ModelServer) -> None:
    server.behave(broken_off)
    with pytest.raises(RerankFault):
        CohereReranker(f"{server.url}/v2/rerank", "m").rank("q", ["a"], KEY, 3000)
    server.behave(says(b" " * 2_000_000))
    with pytest.raises(RerankFault, match="larger than"):
        CohereReranker(f"{server.url}/v2/rerank", "m").rank("q", ["a"], KEY, 3000)


def test_nobody_at_the_other_end_is_a_fault() -> None:
    with pytest.raises(RerankFault, match="connection failed"):
        CohereReranker("http://127.0.0.1:9/v2/rerank", "m").rank("q", ["a"], KEY, 3000)


def test_whoever_waits_can_give_up(server: ModelServer) -> None:
    class Enough(Exception):
        pass

    def check() -> None:
        if server.requests:
            raise Enough

    server.behave(says({}, 429, retry_after="5"))
    begun = time.monotonic()
    with pytest.raises(Enough):
        embedder(server).embed(["a"], KEY, check)
    assert time.monotonic() - begun < 3.0


@pytest.mark.req("SE-12.c")
def test_scores_come_back_in_the_order_of_the_texts(server: ModelServer) -> None:
    reranker = CohereReranker(f"{server.url}/v2/rerank", "rerank-v3.5")
    assert reranker.rank("q", ["aa", "aaaa", "a"], KEY, 3000) == [0.002, 0.004, 0.001]
    sent = server.requests[0]
    assert (sent.path, sent.key, sent.body["model"], sent.body["top_n"]) == (
        "/v2/rerank",
        KEY.reveal(),
        "rerank-v3.5",
        3,
    )


@pytest.mark.req("SE-13.b")
@pytest.mark.parametrize(
    "data",
    [
        {"results": [{"index": 0, "relevance_score": 1.0}]},
        {"results": [{"index": 0, "relevance_score": 1.0}, {"index": 0, "relevance_score": 0.5}]},
        {"results": [{"index": 0, "relevance_score": "1"}, {"index": 1, "relevance_score": 1}]},
        {"results": [{"index": -1, "relevance_score": 1}, {"index": 1, "relevance_score": 1}]},
        {"results": [{"index": 0, "relevance_score": 10**400}, {"index": 1, "relevance_score": 1}]},
        {"results": [{"index": 0, "relevance_score": math.nan}, {"index": 1, "relevance_score": 1}]},
        {"results": [{"index": 0, "relevance_score": math.inf}, {"index": 1, "relevance_score": 1}]},
        {"results": [{"index": 0, "relevance_score": True}, {"index": 1, "relevance_score": 1}]},
        {"results": [{"index": 0}, {"index": 1, "relevance_score": 1}]},
        {"results": {}},
        {},
        [],
        7,
    ],
)
def test_a_short_or_strange_answer_of_a_reranker_is_a_fault(server: ModelServer, data: Any) -> None:
    server.behave(says(data))
    with pytest.raises(RerankFault):
        CohereReranker(f"{server.url}/v2/rerank", "m").rank("q", ["a", "b"], KEY, 3000)


@pytest.mark.parametrize(
    "url", ["ftp://host/x", "file:///etc/passwd", "http://user:pw@host/", "//host/x", "", "http://"]
)
def test_only_an_address_without_a_password_is_an_endpoint(url: str) -> None:
    with pytest.raises(InvalidArgument):
        Endpoint(url)


def test_the_usual_behaviour_is_that_of_a_reranker(server: ModelServer) -> None:
    server.behave(ranks)
    assert CohereReranker(f"{server.url}/any", "m").rank("q", ["abc"], None, 3000) == [0.003]
