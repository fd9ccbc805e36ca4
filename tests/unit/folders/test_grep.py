"""Search by content: ripgrep locked in or fed by the walk, with the same answer; bounded, resumable, never outside."""

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import AccessDenied, Cancelled, InvalidArgument, InvalidQuery, NotFound
from holdfast.folders.finding import grep as module
from holdfast.folders.finding.grep_report import NO_MATCHES, grep_content
from holdfast.folders.finding.ripgrep import GrepQuery, ripgrep_path
from holdfast.folders.service import Folders
from holdfast.text.budget import encode_cursor, estimate_tokens
from tests.helpers.finder import cancelled_after, folders_over, new_call, pages
from tests.helpers.swapper import swapping
from tests.helpers.trees import Tree, plant

TREE: Tree = {
    ".gitignore": "*.log\nbuild/\n!keep.log\n",
    ".git": {"config": "needle"},
    ".hidden": "a needle here\n",
    "a.py": "import os\n\n\ndef first():\n    needle = 1\n    return needle\n\n\ndef second():\n    pass\n",
    "a": {"deep.md": "# One\nneedle\n\n# Two\nother\n", "b.txt": "no\n"},
    "x.log": "needle\n",
    "keep.log": "needle\n",
    "build": {"out.py": "needle\n"},
    "bin.dat": b"needle\n\0\nneedle\n",
    "late.dat": b"needle\n" + b"filler\n" * 30_000 + b"\0\n",
    "utf16.txt": "needle in sixteen\n".encode("utf-16"),
    "latin.txt": b"caf\xe9 needle\n",
    "crlf.txt": b"one\r\nneedle\r\nthree\r\n",
    "long.txt": "needle" + "x" * 300_000 + "\n",
    "odd\nname": "needle\n",
    "dir with space": {"-dash.txt": "needle\n"},
}
QUESTIONS = [
    GrepQuery("needle"),
    GrepQuery("NEEDLE", case_insensitive=True, context_lines=0),
    GrepQuery("needle", glob="*.py"),
    GrepQuery("needle", glob="!*.py"),
    GrepQuery("needle", glob="a/**"),
    GrepQuery("needle", glob="*.log"),
    GrepQuery("needle", glob="!a"),
    GrepQuery("needle", glob="*.{py,md}"),
    GrepQuery("needle", include_ignored=True),
    GrepQuery("^needle$", context_lines=1),
    GrepQuery("café"),
    GrepQuery("nothing at all"),
    GrepQuery("-needle"),
    GrepQuery("", glob="a/**"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return plant(tmp_path / "root", TREE)


def grep(folders: Folders, question: GrepQuery | str, path: str = ".", **options: Any) -> str:
    asked = GrepQuery(question) if isinstance(question, str) else question
    return grep_content(folders, new_call(), path, asked, **options)


def files(text: str) -> list[str]:
    return [line.removeprefix("File: ") for line in text.splitlines() if line.startswith("File: ")]


def test_matches_come_by_file_with_context_and_the_end_of_their_section(root: Path) -> None:
    text = grep(folders_over(root), "needle", "a.py")
    assert text.splitlines() == [
        "File: a.py",
        "3-",
        "4-def first():",
        "5:    needle = 1",
        "6:    return needle",
        "7-",
        "8-",
        "[sections: 5..8]",
    ]
    assert "File: a/deep.md\n1-# One\n2:needle\n3-\n4-# Two\n[sections: 2..3]" in grep(folders_over(root), "needle")


def test_hidden_files_are_searched_and_ignored_binary_and_git_files_are_not(root: Path) -> None:
    assert files(grep(folders_over(root), "needle")) == [
        ".hidden",
        "a/deep.md",
        "a.py",
        "crlf.txt",
        "dir with space/-dash.txt",
        "keep.log",
        "latin.txt",
        "long.txt",
        '"odd\\nname"',
        "utf16.txt",
    ]


def test_what_is_ignored_can_be_included(root: Path) -> None:
    found = files(grep(folders_over(root), GrepQuery("needle", include_ignored=True)))
    assert {"x.log", "build/out.py"} <= set(found)
    assert not [path for path in found if path.startswith(".git/")]


def test_a_glob_does_not_bring_ignored_files_back(root: Path) -> None:
    assert files(grep(folders_over(root), GrepQuery("needle", glob="*.log"))) == ["keep.log"]
    assert files(grep(folders_over(root), GrepQuery("needle", glob="**"))) == files(grep(folders_over(root), "needle"))


def test_an_enormous_line_is_cut(root: Path) -> None:
    text = grep(folders_over(root), "needle", "long.txt")
    assert len(text) < 2000
    assert "omitted" in text


@pytest.mark.parametrize("question", QUESTIONS, ids=repr)
def test_both_ways_give_the_same_answer(root: Path, question: GrepQuery, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = folders_over(root)
    by_path = [grep(folders, question), grep(folders, question, "a"), grep(folders, question, max_results=3)]
    monkeypatch.setattr(module, "can_confine", lambda: False)
    assert [grep(folders, question), grep(folders, question, "a"), grep(folders, question, max_results=3)] == by_path


def test_a_root_above_the_state_folder_is_searched_without_it(tmp_path: Path) -> None:
    plant(tmp_path, {"state": {"person.key": "needle\n"}, "a.txt": "needle\n"})
    folders = folders_over(tmp_path, state=tmp_path / "state")
    assert all(root.walk_only for root in folders.jail.roots)
    assert files(grep(folders, "needle")) == ["a.txt"]
    with pytest.raises(NotFound):
        grep(folders, "needle", "state")


@pytest.mark.parametrize("way", ["by path", "by walk"])
def test_max_results_holds_over_all_files_and_the_cursor_goes_on(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "by walk":
        monkeypatch.setattr(module, "can_confine", lambda: False)
        monkeypatch.setattr(module, "BATCH_FILES", 7)
    plant(tmp_path, {f"d{one}": {f"f{two}": "hit\nno\nhit\n" * 3 for two in range(10)} for one in range(10)})
    folders = folders_over(tmp_path)
    question = GrepQuery("hit", context_lines=0)
    texts = pages(lambda cursor: grep(folders, question, max_results=70, cursor=cursor))
    assert [text.count(":hit") for text in texts] == [70] * 8 + [40]
    once = grep(folders_over(tmp_path, max_answer_tokens=100_000), question, max_results=5000)
    shown = [line for text in texts for line in text.splitlines() if ":hit" in line]
    assert shown == [line for line in once.splitlines() if ":hit" in line]


def test_more_matches_than_are_sorted_at_once_come_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNSORTED_MATCHES", 10)
    plant(tmp_path, {f"f{number:03}": "hit\n" for number in range(100)})
    text = grep(folders_over(tmp_path), "hit", max_results=20)
    assert files(text) == [f"f{number:03}" for number in range(20)]


def test_the_token_budget_holds_and_every_match_comes_once(tmp_path: Path) -> None:
    plant(
        tmp_path, {f"f{number}": "".join(f"line {each} hit {'x' * 60}\n" for each in range(60)) for number in range(9)}
    )
    folders = folders_over(tmp_path, max_answer_tokens=1000)
    texts = pages(lambda cursor: grep(folders, "hit", cursor=cursor))
    assert max(map(estimate_tokens, texts)) <= 1000
    assert sum(text.count(" hit ") for text in texts) == 540


def test_a_budget_smaller_than_the_context_still_goes_on(tmp_path: Path) -> None:
    plant(tmp_path, {"f": "".join(f"{'y' * 400}\n" for _ in range(30)) + "hit\n" + "z\n" * 30 + "hit\n"})
    folders = folders_over(tmp_path, max_answer_tokens=500)
    texts = pages(lambda cursor: grep(folders, GrepQuery("hit", context_lines=30), cursor=cursor))
    assert sum(text.count(":hit") for text in texts) == 2


def test_no_match_has_its_own_text(root: Path) -> None:
    assert grep(folders_over(root), "nothing at all") == grep(folders_over(root), "nothing", "a.py") == NO_MATCHES


@pytest.mark.parametrize("pattern", ["(", "a{2", "[", "x\ny", "\0", "\ud800", "(?<=a)b", "a" * 30_000])
def test_a_bad_regex_is_refused_without_naming_a_place(root: Path, pattern: str) -> None:
    with pytest.raises(InvalidQuery) as caught:
        grep(folders_over(root), pattern)
    assert str(root) not in caught.value.message
    assert ripgrep_path() not in caught.value.message


def test_a_bad_glob_or_section_pattern_is_refused(root: Path) -> None:
    with pytest.raises(InvalidQuery):
        grep(folders_over(root), GrepQuery("x", glob="[z-a]"))
    with pytest.raises(InvalidQuery):
        grep(folders_over(root), "x", section_patterns=["("])


def test_a_catastrophic_regex_ends_in_bounded_time(tmp_path: Path) -> None:
    plant(tmp_path, {"f": "a" * 200_000 + "\n"})
    began = time.monotonic()
    assert grep(folders_over(tmp_path), r"^(a+)+$|(a|aa)+b").startswith("File: f")
    assert time.monotonic() - began < 10


def test_paths_outside_missing_paths_and_fifos_are_refused(tmp_path: Path, root: Path) -> None:
    os.mkfifo(root / "fifo")
    folders = folders_over(root)
    assert "fifo" not in grep(folders, "needle")
    with pytest.raises(NotFound):
        grep(folders, "needle", "missing")
    with pytest.raises(AccessDenied):
        grep(folders, "needle", str(tmp_path))


def test_a_second_root_is_shown_by_its_absolute_path(tmp_path: Path) -> None:
    plant(tmp_path, {"one": {"f": "x"}, "two": {"d": {"f": "x\n"}}})
    folders = folders_over(tmp_path / "one", tmp_path / "two")
    assert files(grep(folders, "x", str(tmp_path / "two"))) == [f"{tmp_path}/two/d/f"]
    assert files(grep(folders, "x", f"{tmp_path}/two/d/f")) == [f"{tmp_path}/two/d/f"]


def test_a_link_inside_is_followed_when_it_is_named(root: Path) -> None:
    (root / "link").symlink_to("a")
    (root / "file-link").symlink_to("a/deep.md")
    assert files(grep(folders_over(root), "needle", "link")) == ["a/deep.md"]
    assert files(grep(folders_over(root), "needle", "file-link")) == ["a/deep.md"]


@pytest.mark.parametrize("way", ["by path", "by walk"])
def test_the_time_limit_ends_a_search_with_what_there_is(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "by walk":
        monkeypatch.setattr(module, "can_confine", lambda: False)
    with (tmp_path / "huge").open("wb") as huge:
        huge.write(b"hit\n" + b"x" * 100 + b"\n")
        for _ in range(40):
            huge.write((b"y" * 99 + b"\n") * 50_000)
    began = time.monotonic()
    text = grep(folders_over(tmp_path, search_seconds=0.02), "hit")
    assert "Stopped after 0.02 s" in text
    assert time.monotonic() - began < 5


def test_a_cancelled_search_kills_ripgrep(tmp_path: Path) -> None:
    for number in range(3):
        os.close(os.open(tmp_path / f"f{number}", os.O_CREAT | os.O_WRONLY))
        os.truncate(tmp_path / f"f{number}", 20 * 1024**3)
    call = cancelled_after(0.3)
    began = time.monotonic()
    with pytest.raises(Cancelled):
        while True:
            grep_content(folders_over(tmp_path), call, ".", GrepQuery("\\bneedle\\b"))
    assert time.monotonic() - began < 5
    children = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "comm="], capture_output=True, text=True, check=False
    )
    assert "rg" not in children.stdout.split()


def test_cursors_of_other_answers_are_refused(root: Path) -> None:
    with pytest.raises(InvalidArgument):
        grep(folders_over(root), "x", cursor=encode_cursor({"path": "a"}))


@pytest.mark.parametrize("way", ["by path", "by walk"])
def test_a_swapped_link_never_brings_outside_text_into_an_answer(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "by walk":
        monkeypatch.setattr(module, "can_confine", lambda: False)
    inside = {f"f{number}": "needle inside\n" for number in range(20)}
    outside = {f"f{number}": "needle SECRET\n" for number in range(20)}
    root = plant(tmp_path, {"outside": outside, "root": {"door": inside, "kept": "needle kept\n"}}) / "root"
    (root / "link").symlink_to(tmp_path / "outside")
    folders = folders_over(root)
    answers: set[str] = set()
    with swapping(root / "door", root / "link", at_least=100):
        until = time.monotonic() + 2
        while time.monotonic() < until:
            answers.add(grep(folders, "needle"))
    assert any("inside" in answer for answer in answers)
    assert not [answer for answer in answers if "SECRET" in answer]


def test_an_ignore_file_that_is_a_fifo_does_not_hold_the_search_up(tmp_path: Path) -> None:
    plant(tmp_path, {"a.txt": "needle\n", "sub": {"b.txt": "needle\n"}})
    os.mkfifo(tmp_path / "sub/.gitignore")
    began = time.monotonic()
    text = grep_content(folders_over(tmp_path), new_call(), ".", GrepQuery("needle"))
    assert [line for line in text.splitlines() if line.startswith("File")] == ["File: a.txt", "File: sub/b.txt"]
    assert time.monotonic() - began < 10


def test_a_line_larger_than_memory_may_be_ends_the_search_and_not_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MEMORY_BYTES", 128 << 20)
    plant(tmp_path, {"a.txt": "needle\n", "b.txt": b"x" * (200 << 20), "c.txt": "no\n"})
    text = grep_content(folders_over(tmp_path), new_call(), ".", GrepQuery("needle"))
    assert "very long line" in text
    assert "matches may be missing" in text
