"""What is there and not searched: it is said, it is tried again, and it is not taken for an answer."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.adapters.sqlite.search.folder_index import SqliteFolderIndex
from holdfast.folders.finding.walk import Walk, open_start
from holdfast.search.folders.file_text import read_document
from holdfast.search.folders.indexed_root import IndexedRoot, IndexingContext
from holdfast.search.folders.model import ContentKind, UnsearchedCounts, span_below
from holdfast.search.folders.multi_root_lookup import RootScope
from holdfast.search.folders.scan_unread_files import UnreadFileScanner
from tests.helpers import documents
from tests.helpers.doors import until
from tests.helpers.finder import folders_over, new_call
from tests.helpers.rights import like_anybody
from tests.helpers.searcher import LIMITS, Searcher, nobody_watches
from tests.helpers.trees import plant

pytestmark = pytest.mark.timeout(120)

SMALL = replace(LIMITS, max_file_bytes=1000, max_document_bytes=1000)
OPENED = "that could not be opened"
SIZE = "over the size that the settings allow"
BROKEN = "1 document without text (damaged, locked, or only pictures)"
NO_TEXT = "Nothing there can be searched: files without text, hidden, ignored and linked files are left out."


def wait_for_notices(searcher: Searcher, root: Path, *notices: str, path: str = "") -> None:
    """Wait until an answer has these notices and no others; what was just written is read again for a while."""
    until("it is said", lambda: searcher.find("harbour", root, path=path).notices == list(notices), 30)


@pytest.mark.req("SE-50.m")
def test_what_may_not_be_opened_is_said_and_searched_once_it_may(tmp_path: Path, root: Path) -> None:
    plant(
        root, {"a.md": "harbour", "mine.md": "harbour mine", "sub": {"b.md": "harbour b"}, "own": {"c.md": "harbour c"}}
    )
    (root / "mine.md").chmod(0)
    (root / "own").chmod(0)

    def search() -> None:
        with Searcher(tmp_path) as searcher:
            answer = searcher.find("harbour", root)
            assert [Path(hit.path).name for hit in answer.hits] == ["a.md", "b.md"]
            assert answer.notices == [f"Not searched in {root}: 1 directory {OPENED}; 1 file {OPENED}."]
            assert searcher.find("harbour", root).notices == answer.notices, "it stays so"
            assert searcher.find("harbour", root, path="sub").notices == []
            (notice,) = searcher.find("harbour", root, path="mine.md").notices
            assert notice == f"Not searched in {root}: 1 file {OPENED}."
            (root / "mine.md").chmod(0o600)
            (root / "own").chmod(0o700)
            answer = searcher.find("harbour", root)
            assert sorted(Path(hit.path).name for hit in answer.hits) == ["a.md", "b.md", "c.md", "mine.md"]
            assert answer.notices == []
            (root / "mine.md").chmod(0)
            assert "mine.md" not in searcher.names("harbour", root), "nor is its old text shown"

    like_anybody(search)


@pytest.mark.req("SE-50.m")
def test_a_file_over_the_size_is_said_and_read_when_the_settings_allow_it(tmp_path: Path, root: Path) -> None:
    plant(root, {"small.md": "harbour", "big.log": "harbour " * 500})
    (root / "film.mp4").write_bytes(b"\0\1" * 2000)
    (root / "big.pdf").write_bytes(documents.pdf("harbour pages") + b"\n" * 1000)
    old = time.time() - 100
    for path in root.iterdir():
        os.utime(path, (old, old))
    with Searcher(tmp_path, limits=SMALL) as searcher:
        wait_for_notices(searcher, root, f"Not searched in {root}: 2 files {SIZE}.")
        wait_for_notices(searcher, root, f"Not searched in {root}: 1 file {SIZE}.", path="big.log")
    with Searcher(tmp_path) as searcher:
        wait_for_notices(searcher, root)
        assert {"big.log", "big.pdf"} <= set(searcher.names("harbour", root, limit=20))


@pytest.mark.req("SE-50.m")
def test_no_text_is_not_taken_for_no_match(tmp_path: Path, root: Path) -> None:
    plant(root, {"note.md": "harbour", "empty.md": ""})
    (root / "bytes.bin").write_bytes(b"\0harbour")
    (root / "broken.pdf").write_bytes(documents.pdf("harbour")[:60])
    with Searcher(tmp_path) as searcher:
        wait_for_notices(searcher, root, NO_TEXT, path="bytes.bin")
        wait_for_notices(searcher, root, NO_TEXT, path="empty.md")
        wait_for_notices(searcher, root, f"Not searched in {root}: {BROKEN}.", path="broken.pdf")
        wait_for_notices(searcher, root, path="note.md")


def test_a_document_that_is_a_text_by_the_time_it_is_extracted_is_read_at_the_next_scan(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(root, {"note.md": "a text by now"})
    later = time.time_ns() + 3_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: later)
    reading = read_document(new_call(), folders_over(root).jail, "note.md", LIMITS, None)
    assert (reading.record.kind, reading.record.version) == (ContentKind.NO_TEXT, "")


def test_a_walk_tells_the_directories_that_may_not_be_opened(root: Path) -> None:
    plant(root, {"a": {"open": {}, "shut": {"x": ""}}})
    (root / "a" / "shut").chmod(0)

    def walk() -> None:
        jail = folders_over(root).jail
        with open_start(jail, ".", ignore=False) as start:
            walk = Walk(jail, new_call(), start, ignore=False)
            assert sum(len(entries) for _, entries in walk) == 3
        assert walk.unreadable == ["a/shut"]

    like_anybody(walk)
    (root / "a" / "shut").chmod(0o700)


def test_nothing_left_out_is_nothing_said() -> None:
    assert UnsearchedCounts().notices("/a") == []
    assert UnsearchedCounts(unopened_files=2).notices("/a") == [f"Not searched in /a: 2 files {OPENED}."]


def unread(tmp_path: Path, root: Path, query: str) -> UnreadFileScanner:
    """Return a look through the files of a root of which none has been read."""
    jail = folders_over(root).jail
    context = IndexingContext(SqliteFolderIndex(str(tmp_path / "folders")), LIMITS, nobody_watches, None)
    folder = IndexedRoot(jail.roots[0], [], (), context, lambda: None)
    folder.state.queue_texts(f"/{path.name}" for path in root.iterdir())
    return UnreadFileScanner(jail, [RootScope(folder, span_below(""))], query, LIMITS, lambda: None)


@pytest.mark.req("SE-50.g")
@pytest.mark.parametrize("query", ["key", "keys", "o'brien", "OBrien", "days"])
def test_any_form_of_a_word_is_found_in_a_file_that_waits_to_be_read(tmp_path: Path, root: Path, query: str) -> None:
    plant(root, {"a.md": "that day Mr O’Brien had the key", "b.md": "nothing of it"})
    assert [file.path for file in unread(tmp_path, root, query).load(64, 10_000)] == ["/a.md"]


def test_of_a_large_file_that_waits_to_be_read_the_beginning_is_scored(tmp_path: Path, root: Path) -> None:
    (root / "large.md").write_text("harbour é " * 1000)
    (file,) = unread(tmp_path, root, "harbour").load(64, 1000)
    assert 990 <= len(file.data) <= 1000
    assert file.data.decode().startswith("harbour é")
