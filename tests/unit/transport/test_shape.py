"""A message is parsed only when that is cheap: its texts may be long, everything else is bounded."""

import json
import random

import pytest

from holdfast.transport.mcp import wire
from holdfast.transport.mcp.wire import MAX_BYTES_OUTSIDE_STRINGS, MAX_VALUES, is_cheap

TEXTS = ["x" * 15_000_000, 'say "hi",\n' * 1_000_000, "\\" * 5_000_000, "[{,}]" * 1_000_000, "é" * 1_000_000]


@pytest.mark.parametrize("text", TEXTS)
def test_one_large_text_is_cheap_whatever_it_holds(text: str) -> None:
    assert is_cheap(json.dumps({"params": {"arguments": {"content": text, "path": "a"}}}).encode())


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps({f"a{number}": 1 for number in range(MAX_VALUES + 2)}).encode(),
        json.dumps([1] * 1_000_000).encode(),
        b"[" * 1_000_000,
        b"[" + b"9" * 4_000 + b"," * 1_000_000,
        b"9" * (MAX_BYTES_OUTSIDE_STRINGS + 1),
        b" " * (MAX_BYTES_OUTSIDE_STRINGS + 1),
        b'["a\\\\",' + b"1," * MAX_VALUES + b"1]",
    ],
)
def test_much_beside_texts_is_not(raw: bytes) -> None:
    assert not is_cheap(raw)


def test_the_end_of_a_text_is_found_wherever_a_window_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(7)
    for window in (1, 2, 3, 7):
        monkeypatch.setattr(wire, "_WINDOW_BYTES", window)
        for _ in range(5_000):
            raw = bytes(chance.choice(b'"\\a,[') for _ in range(chance.randrange(14)))
            assert wire._end_of_string(raw, 0) == end_by_hand(raw)


def end_by_hand(raw: bytes) -> int:
    at = 0
    while at < len(raw) and raw[at] != ord('"'):
        at += 2 if raw[at] == ord("\\") else 1
    return min(at + 1, len(raw))
