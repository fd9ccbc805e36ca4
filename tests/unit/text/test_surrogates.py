"""Lone surrogates are found and replaced, in texts and in the data of an answer."""

import json
import os

import pytest

from holdfast.text.decode import has_lone_surrogate, replace_in_data, replace_lone_surrogates


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("", ""),
        ("plain", "plain"),
        ("naïve \N{PILE OF POO}", "naïve \N{PILE OF POO}"),
        ("a\ud800b", "a\ufffdb"),
        ("\ud800", "\ufffd"),
        ("\udc00\ud800", "\ufffd\ufffd"),
        ("\ud83d\ude00", "\N{GRINNING FACE}"),
        (os.fsdecode(b"caf\xe9.txt"), "caf\ufffd.txt"),
    ],
)
def test_each_lone_surrogate_becomes_one_replacement_character(text: str, replaced: str) -> None:
    assert replace_lone_surrogates(text) == replaced
    assert has_lone_surrogate(text) is (text != replaced)
    assert not has_lone_surrogate(replaced)


def test_keys_and_values_at_any_depth_are_replaced_and_the_rest_is_kept() -> None:
    data = {"\ud800": [1, None, True, {"a": ("\udc80", "b")}], "x": 1.5}
    assert replace_in_data(data) == {"\ufffd": [1, None, True, {"a": ["\ufffd", "b"]}], "x": 1.5}
    json.dumps(replace_in_data(data), ensure_ascii=False).encode()
