"""Listings: honest lines, one for each entry, whatever the names are."""

import os
from pathlib import Path

import pytest

from holdfast.errors import InvalidArgument
from holdfast.folders.finding import listing, walk
from holdfast.folders.finding.listing import list_directory, list_with_sizes
from holdfast.text.budget import encode_cursor, estimate_tokens
from holdfast.text.display import format_size
from tests.helpers.finder import cursor_in, folders_over, new_call, pages
from tests.helpers.trees import plant


def test_a_listing_is_sorted_and_says_what_each_entry_is(tmp_path: Path) -> None:
    plant(tmp_path, {"b.txt": "", "a": {}, ".hidden": ""})
    (tmp_path / "link").symlink_to("b.txt")
    lines = list_directory(folders_over(tmp_path), new_call(), "").splitlines()
    assert lines == ["[FILE] .hidden", "[DIR] a", "[FILE] b.txt", f"[LINK] link -> {tmp_path}/b.txt"]


def test_a_newline_in_a_name_forges_no_line(tmp_path: Path) -> None:
    plant(tmp_path, {"a\n[DIR] etc": "", "x": ""})
    assert list_directory(folders_over(tmp_path), new_call(), ".") == '[FILE] "a\\n[DIR] etc"\n[FILE] x'


def test_a_link_that_leads_out_does_not_say_where(tmp_path: Path) -> None:
    root = plant(tmp_path, {"secret-place": {"f": ""}, "root": {}}) / "root"
    (root / "absolute").symlink_to(tmp_path / "secret-place")
    (root / "relative").symlink_to("../secret-place/f")
    (root / "dangling").symlink_to("nowhere")
    (root / "loop").symlink_to("loop")
    text = list_directory(folders_over(root), new_call(), ".")
    assert text.splitlines() == [
        "[LINK] absolute",
        f"[LINK] dangling -> {root}/nowhere",
        "[LINK] loop",
        "[LINK] relative",
    ]


def test_an_empty_directory_says_so(tmp_path: Path) -> None:
    assert list_directory(folders_over(tmp_path), new_call(), ".") == listing.EMPTY


def test_sizes_come_with_totals_as_the_reference_writes_them(tmp_path: Path) -> None:
    plant(tmp_path, {"small": "x" * 10, "big": "x" * 1536, "d": {}})
    text = list_with_sizes(folders_over(tmp_path), new_call(), ".", "size")
    assert text.splitlines() == [
        f"[FILE] {'big':<30} {'1.50 KB':>10}",
        f"[FILE] {'small':<30} {'10 B':>10}",
        "[DIR] d",
        "",
        "Total: 2 files, 1 directories",
        "Combined size: 1.51 KB",
    ]


def test_an_entry_that_vanishes_is_left_out_and_the_rest_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path, {"gone": "x", "stays": "y"})
    scan = walk.list_entries

    def scan_then_delete(*arguments: object) -> object:
        entries = scan(*arguments)  # type: ignore[arg-type]
        (tmp_path / "gone").unlink()
        return entries

    monkeypatch.setattr(listing, "list_entries", scan_then_delete)
    text = list_with_sizes(folders_over(tmp_path), new_call(), ".", "name")
    assert "stays" in text
    assert "gone" not in text


def test_a_long_listing_goes_on_by_cursor_and_keeps_to_its_budget(tmp_path: Path) -> None:
    for number in range(1500):
        (tmp_path / f"file-{number:04}.txt").touch()
    folders = folders_over(tmp_path, max_answer_tokens=1000)
    texts = pages(lambda cursor: list_directory(folders, new_call(), ".", cursor))
    lines = [line for text in texts for line in text.splitlines() if line.startswith("[FILE]")]
    assert lines == [f"[FILE] file-{number:04}.txt" for number in range(1500)]
    assert max(map(estimate_tokens, texts)) <= 1000
    sized = pages(lambda cursor: list_with_sizes(folders, new_call(), ".", "name", cursor))
    assert sum(text.count("[FILE]") for text in sized) == 1500
    assert all("Total: 1500 files" in text for text in sized)


def test_a_cursor_of_another_answer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    folders = folders_over(tmp_path)
    for cursor in ("?", encode_cursor({"after": 7}), encode_cursor({"skip": "x"})):
        with pytest.raises(InvalidArgument):
            list_directory(folders, new_call(), ".", cursor)
        with pytest.raises(InvalidArgument):
            list_with_sizes(folders, new_call(), ".", "name", cursor)


def test_a_name_that_is_no_utf8_is_listed_and_paged(tmp_path: Path) -> None:
    for number in range(200):
        os.close(os.open(os.fsencode(tmp_path) + b"/\xff%03d" % number, os.O_CREAT))
    folders = folders_over(tmp_path, max_answer_tokens=500)
    first = list_directory(folders, new_call(), ".")
    assert first.startswith('[FILE] "\\xff000"')
    assert '"\\xff199"' in pages(lambda cursor: list_directory(folders, new_call(), ".", cursor))[-1]
    assert cursor_in(first)


def test_sizes_read_well() -> None:
    assert [format_size(size) for size in (0, 1023, 1024, 5 * 1024**2, 3 * 1024**4)] == [
        "0 B",
        "1023 B",
        "1.00 KB",
        "5.00 MB",
        "3.00 TB",
    ]


@pytest.mark.parametrize("path", ["a/b/..", "up", "a/../a"])
def test_a_path_that_goes_up_again_lists_what_it_names(tmp_path: Path, path: str) -> None:
    plant(tmp_path, {"a": {"b": {}, "in-a": ""}, "in-root": ""})
    (tmp_path / "up").symlink_to("a/b/..")
    assert list_directory(folders_over(tmp_path), new_call(), path).splitlines() == ["[DIR] b", "[FILE] in-a"]


def test_a_link_to_another_allowed_directory_lists_that_one(tmp_path: Path) -> None:
    plant(tmp_path, {"one": {"first": ""}, "two": {"second": ""}})
    (tmp_path / "one/link").symlink_to(tmp_path / "two")
    folders = folders_over(tmp_path / "one", tmp_path / "two")
    assert list_directory(folders, new_call(), "link") == "[FILE] second"
