"""What of a call's arguments is recorded: places, ids, numbers and fixed words; of everything else its length and hash."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.observe.redact import ID_NAMES, MAX_TEXT_CHARS, NOT_RECORDED, PATH_NAMES, SECRET_NAMES, Redactor
from holdfast.tools.table import TOOLS

SECRET = "s3cr3t-c4n4ry"
HIDDEN = frozenset(
    """
    after before content content_encoding cursor decision dryRun expression glob excludePatterns hunks id idempotency_key mode
    newText new_string oldText old_string pattern query read_to_next_pattern reason section_patterns since text tool until
    channel kinds show sortBy status code kind filter note sort view access side address
    """.split()
)
"""Texts that are recorded by length and hash, unless they are one of the tools' own words."""


def redactor(preview_bytes: int = 0) -> Redactor:
    return Redactor(TOOLS.vocabulary, preview_bytes)


def text_arguments(schema: dict[str, Any], name: str = "") -> set[str]:
    if schema.get("type") == "object":
        members = schema.get("properties", {})
        return {found for member, inner in members.items() for found in text_arguments(inner, member)}
    if schema.get("type") == "array":
        return text_arguments(schema["items"], name)
    return {name} if schema.get("type") not in ("integer", "number", "boolean") else set()


@pytest.mark.req("SV-31")
def test_every_text_argument_of_every_tool_was_decided_on() -> None:
    names = {name for entry in TOOLS for name in text_arguments(entry.input_schema)}
    assert names - PATH_NAMES - ID_NAMES - HIDDEN == SECRET_NAMES
    assert HIDDEN - names == {"dryRun"} - names
    assert not HIDDEN & (PATH_NAMES | ID_NAMES)


@pytest.mark.req("SV-31")
@pytest.mark.parametrize("name", sorted(HIDDEN))
def test_a_hidden_text_is_recorded_by_length_and_hash_at_any_depth(name: str) -> None:
    recorded = redactor().redact({name: SECRET, "edits": [{name: SECRET}], "steps": [{"arguments": {name: [SECRET]}}]})
    assert SECRET not in json.dumps(recorded)
    if name in recorded:
        assert recorded[name] == {"bytes": len(SECRET), "sha256": hashlib.sha256(SECRET.encode()).hexdigest()}


@pytest.mark.req("SV-31", "SV-45.c")
def test_of_a_token_nothing_is_recorded_not_even_its_hash() -> None:
    recorded = json.dumps(redactor(64).redact({"token": SECRET, "shown_hash": "ab12", "edits": [{"token": SECRET}]}))
    assert json.loads(recorded) == {"shown_hash": "ab12", "edits": [{NOT_RECORDED: 1}], NOT_RECORDED: 1}
    assert hashlib.sha256(SECRET.encode()).hexdigest() not in recorded


def test_places_ids_numbers_and_words_of_the_tools_are_recorded_as_they_are() -> None:
    arguments = {
        "path": "src/a.py",
        "change_id": "ab12",
        "limit": 5,
        "recursive": True,
        "show": "moves",
        "tool": "mcp_pipe",
    }
    assert redactor().redact(arguments) == arguments


def test_an_id_that_holdfast_cannot_have_made_is_a_text_like_any_other() -> None:
    assert redactor().redact({"change_id": SECRET})["change_id"]["bytes"] == len(SECRET)


def test_names_that_no_tool_has_are_counted_and_not_recorded() -> None:
    assert redactor().redact({SECRET: 1, "limit": 2, "edits": [{SECRET: SECRET}]}) == {
        "limit": 2,
        "edits": [{NOT_RECORDED: 1}],
        NOT_RECORDED: 1,
    }


def test_long_paths_many_values_and_deep_nesting_are_cut() -> None:
    deep: Any = "x"
    for _ in range(100):
        deep = {"arguments": deep}
    recorded = redactor().redact(
        {"path": "p" * 5_000, "paths": ["a"] * 1_000, "steps": deep, "edits": [[["x"] * 99] * 99] * 99}
    )
    assert len(recorded["path"]) == MAX_TEXT_CHARS + 1
    assert recorded["paths"][-1] == {"more": 980}
    assert len(json.dumps(recorded)) < 20_000


def test_a_preview_is_the_first_bytes_in_whole_characters() -> None:
    text = "é" * 100
    assert redactor(5).redact({"content": text})["content"] == {
        "bytes": 200,
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "preview": "éé",
        "truncated": True,
    }
    assert redactor(5).redact({"content": "abc"})["content"]["truncated"] is False


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(PATH_NAMES | HIDDEN | {"edits", "steps", "x"})), values, max_size=6))
def test_whatever_the_arguments_are_the_record_can_be_written_as_json(arguments: dict[str, Any]) -> None:
    json.dumps(redactor().redact(arguments)).encode()
    json.loads(json.dumps(redactor().redact(arguments)))
