"""What a file is like, known before it is read."""

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from holdfast.folders.reading.info import PathInfo, describe_path
from tests.helpers import documents
from tests.helpers.reader import Reader


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    (tmp_path / "root").mkdir()
    (tmp_path / "state").mkdir()
    return Reader(tmp_path / "root", tmp_path / "state")


def info(reader: Reader, name: str, content: str | bytes) -> PathInfo:
    reader.write(name, content)
    return describe_path(reader.call, reader.jail, name, reader.settings)


def test_a_text_file_is_counted_hashed_and_named(reader: Reader) -> None:
    found = info(reader, "a.txt", "one\ntwo\nthrée")
    assert (found.lines, found.characters, found.tokens) == (3, 13, 4)
    assert (found.encoding, found.newlines) == ("utf-8", "LF")
    assert found.sha256 == "sha256:" + hashlib.sha256("one\ntwo\nthrée".encode()).hexdigest()
    assert (found.size, found.is_directory, found.estimated, found.hint) == (14, False, False, None)


def test_times_and_permissions_are_those_of_the_file(reader: Reader) -> None:
    path = reader.write("a", "x")
    path.chmod(0o640)
    os.utime(path, (1000, 2000))
    found = describe_path(reader.call, reader.jail, "a", reader.settings)
    assert (found.accessed, found.modified, found.permissions) == (1000, 2000, "640")
    assert abs(found.created - time.time()) < 60


@pytest.mark.parametrize(
    ("content", "style"),
    [("a\r\nb\r\n", "CRLF"), ("a\nb\r\n", "mixed"), ("a\nb\n", "LF"), ("ab", "none"), ("", "none")],
)
def test_the_style_of_newlines_is_told(reader: Reader, content: str, style: str) -> None:
    assert info(reader, "a", content).newlines == style


def test_crlf_across_the_border_of_two_reads_is_one_newline(reader: Reader) -> None:
    found = info(reader, "a", b"x" * ((1 << 20) - 1) + b"\r\ny\r\n")
    assert (found.newlines, found.lines) == ("CRLF", 2)


def test_encodings_are_counted_in_characters(reader: Reader) -> None:
    found = info(reader, "a", "zwölf\n中文\n".encode("utf-16"))
    assert (found.encoding, found.lines, found.characters) == ("utf-16-le with BOM", 2, 9)
    assert info(reader, "b", "这是一个用来检查编码的文本文件。\n".encode("gbk")).encoding == "gbk"


@pytest.mark.parametrize(
    ("name", "content", "shape"),
    [
        ("a.json", '{"b": 1, "c": [2]}', 'JSON object, 2 keys: "b", "c"'),
        ("a.json", '[{"id": 1}, {"id": 2}]', 'JSON array of 2, the first an object with keys: "id"'),
        ("a.json", "[]", "JSON array of 0"),
        ("a.json", "{\n 1}", "JSON: not valid at line 2, column 2"),
        ("a.json", "[" * 100_000, "JSON: nested too deeply"),
        ("a.csv", 'name,age\n"Ada\nL",36\nBob,5\n', 'CSV, 2 columns: "name", "age"; 2 rows'),
        ("a.csv", "name;age\nAda;36\n", 'CSV, 2 columns: "name", "age"; 1 rows'),
        ("a.tsv", "a\tb\tc\n", 'CSV, 3 columns: "a", "b", "c"; 0 rows'),
    ],
)
def test_the_shape_of_data_is_told(reader: Reader, name: str, content: str, shape: str) -> None:
    assert info(reader, name, content).shape == shape


def test_words_that_look_like_a_pictures_mark_are_text(reader: Reader) -> None:
    assert info(reader, "a", "BMW and ID3\n").mime_type == "text/plain"


def test_many_keys_are_not_all_listed(reader: Reader) -> None:
    shape = info(reader, "a.json", json.dumps({f"key{number}": 1 for number in range(1000)})).shape
    assert shape is not None
    assert shape.startswith("JSON object, 1000 keys: ")
    assert len(shape) < 1000


def test_a_file_longer_than_an_answer_gets_a_hint(reader: Reader) -> None:
    hint = info(reader, "a", "some words on a line\n" * 20_000).hint
    assert hint is not None
    assert hint.startswith("5 answers long")
    assert "4000 lines at a time" in hint


def test_binary_files_and_documents_say_which_tool_reads_them(reader: Reader) -> None:
    picture = info(reader, "a.png", documents.picture(10, 10))
    assert (picture.mime_type, picture.lines, picture.hint) == ("image/png", None, "Use read_media_file.")
    assert picture.sha256 is not None
    assert info(reader, "a.pdf", documents.pdf()).hint == "Use read_text_file: its text is extracted."


def test_a_directory_counts_its_entries(reader: Reader) -> None:
    for name in "abc":
        reader.write(name, "")
    found = describe_path(reader.call, reader.jail, ".", reader.settings)
    assert (found.is_directory, found.entries, found.lines) == (True, 3, None)


def test_a_30_gb_file_is_described_at_once_by_estimate(reader: Reader) -> None:
    path = reader.write("big.log", "a line of text\n" * 10_000)
    os.truncate(path, 30 << 30)
    os.truncate(reader.write("hole", ""), 30 << 30)
    started = time.monotonic()
    found = describe_path(reader.call, reader.jail, "big.log", reader.settings)
    assert found.estimated
    assert found.lines == pytest.approx((30 << 30) / 15, rel=0.01)
    assert found.sha256 is None
    assert describe_path(reader.call, reader.jail, "hole", reader.settings).mime_type == "application/octet-stream"
    assert time.monotonic() - started < 1
