"""The lanes behind search in folders: an index in the making, roots that come and go, and when a scan is made."""

import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.adapters.watching import MAX_DIRECTORIES, watch_directories
from holdfast.call import Call
from holdfast.folders.access.jail import Jail
from holdfast.search.folders import index_workers, indexed_root
from holdfast.search.folders import service as folder_service
from holdfast.search.folders.index_state import RootScan, scan_root
from holdfast.search.folders.model import IndexProgress
from holdfast.search.folders.multi_root_lookup import combine_statistics
from holdfast.search.folders.ports import Watch
from holdfast.search.model import Statistics
from tests.helpers.doors import until
from tests.helpers.indexing import Topics
from tests.helpers.searcher import LIMITS, Searcher, StuckIndex, nobody_watches
from tests.helpers.trees import plant

pytestmark = pytest.mark.timeout(120)


class HandWatcher:
    """Watches nothing by itself: a test says when something changed, and sees whether the watch was closed."""

    def __init__(self) -> None:
        self.is_alive = True
        self.report_change: Callable[[], None] = lambda: None

    def __call__(self, _directories: Sequence[str], report_change: Callable[[], None]) -> Watch:
        self.report_change = report_change
        return self

    def close(self) -> None:
        self.is_alive = False


def count_scans(monkeypatch: pytest.MonkeyPatch) -> list[RootScan]:
    """Return a list that every scan from now on is added to."""
    scans: list[RootScan] = []

    def scan(jail: Jail, call: Call, max_files: int) -> RootScan:
        scans.append(scan_root(jail, call, max_files))
        return scans[-1]

    monkeypatch.setattr(indexed_root, "scan_root", scan)
    return scans


def index_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(index_workers.THREAD_NAME)]


def test_an_index_in_the_making_says_so_and_the_rest_is_searched_by_words(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_service, "MAX_SCAN_SECONDS", 0.5)
    plant(root, {f"{number}.md": f"filler {number}" for number in range(4)})
    plant(root, {"z1.md": "the harbours of the north, déjà vu", "z2.md": "nothing of the kind"})
    index = StuckIndex(str(tmp_path / "folders"), takes=3)
    with Searcher(tmp_path, index=index) as searcher:
        until("it is stuck", lambda: searcher.find("harbour", root) and index.takes < 0)
        answer = searcher.find("harbour", root)
        assert [Path(hit.path).name for hit in answer.hits] == ["z1.md"]
        (notice,) = answer.notices
        assert notice.startswith(
            f"The index of {root} is 50 % ready. Files that are not indexed yet were searched by words"
        )
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
    watcher = HandWatcher()
    with Searcher(tmp_path, watcher=watcher) as searcher:
        searcher.settle(root)
        assert watcher.is_alive
        monkeypatch.setattr(index_workers, "IDLE_SECONDS", 0.0)
        until("it is let go", lambda: not watcher.is_alive)
        assert searcher.names("harbour", root) == ["a.md"]


def test_a_long_scan_is_made_only_when_something_stirred(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexed_root, "QUICK_SCAN_SECONDS", 0.0)
    scans, watcher = count_scans(monkeypatch), HandWatcher()
    plant(root, {"a.md": "harbour"})
    with Searcher(tmp_path, watcher=watcher) as searcher:
        searcher.settle(root)
        until("the scan after the first watch is over", lambda: searcher.names("harbour", root) and len(scans) == 2)
        (root / "b.md").write_text("harbour too")
        assert searcher.names("harbour", root) == ["a.md"], "nobody reported a change"
        assert len(scans) == 2
        watcher.report_change()
        assert sorted(searcher.names("harbour", root)) == ["a.md", "b.md"]
        assert len(scans) == 3


def test_where_nobody_watches_a_scan_is_not_repeated_at_once(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexed_root, "QUICK_SCAN_SECONDS", 0.0)
    monkeypatch.setattr(indexed_root, "SCAN_REST_FACTOR", 10_000)
    plant(root, {"a.md": "harbour"})
    with Searcher(tmp_path, watcher=nobody_watches) as searcher:
        assert searcher.names("harbour", root) == ["a.md"]
        plant(root, {"a.md": "harbour changed", "b.md": "harbour too"})
        assert searcher.texts("harbour", root) == ["harbour changed"]


def test_closing_ends_the_lanes_in_the_middle_of_their_work(tmp_path: Path, root: Path) -> None:
    plant(root, {f"{number}.md": f"harbour {number} " * 50 for number in range(2000)})
    with Searcher(tmp_path, Topics("harbour")) as searcher:
        searcher.find("harbour", root)
        assert len(index_threads()) == 2
    assert index_threads() == []


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
    assert watch_directories(["/"] * (MAX_DIRECTORIES + 1), told.set) is None


def test_statistics_of_several_roots_add_up() -> None:
    parts = [Statistics(2, 20, {"a": 1, "b": 2}), Statistics(3, 10, {"a": 3})]
    assert combine_statistics(parts) == Statistics(5, 30, {"a": 4, "b": 2})
    assert combine_statistics([]) == Statistics(0, 0, {})


def test_progress_is_told_in_percent() -> None:
    assert IndexProgress(False, 0, 0, 0, False).words_percent == 0
    assert IndexProgress(True, 0, 0, 0, False).words_percent == 100
    assert IndexProgress(True, 3, 2, 1, False).words_percent == 66
    assert IndexProgress(True, 3, 3, 1, False).notices("/a") == [
        "The index of /a has all words; meaning is 33 % ready."
    ]
    assert IndexProgress(True, 3, 3, 3, True).notices('/a\n"')[0].startswith('"/a\\n')
