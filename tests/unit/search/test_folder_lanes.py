"""The lanes behind search in folders: an index in the making, roots that come and go, and when a scan is made."""

import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from holdfast.adapters.sqlite.search.folder_index import SqliteFolderIndex
from holdfast.adapters.watching import MOST_DIRECTORIES, watch_directories
from holdfast.search.folders import index_workers, indexed_root
from holdfast.search.folders import service as folder_service
from holdfast.search.folders.indexed_root import IndexedRoot
from holdfast.search.folders.model import FileRecord, IndexProgress
from holdfast.search.folders.multi_root_lookup import combine_statistics
from holdfast.search.model import Chunk, Statistics
from tests.helpers.doors import until
from tests.helpers.indexing import Topics
from tests.helpers.searcher import LIMITS, Searcher, nobody_watches
from tests.helpers.trees import plant

pytestmark = pytest.mark.timeout(120)


class StuckIndex(SqliteFolderIndex):
    """Takes so many files and then no more until it is let."""

    def __init__(self, folder: str, takes: int) -> None:
        super().__init__(folder)
        self.takes = takes
        self.let = threading.Event()

    def put_file(self, root: str, path: str, known: FileRecord, chunks: Sequence[Chunk], at: datetime) -> None:
        self.takes -= 1
        if self.takes < 0:
            self.let.wait(60)
        super().put_file(root, path, known, chunks, at)


def only_root(searcher: Searcher) -> IndexedRoot:
    (found,) = searcher.search._lanes._roots.values()
    return found


def quiet_since(root: IndexedRoot) -> float | None:
    """Return when the last scan ended, None while another one may be under way."""
    before = root._scanned_at
    time.sleep(0.5)
    return before if root._is_trusted() and root._scanned_at == before else None


def test_an_index_in_the_making_says_so_and_the_rest_is_searched_by_words(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_service, "_SETTLE_SECONDS", 0.5)
    plant(root, {f"{number}.md": f"filler {number}" for number in range(4)})
    plant(root, {"z1.md": "the harbours of the north, déjà vu", "z2.md": "nothing of the kind"})
    index = StuckIndex(str(tmp_path / "folders"), takes=3)
    with Searcher(tmp_path, index=index) as searcher:
        until("it is stuck", lambda: searcher.find("harbour", root) and index.takes < 0)
        answer = searcher.find("harbour", root)
        assert [Path(hit.path).name for hit in answer.hits] == ["z1.md"]
        (notice,) = answer.notices
        assert notice.startswith(f"The index of {root} is 50 % ready. What it lacks was searched by words")
        assert answer.ready < 100
        assert searcher.names("DEJA", root) == ["z1.md"]
        assert searcher.search.has_work()
        index.let.set()
        searcher.settle(root)
        assert searcher.find("harbour", root).notices == []
        assert not searcher.search.has_work()


def test_words_rank_alone_until_most_files_have_their_vectors(tmp_path: Path, root: Path) -> None:
    held = threading.Event()

    class Slow(Topics):
        def embed(self, texts, key, check):  # type: ignore[no-untyped-def]
            if self.embedded:
                held.wait(60)
            return super().embed(texts, key, check)

    plant(root, {"a.md": "mountain", "b.md": "harbour", "c.md": "harbour and more"})
    with Searcher(tmp_path, Slow("harbour mountain")) as searcher:
        until("one has its vector", lambda: searcher.find("harbour", root).ready == 33, 60)
        assert searcher.names("harbour", root) == ["b.md", "c.md"]
        assert "meaning is 33 % ready" in searcher.find("harbour", root).notices[0]
        held.set()
        searcher.settle(root)
        assert sorted(searcher.names("harbour", root)) == ["a.md", "b.md", "c.md"]


def test_a_root_made_anew_in_its_place_is_another(tmp_path: Path, root: Path) -> None:
    plant(root, {"a.md": "harbour one", "b.md": "harbour two"})
    with Searcher(tmp_path) as searcher:
        assert len(searcher.names("harbour", root)) == 2
        shutil.rmtree(root)
        plant(root, {"c.md": "harbour three"})
        searcher.let_go()
        assert searcher.texts("harbour", root) == ["harbour three"]


def test_roots_that_nobody_searches_are_let_go(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(root, {"a.md": "harbour"})
    with Searcher(tmp_path) as searcher:
        searcher.settle(root)
        watch = only_root(searcher)._watch
        assert watch is not None and watch.is_alive
        monkeypatch.setattr(index_workers, "IDLE_SECONDS", 0.0)
        until("it is let go", lambda: not searcher.search._lanes._roots)
        until("nobody watches", lambda: not watch.is_alive)
        assert searcher.names("harbour", root) == ["a.md"]


def test_a_long_scan_is_made_only_when_something_stirred(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexed_root, "_QUICK_SCAN_SECONDS", 0.0)
    plant(root, {"a.md": "harbour"})
    with Searcher(tmp_path) as searcher:
        searcher.settle(root)
        scanned_at = until("the scan after the first watch is over", lambda: quiet_since(only_root(searcher)))
        assert searcher.names("harbour", root) == ["a.md"]
        assert only_root(searcher)._scanned_at == scanned_at
        (root / "b.md").write_text("harbour too")
        until("it is found", lambda: len(searcher.names("harbour", root)) == 2)
        assert only_root(searcher)._scanned_at > scanned_at


def test_where_nobody_watches_a_scan_is_not_repeated_at_once(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexed_root, "_QUICK_SCAN_SECONDS", 0.0)
    monkeypatch.setattr(indexed_root, "_REST", 10_000)
    plant(root, {"a.md": "harbour"})
    with Searcher(tmp_path, watcher=nobody_watches) as searcher:
        assert searcher.names("harbour", root) == ["a.md"]
        plant(root, {"a.md": "harbour changed", "b.md": "harbour too"})
        assert searcher.texts("harbour", root) == ["harbour changed"]


def test_closing_ends_the_lanes_in_the_middle_of_their_work(tmp_path: Path, root: Path) -> None:
    plant(root, {f"{number}.md": f"harbour {number} " * 50 for number in range(2000)})
    with Searcher(tmp_path, Topics("harbour")) as searcher:
        searcher.find("harbour", root)
        threads = searcher.search._lanes._threads
    assert not any(thread.is_alive() for thread in threads)


def test_limits_of_documents_hold(tmp_path: Path, root: Path) -> None:
    plant(
        root, {"a.html": "<html><p>harbour " + "x " * 5_000 + "quay</p></html>", "b.html": "<html>" + "harbour " * 9000}
    )
    limits = replace(LIMITS, max_file_bytes=2_000, max_document_bytes=20_000)
    with Searcher(tmp_path, limits=limits) as searcher:
        searcher.settle(root)
        assert searcher.names("harbour", root) == ["a.html"]
        assert searcher.names("quay", root) == []


def test_a_watch_tells_of_changes_and_ends_when_it_cannot(tmp_path: Path) -> None:
    told = threading.Event()
    watch = watch_directories([str(tmp_path)], told.set)
    assert watch is not None

    def is_told() -> bool:
        (tmp_path / "a").write_text(str(time.monotonic()))
        return told.wait(0.2)

    until("a change is told", is_told)
    watch.close()
    assert not watch.is_alive
    ended = threading.Event()
    missing = watch_directories([str(tmp_path / "nowhere")], ended.set)
    assert missing is not None
    assert ended.wait(20)
    until("it has ended", lambda: not missing.is_alive)
    assert watch_directories(["/"] * (MOST_DIRECTORIES + 1), told.set) is None


def test_statistics_of_several_roots_add_up() -> None:
    parts = [Statistics(2, 20, {"a": 1, "b": 2}), Statistics(3, 10, {"a": 3})]
    assert combine_statistics(parts) == Statistics(5, 30, {"a": 4, "b": 2})
    assert combine_statistics([]) == Statistics(0, 0, {})


def test_progress_is_told_in_percent() -> None:
    assert IndexProgress(False, 0, 0, 0, False).words == 0
    assert IndexProgress(True, 0, 0, 0, False).words == 100
    assert IndexProgress(True, 3, 2, 1, False).words == 66
    assert IndexProgress(True, 3, 3, 1, False).notices("/a") == [
        "The index of /a has all words; meaning is 33 % ready."
    ]
    assert IndexProgress(True, 3, 3, 3, True).notices('/a\n"')[0].startswith('"/a\\n')
