"""Documents whose readers fail for reasons of their own: not blamed, tried again a few times, and said."""

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast.search.folders import index_state
from holdfast.search.folders.index_state import RETRY_PAUSES, RootIndexState, RootScan
from holdfast.search.folders.model import ContentKind, FileRecord
from tests.helpers import documents
from tests.helpers.doors import until
from tests.helpers.readers import no_reader
from tests.helpers.searcher import Searcher
from tests.helpers.trees import plant

pytestmark = pytest.mark.timeout(120)

BROKEN = "Not searched in {}: 1 document without text (damaged, locked, or only pictures)."


def planted(root: Path) -> None:
    plant(root, {"page.html": "<html><p>harbour pages", "note.md": "harbour note"})
    (root / "letter.pdf").write_bytes(documents.pdf("harbour letter"))
    (root / "broken.pdf").write_bytes(documents.pdf()[:60])
    old = time.time() - 100
    for path in root.iterdir():
        os.utime(path, (old, old))


def test_a_reader_that_cannot_start_is_said_and_the_files_are_read_when_it_can(tmp_path: Path, root: Path) -> None:
    planted(root)
    with Searcher(tmp_path) as searcher:
        with no_reader():
            searcher.settle(root)
            answer = searcher.find("harbour", root)
            assert [Path(hit.path).name for hit in answer.hits] == ["note.md"]
            notice = f"3 files of {root} could not be read because of a temporary error; try again later."
            assert answer.notices == [notice]
        until("all are read", lambda: len(searcher.names("harbour", root)) == 3, 60)
        until("all is said", lambda: searcher.find("harbour", root).notices == [BROKEN.format(root)], 60)


def test_what_was_not_read_is_tried_again_after_a_restart(tmp_path: Path, root: Path) -> None:
    planted(root)
    with Searcher(tmp_path) as searcher, no_reader():
        searcher.settle(root)
    with Searcher(tmp_path) as searcher:
        until("all are read", lambda: searcher.find("harbour", root).notices == [BROKEN.format(root)], 60)
        assert sorted(searcher.names("harbour", root)) == ["letter.pdf", "note.md", "page.html"]


def test_a_file_is_tried_a_few_times_with_longer_and_longer_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(index_state, "time", SimpleNamespace(monotonic=lambda: now[0]))
    state = RootIndexState()
    tries = 0
    for _ in range(100):
        state.apply_scan(RootScan({"/a.pdf": "one"}))
        if state.next_text() is not None:
            tries += 1
            state.put_record("/a.pdf", FileRecord("one", ContentKind.READER_FAILED), needs_vectors=False)
        now[0] += 60
    assert tries == 1 + len(RETRY_PAUSES)
    assert state.progress().reader_failures == 1
    assert state.progress().words_percent == 100


def test_a_file_that_changed_is_tried_anew_and_one_that_was_read_is_not_counted() -> None:
    state = RootIndexState()
    for version in ("one", "two"):
        state.apply_scan(RootScan({"/a.pdf": version}))
        assert state.next_text() == "/a.pdf"
        state.put_record("/a.pdf", FileRecord(version, ContentKind.READER_FAILED), needs_vectors=False)
        state.apply_scan(RootScan({"/a.pdf": version}))
        assert state.next_text() is None
    state.put_record("/a.pdf", FileRecord("two", ContentKind.DOCUMENT, "digest", 5), needs_vectors=False)
    assert state.progress().reader_failures == 0
    state.put_record("/a.pdf", FileRecord("two", ContentKind.READER_FAILED), needs_vectors=False)
    state.remove_records(["/a.pdf"])
    assert state.progress().reader_failures == 0
