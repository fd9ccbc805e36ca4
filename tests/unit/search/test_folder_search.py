"""Search in folders: what is found, how fresh it is, and what is never shown."""

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.errors import AccessDenied, InvalidQuery
from holdfast.search.folders import service as folder_service
from holdfast.search.folders.file_text import read_text
from holdfast.search.folders.index_state import scan_root
from holdfast.search.folders.model import index_key
from holdfast.search.tokens import TOKENIZER
from tests.helpers import documents
from tests.helpers.doors import until
from tests.helpers.finder import folders_over, new_call
from tests.helpers.indexing import Topics
from tests.helpers.searcher import LIMITS, Searcher, StuckIndex, nobody_watches
from tests.helpers.trees import plant

pytestmark = pytest.mark.timeout(120)

LONG = "\n\n".join(f"Paragraph {number} speaks of lighthouse{number} and little else. " * 12 for number in range(12))


@pytest.fixture
def searcher(tmp_path: Path) -> Iterator[Searcher]:
    """Give a search by words that nobody helps by watching, so that each answer stands on its own look."""
    with Searcher(tmp_path, watcher=nobody_watches) as found:
        yield found


def test_a_passage_comes_with_its_path_and_the_line_it_begins_at(searcher: Searcher, root: Path) -> None:
    plant(root, {"sub": {"long.md": LONG}})
    hit = searcher.find("lighthouse7", root).hits[0]
    assert hit.path == str(root / "sub/long.md")
    assert hit.line is not None
    assert "\n".join(LONG.split("\n")[hit.line - 1 :]).startswith(hit.text)


def test_a_path_narrows_a_search_to_a_directory_or_a_file(searcher: Searcher, root: Path) -> None:
    plant(root, {"a.md": "harbour one", "sub": {"b.md": "harbour two"}, "subway": {"c.md": "harbour three"}})
    assert searcher.names("harbour", root, path="sub") == ["b.md"]
    assert searcher.names("harbour", root, path="a.md") == ["a.md"]
    assert sorted(searcher.names("harbour", root, path=".")) == ["a.md", "b.md", "c.md"]
    assert searcher.names("harbour", root, path="sub", limit=0) == ["b.md"]


def test_names_of_any_script_are_found_beneath_their_directory(searcher: Searcher, root: Path) -> None:
    plant(root, {"ß dir": {"日本 語.md": "harbour at night", "é.md": "harbour by day"}})
    assert sorted(searcher.names("harbour", root, path="ß dir")) == ["é.md", "日本 語.md"]


def test_a_blank_query_and_a_path_outside_are_refused(searcher: Searcher, root: Path) -> None:
    with pytest.raises(InvalidQuery):
        searcher.find(" ", root)
    with pytest.raises(AccessDenied):
        searcher.find("harbour", root, path="/etc")


def test_meaning_is_found_where_no_word_is_shared(tmp_path: Path, root: Path) -> None:
    plant(root, {"car.md": "The automobile stood still.", "pie.md": "Apples and pastry."})
    with Searcher(tmp_path, Topics("car automobile vehicle", "pie pastry apples")) as searcher:
        searcher.settle(root)
        assert searcher.names("vehicle", root)[0] == "car.md"


def test_several_roots_rank_as_one_and_a_file_of_two_counts_once(
    searcher: Searcher, root: Path, tmp_path: Path
) -> None:
    plant(root, {"a.md": "harbour harbour harbour", "sub": {"b.md": "the harbour, among many other words and things"}})
    other = plant(tmp_path / "other", {"c.md": "harbour harbour and one more", "d.md": "meadow"})
    assert searcher.names("harbour", root, other, root / "sub") == ["a.md", "c.md", "b.md"]
    assert searcher.names("meadow", root, other) == searcher.names("meadow", other, root) == ["d.md"]


def test_roots_within_roots_leave_as_many_hits_as_were_asked_for(searcher: Searcher, root: Path) -> None:
    deep = plant(root / "a" / "b", {f"{number}.md": f"harbour {number}" for number in range(30)})
    assert len(set(searcher.names("harbour", root, root / "a", deep, limit=20))) == 20


def test_a_root_never_shows_what_another_holds(searcher: Searcher, root: Path, tmp_path: Path) -> None:
    other = plant(tmp_path / "other", {"secret.md": "harbour of secrets"})
    plant(root, {"a.md": "harbour"})
    assert searcher.names("harbour", other) == ["secret.md"]
    assert searcher.names("harbour secrets", root) == ["a.md"]


def test_an_edit_a_rename_and_a_removal_show_at_the_next_search(searcher: Searcher, root: Path) -> None:
    plant(root, {"a.md": "harbour", "b.md": "meadow"})
    assert searcher.names("harbour", root) == ["a.md"]
    (root / "a.md").write_text("mountain")
    assert searcher.names("harbour", root) == []
    assert searcher.names("mountain", root) == ["a.md"]
    (root / "b.md").rename(root / "c.md")
    assert searcher.names("meadow", root) == ["c.md"]
    (root / "c.md").unlink()
    assert searcher.names("meadow", root) == []


def test_an_edit_that_keeps_size_and_times_shows_the_new_text(searcher: Searcher, root: Path) -> None:
    plant(root, {"a.md": "harbour one"})
    before = (root / "a.md").stat()
    assert searcher.texts("harbour", root) == ["harbour one"]
    (root / "a.md").write_text("harbour two")
    os.utime(root / "a.md", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert searcher.texts("harbour", root) == ["harbour two"]


def test_a_file_written_a_moment_ago_is_read_again_at_the_next_scan(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(root, {"a.md": "harbour"})
    jail = folders_over(root).jail
    assert read_text(jail, "a.md", LIMITS).record.version == ""
    later = time.time_ns() + 3_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: later)
    assert read_text(jail, "a.md", LIMITS).record.version == scan_root(jail, new_call(), 10).versions["/a.md"]


def test_old_text_is_never_shown_though_nobody_reads_the_new(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = StuckIndex(str(tmp_path / "folders"))
    plant(root, {"a.md": "harbour one", "b.pdf": documents.pdf("harbour on paper"), "c.md": "harbour three"})
    with Searcher(tmp_path, watcher=nobody_watches, index=index) as searcher:
        searcher.settle(root)
        assert len(searcher.texts("harbour", root)) == 3
        monkeypatch.setattr(folder_service, "MAX_SCAN_SECONDS", 0.1)
        monkeypatch.setattr(folder_service, "MAX_REREAD_SECONDS", 0.1)
        index.takes = 0
        (root / "a.md").write_text("harbour two")
        (root / "b.pdf").write_bytes(documents.pdf("harbour in print"))
        assert searcher.texts("harbour", root) == ["harbour three"]
        index.let.set()


def test_a_changed_or_vanished_document_shows_no_old_text(searcher: Searcher, root: Path) -> None:
    plant(root, {"a.pdf": documents.pdf("harbour on paper")})
    searcher.settle(root)
    assert "on paper" in searcher.texts("harbour", root)[0]
    (root / "a.pdf").write_bytes(documents.pdf("harbour in print"))
    assert not any("on paper" in text for text in searcher.texts("harbour", root))
    searcher.settle(root)
    assert "in print" in searcher.texts("harbour", root)[0]
    (root / "a.pdf").unlink()
    assert searcher.texts("harbour", root) == []


def test_documents_and_web_pages_are_extracted(searcher: Searcher, root: Path) -> None:
    page = "<html><head><style>p {color: red}</style></head><body><p>Harbour page</p></body></html>"
    plant(
        root,
        {
            "a.pdf": documents.pdf("Harbour plan"),
            "b.docx": documents.word(),
            "c.xlsx": documents.sheet(),
            "d.pptx": documents.slides(),
            "e.html": page,
        },
    )
    searcher.settle(root)
    assert sorted(searcher.names("harbour", root)) == ["a.pdf", "e.html"]
    assert searcher.names("Größe Maß", root) == ["b.docx"]
    assert searcher.names("people sheet", root) == ["c.xlsx"]
    assert searcher.names("closing thanks", root) == ["d.pptx"]
    lines = {Path(hit.path).name: hit.line for hit in searcher.find("harbour", root).hits}
    assert lines == {"a.pdf": 1, "e.html": None}
    assert searcher.names("color red", root) == []


def test_other_encodings_are_read_and_binary_files_are_not(searcher: Searcher, root: Path) -> None:
    plant(
        root,
        {"a.txt": "Größe: harbour".encode("utf-16"), "b.txt": "Maß: harbour".encode("cp1252"), "c.bin": b"\0harbour"},
    )
    assert sorted(searcher.names("harbour", root)) == ["a.txt", "b.txt"]
    assert searcher.names("Größe", root) == ["a.txt"]


def test_what_is_ignored_hidden_huge_linked_or_special_is_left_out(
    searcher: Searcher, root: Path, tmp_path: Path
) -> None:
    outside = plant(tmp_path / "outside", {"x.md": "harbour outside"})
    plant(
        root,
        {
            ".gitignore": "build/\n*.log\n",
            "build": {"b.md": "harbour"},
            "a.log": "harbour",
            ".hidden": {"h.md": "harbour"},
            ".dot.md": "harbour",
            "huge.md": "harbour " * 200_000,
            "seen.md": "harbour",
        },
    )
    (root / "link.md").symlink_to(outside / "x.md")
    (root / "way").symlink_to(outside)
    os.mkfifo(root / "pipe")
    answer = searcher.find("harbour", root, limit=20)
    assert [Path(hit.path).name for hit in answer.hits] == ["seen.md"]
    assert "left out" in searcher.find("harbour", root, path=".hidden").notices[0]


def test_an_ignored_file_is_forgotten_when_the_rules_change(searcher: Searcher, root: Path) -> None:
    plant(root, {"a.md": "harbour"})
    assert searcher.names("harbour", root) == ["a.md"]
    (root / ".gitignore").write_text("a.md\n")
    assert searcher.names("harbour", root) == []


def test_a_watched_root_is_read_again_without_being_asked(tmp_path: Path, root: Path) -> None:
    plant(root, {"a.md": "harbour"})
    with Searcher(tmp_path) as searcher:
        searcher.settle(root)
        (root / "b.md").write_text("mountain")
        key = index_key(TOKENIZER, str(root))
        until("it is indexed", lambda: "/b.md" in searcher.index.load_records(key), 30)
        assert searcher.names("mountain", root) == ["b.md"]


def test_an_index_is_kept_and_what_changed_meanwhile_is_read(tmp_path: Path, root: Path) -> None:
    model = Topics("harbour", "mountain")
    plant(root, {"a.md": "harbour", "b.md": "mountain"})
    with Searcher(tmp_path, model) as first:
        first.settle(root)
    (root / "b.md").write_text("harbour too")
    model.embedded.clear()
    with Searcher(tmp_path, model) as second:
        second.settle(root)
        assert sorted(second.names("harbour", root)) == ["a.md", "b.md"]
    assert model.embedded.count("harbour") == 1, "the query alone: the text that stayed has its vector"


def test_a_file_cut_off_on_its_way_into_the_index_is_read_again(tmp_path: Path, root: Path) -> None:
    plant(root, {"a.md": "harbour"})
    with Searcher(tmp_path) as first:
        first.settle(root)
    (file,) = (tmp_path / "folders").glob("*.db")
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE mcp_files SET version = version + 1")
    connection.close()
    with Searcher(tmp_path) as second:
        assert second.names("harbour", root) == ["a.md"]


@pytest.mark.parametrize("damage", [b"no database at all, and never was one", b""])
def test_a_damaged_index_is_made_again(tmp_path: Path, root: Path, damage: bytes) -> None:
    plant(root, {"a.md": "harbour"})
    with Searcher(tmp_path) as first:
        first.settle(root)
    (file,) = (tmp_path / "folders").glob("*.db")
    file.write_bytes(damage)
    with Searcher(tmp_path) as second:
        second.settle(root)
        assert second.names("harbour", root) == ["a.md"]


def test_an_index_damaged_while_in_use_is_made_again(tmp_path: Path, root: Path) -> None:
    plant(root, {f"{number}.md": f"harbour {number} " * 300 for number in range(30)})
    with Searcher(tmp_path) as searcher:
        searcher.settle(root)
        for file in searcher.folder.glob("*.db*"):
            with file.open("r+b") as opened:
                opened.write(b"\xff" * file.stat().st_size)
        searcher.index._files.close()
        searcher.index._files._max_idle = 8
        searcher.settle(root)
        assert len(searcher.names("harbour", root)) == 5


def test_an_index_is_its_owners_alone_and_unused_ones_go(tmp_path: Path, root: Path) -> None:
    other = plant(tmp_path / "other", {"a.md": "harbour"})
    plant(root, {"a.md": "harbour"})
    with Searcher(tmp_path) as searcher:
        searcher.settle(root, other)
        files = list(searcher.folder.iterdir())
        assert stat.S_IMODE(searcher.folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    old, new = sorted(searcher.folder.glob("*.db"))
    os.utime(old, (0, time.time() - 31 * 86_400))
    with Searcher(tmp_path, limits=replace(LIMITS, keep_days=30)) as searcher:
        assert searcher.index.remove_unused(30) == 1
    assert list(searcher.folder.glob("*.db")) == [new]


def test_more_files_or_text_than_allowed_are_left_out_and_said(tmp_path: Path, root: Path) -> None:
    plant(root, {f"{number}.md": f"harbour {number} " * 10 for number in range(6)})
    with Searcher(tmp_path, limits=replace(LIMITS, max_files=4)) as few:
        answer = few.find("harbour", root, limit=20)
    assert len(answer.hits) == 4
    assert "left out" in answer.notices[-1]
    with Searcher(tmp_path / "second", limits=replace(LIMITS, max_bytes=250)) as little:
        answer = little.find("harbour", root, limit=20)
    assert len(answer.hits) == 2
    assert "left out" in answer.notices[-1]


def test_a_model_that_fails_leaves_words(tmp_path: Path, root: Path) -> None:
    model = Topics("harbour")
    model.is_down = True
    plant(root, {"a.md": "harbour"})
    with Searcher(tmp_path, model) as searcher:
        searcher.settle(root)
        assert searcher.names("harbour", root) == ["a.md"]
        assert not searcher.search.has_work()
