"""jq on JSON and YAML: results, bounds, and nothing beside the document."""

import itertools
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.errors import Cancelled, InvalidQuery, PayloadTooLarge, TimedOut
from holdfast.folders.children import query
from holdfast.folders.children.query import MAX_FILE_BYTES, Format, QueryResults, run_query
from tests.helpers.reader import Reader


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    (tmp_path / "root").mkdir()
    (tmp_path / "state").mkdir()
    return Reader(tmp_path / "root", tmp_path / "state")


def asked(
    reader: Reader,
    content: str | bytes,
    expression: str,
    form: Format = "json",
    seconds: float = 30,
    chars: int = 10_000,
) -> QueryResults:
    reader.write("a", content)
    with reader.jail.open_file("a") as file:
        return run_query(reader.call, file, form, expression, seconds, chars)


def test_an_expression_gives_its_results_in_order(reader: Reader) -> None:
    assert asked(reader, '{"a": [1, "x", null]}', ".a[]").values == ("1", '"x"', "null")


def test_big_numbers_keep_their_digits(reader: Reader) -> None:
    assert asked(reader, '{"id": 12345678901234567890123}', ".id").values == ("12345678901234567890123",)


def test_json_lines_and_utf16_are_read(reader: Reader) -> None:
    assert asked(reader, '{"a":1}\n{"a":2}\n', ".a").values == ("1", "2")
    assert asked(reader, '{"a":"é"}'.encode("utf-16"), ".a").values == ('"é"',)


def test_more_than_100_results_are_cut_with_a_notice(reader: Reader) -> None:
    results = asked(reader, "1", "range(1000)")
    assert results.values == tuple(map(str, range(100)))
    assert results.more
    assert not asked(reader, "1", "range(100)").more


def test_long_results_are_cut_to_the_room_there_is(reader: Reader) -> None:
    results = asked(reader, "1", "range(5) | [range(100)]", chars=500)
    assert results.cut
    assert sum(map(len, results.values)) == 500


def test_yaml_is_queried_as_json_document_by_document(reader: Reader) -> None:
    text = "a: [1, 2]\nwhen: 2020-01-01\nraw: !!binary aGk=\n---\na: [3]\n"
    assert asked(reader, text, ".a[]", "yaml").values == ("1", "2", "3")
    assert asked(reader, text, ".when // empty", "yaml").values == ('"2020-01-01"',)


@pytest.mark.parametrize("expression", [".a[", "foo(1)", "", "1) | (2", "import 1"])
def test_a_bad_expression_is_an_invalid_query_in_jqs_words(reader: Reader, expression: str) -> None:
    with pytest.raises(InvalidQuery, match="The jq expression is not valid"):
        asked(reader, "1", expression)


def test_an_error_of_the_expression_is_an_invalid_query(reader: Reader) -> None:
    with pytest.raises(InvalidQuery, match="Cannot index array with string"):
        asked(reader, "[1]", ".a")


def test_a_comment_at_the_end_does_no_harm(reader: Reader) -> None:
    assert asked(reader, "1", ". # a comment").values == ("1",)


@pytest.mark.parametrize(
    ("form", "content", "where"),
    [
        ("json", '{"a": 1,\n"b": tru}', "line 2, column"),
        ("json", "[" * 200_000, "line 1, column"),
        ("yaml", "a: 1\nb: [1, 2\nc: }\n", "line 3, column"),
        ("yaml", "a: !!python/object/apply:os.system [id]\n", "line 1, column 4"),
    ],
)
def test_a_broken_document_is_an_invalid_query_that_names_the_place(
    reader: Reader, form: Format, content: str, where: str
) -> None:
    with pytest.raises(InvalidQuery, match=where):
        asked(reader, content, ".", form)


@pytest.mark.parametrize("content", [b"\0\1\2", "a: &a [*a]\n", "? [1, 2]\n: x\n"])
def test_what_has_no_json_form_is_an_invalid_query(reader: Reader, content: str | bytes) -> None:
    with pytest.raises(InvalidQuery):
        asked(reader, content, ".", "yaml")


def test_an_alias_bomb_is_refused_quickly(reader: Reader) -> None:
    names = "abcdefghij"
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{name}: &{name} [{', '.join(['*' + before] * 9)}]" for before, name in itertools.pairwise(names)]
    started = time.monotonic()
    with pytest.raises(InvalidQuery, match="aliases expand"):
        asked(reader, "\n".join(lines), "length", "yaml")
    assert time.monotonic() - started < 10


def test_deep_nesting_ends_the_child_and_not_the_server(reader: Reader) -> None:
    with pytest.raises(InvalidQuery):
        asked(reader, "[" * 200_000, ".", "yaml")


@pytest.mark.parametrize("expression", ["def f: f; f", "[limit(1e12; repeat(1))]", "last(range(1e15))"])
def test_an_endless_expression_ends_at_its_time_limit(reader: Reader, expression: str) -> None:
    started = time.monotonic()
    with pytest.raises(TimedOut, match="took longer than 0.5 s"):
        asked(reader, "1", expression, seconds=0.5)
    assert time.monotonic() - started < 3


def test_a_query_is_cancelled_with_its_call(reader: Reader) -> None:
    threading.Timer(0.2, reader.call.cancel).start()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        asked(reader, "1", "def f: f; f")
    assert time.monotonic() - started < 3


def test_memory_is_bounded(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_128_mib = "reduce range(27) as $i (.; . + .) | length"
    assert asked(reader, '"x"', needs_128_mib, seconds=60).values == (str(1 << 27),), "it fits into the usual bound"
    monkeypatch.setattr(query, "MEMORY_BYTES", 128 << 20)
    with pytest.raises(InvalidQuery, match="more than 128 MiB of memory"):
        asked(reader, '"x"', needs_128_mib, seconds=60)


@pytest.mark.parametrize("expression", ["$ENV", "env"])
def test_no_environment_is_seen(reader: Reader, expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_CANARY", "seen")
    assert asked(reader, "1", expression).values == ("{}",)


@pytest.mark.parametrize(
    "expression",
    [
        'import "secret" as $s {search: "DIR"}; $s',
        'include "secret" {search: "DIR"}; .',
        '# a comment \\\nimport "secret" as $s {search: "DIR"}; $s',
        '"secret" | modulemeta',
    ],
)
def test_no_other_file_is_seen(reader: Reader, tmp_path: Path, expression: str) -> None:
    (tmp_path / "secret.json").write_text('"canary"')
    (tmp_path / "secret.jq").write_text('module {"canary": 1}; def canary: 1;')
    with pytest.raises(InvalidQuery) as caught:
        asked(reader, "1", expression.replace("DIR", str(tmp_path)))
    assert "canary" not in caught.value.message


def test_no_file_name_is_seen(reader: Reader) -> None:
    assert asked(reader, "1", "[input_filename, $__loc__.file]").values == ('[null,"<top-level>"]',)


def test_a_big_file_is_queried_in_bounded_time(reader: Reader) -> None:
    rows = [{"id": number, "name": f"user {number}", "tags": ["a", "b"]} for number in range(100_000)]
    results = asked(reader, json.dumps(rows), "map(select(.id % 50000 == 1) | .name)")
    assert results.values == ('["user 1","user 50001"]',)


def test_a_file_over_the_limit_is_refused_unread(reader: Reader) -> None:
    os.truncate(reader.write("big.json", "1"), MAX_FILE_BYTES + 1)
    with reader.jail.open_file("big.json") as file, pytest.raises(PayloadTooLarge):
        run_query(reader.call, file, "json", ".", 30, 1000)


def test_without_landlock_the_child_still_gets_only_the_document(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.folders.children.confine.can_confine", lambda: False)
    (tmp_path / "secret.json").write_text('"canary"')
    assert asked(reader, '{"a": 1}', ".a").values == ("1",)
    with pytest.raises(InvalidQuery) as caught:
        asked(reader, "1", f'import "secret" as $s {{search: "{tmp_path}"}}; $s')
    assert "canary" not in caught.value.message


def test_more_queries_than_there_are_seats_all_get_their_turn(reader: Reader) -> None:
    reader.write("a", "[1, 2]")
    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda turn: asked_again(reader, f"{turn} + .[1]"), range(12)))
    assert found == [(str(turn + 2),) for turn in range(12)]


def asked_again(reader: Reader, expression: str) -> tuple[str, ...]:
    with reader.jail.open_file("a") as file:
        return run_query(reader.call, file, "json", expression, 30, 1000).values
