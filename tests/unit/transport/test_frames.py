"""LineSplitter and ids, read without parsing what is large."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.transport.client.frames import (
    LineSplitter,
    OversizedLine,
    answered_request_id,
    cancelled_request_id,
    error_line,
    parse_request,
)

IDS = st.one_of(st.integers(-(2**53), 2**53), st.text(max_size=40))


@given(st.lists(st.binary(max_size=50).map(lambda raw: raw.replace(b"\n", b"")), max_size=20), st.integers(1, 40))
def test_lines_come_out_as_they_went_in_however_the_bytes_are_cut(lines: list[bytes], size: int) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cutter = LineSplitter(1_000)
    found = [line for at in range(0, len(stream), size) for line in cutter.feed(stream[at : at + size])]
    assert found == lines


@given(st.integers(1, 5_000), st.integers(1, 3_000))
def test_a_line_over_the_limit_is_dropped_and_the_next_one_is_whole(length: int, size: int) -> None:
    cutter = LineSplitter(1_000)
    stream = b"x" * length + b"\nnext\n"
    found = [line for at in range(0, len(stream), size) for line in cutter.feed(stream[at : at + size])]
    assert found[1] == b"next"
    assert isinstance(found[0], OversizedLine) == (length > 1_000)


def test_a_line_over_the_limit_is_never_held() -> None:
    cutter = LineSplitter(1_000)
    for _piece in range(100):
        assert list(cutter.feed(b"x" * 10_000)) == []
        assert len(cutter._buffer) <= 1_000


@given(IDS)
def test_the_id_of_a_small_request_is_found(number: int | str) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/list"}).encode()
    assert parse_request(line) == (number, "tools/list")


@given(st.integers(0, 10**9) | st.text("abc-123", min_size=1, max_size=20), st.booleans(), st.booleans())
def test_the_id_of_a_huge_request_is_found_at_either_end(number: int | str, first: bool, spaced: bool) -> None:
    head = {"jsonrpc": "2.0", "id": number, "method": "tools/call"}
    params = {"params": {"id": "inner", "text": "x" * 100_000, "deep": {"id": 999}}}
    message = {**head, **params} if first else {"method": "tools/call", **params, "jsonrpc": "2.0", "id": number}
    line = json.dumps(message, separators=None if spaced else (",", ":")).encode()
    assert OversizedLine(line[:512], line[-512:]).request_id() == number
    assert parse_request(line)[0] == number


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","method":"m","params":{"id":5,"x":"%s"}}',
        '{"params":{"x":"%s","id":5}}',
        '{"params":{"x":"%s","a":{"id":5}}}',
        '[{"id":5,"x":"%s"}]',
        '{"jsonrpc":"2.0","method":"m","params":["%s","id"]}',
    ],
)
def test_an_id_inside_a_huge_message_is_not_taken_for_its_own(text: str) -> None:
    line = (text % ("x" * 2_000)).encode()
    assert OversizedLine(line[:512], line[-512:]).request_id() is None


@given(IDS)
def test_the_id_of_an_answer_is_found(number: int | str) -> None:
    for ascii_only in (True, False):
        for key in ("result", "error"):
            body = {"jsonrpc": "2.0", "id": number, key: {"id": 5}}
            line = json.dumps(body, separators=(",", ":"), ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
            assert answered_request_id(line) == number
    assert answered_request_id(json.dumps({"id": number, "result": {}}).encode()) == number


def test_the_servers_own_messages_are_no_answers() -> None:
    assert answered_request_id(b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}') is None
    assert answered_request_id(b'{"jsonrpc":"2.0","id":4,"method":"elicitation/create","params":{}}') is None
    assert answered_request_id(b'{"method":"ping","id":4}') is None
    assert answered_request_id(b"not json") is None


def test_a_clients_answer_and_notification_owe_nothing() -> None:
    assert parse_request(b'{"jsonrpc":"2.0","id":4,"result":{}}') == (4, "")
    assert parse_request(b'{"jsonrpc":"2.0","method":"notifications/initialized"}') == (
        None,
        "notifications/initialized",
    )
    assert parse_request(b"[1") == (None, "")
    assert parse_request(b"[" * 50_000) == (None, "")
    assert cancelled_request_id(b'{"method":"notifications/cancelled","params":{"requestId":"a"}}') == "a"
    assert cancelled_request_id(b'{"method":"notifications/cancelled"}') is None


def test_an_error_is_one_line() -> None:
    line = error_line("ü\n", -32000, "a\nb", {"retryable": True})
    assert line.count(b"\n") == 1
    assert json.loads(line)["id"] == "ü\n"
