"""Search by name: the reference's patterns, .gitignore respected, bounded, resumable, and never outside."""

import os
import time
from pathlib import Path

import pytest

from holdfast.errors import Cancelled, InvalidArgument, InvalidQuery
from holdfast.folders.finding.search_files import NO_MATCHES, search_names
from holdfast.folders.service import Folders
from holdfast.text.budget import encode_cursor, estimate_tokens
from tests.helpers.finder import cancelled_after, cursor_in, folders_over, new_call, pages
from tests.helpers.swapper import swapping
from tests.helpers.trees import Tree, plant


def found(folders: Folders, pattern: str, path: str = ".", exclude: tuple[str, ...] = ()) -> list[str]:
    text = search_names(folders, new_call(), path, pattern, exclude=exclude)
    base = f"{folders.jail.allowed_paths[0]}/"
    return [] if text.startswith(NO_MATCHES) else [line.removeprefix(base) for line in text.splitlines()]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    tree: Tree = {
        ".gitignore": "build/\n*.log\n",
        ".git": {"config": ""},
        "a.py": "",
        "x.log": "",
        "src": {"b.py": "", "lib": {"c.py": "", "c.txt": ""}},
        "build": {"d.py": ""},
    }
    return folders_over(plant(tmp_path / "root", tree))


def test_files_and_directories_are_found_by_pattern(folders: Folders) -> None:
    assert found(folders, "*.py") == ["a.py"]
    assert found(folders, "**/*.py") == ["a.py", "src/b.py", "src/lib/c.py"]
    assert found(folders, "**/lib") == ["src/lib"]
    assert found(folders, "src/*") == ["src/b.py", "src/lib"]
    assert found(folders, "*.py", "src") == ["src/b.py"]
    assert found(folders, "nothing*") == []


def test_no_match_has_its_own_text(folders: Folders) -> None:
    assert search_names(folders, new_call(), ".", "*.none") == "No matches found."


def test_excluded_and_ignored_entries_are_left_out(folders: Folders) -> None:
    assert found(folders, "**/*.py", exclude=("src/lib",)) == ["a.py", "src/b.py"]
    assert found(folders, "**/*", exclude=("src",)) == [".gitignore", "a.py"]
    assert found(folders, "**/d.py") == []
    assert found(folders, "*.py", "build") == ["build/d.py"]


def test_strange_names_are_quoted_with_their_path(tmp_path: Path) -> None:
    plant(tmp_path, {"a\n/etc/passwd".replace("/", "_"): ""})
    assert search_names(folders_over(tmp_path), new_call(), ".", "*") == f'"{tmp_path}/a\\n_etc_passwd"'


def test_many_hits_go_on_by_cursor_each_once_and_in_order(tmp_path: Path) -> None:
    plant(tmp_path, {f"d{one}": {f"f{number:03}.py": "" for number in range(100)} for one in range(12)} | {"d1.py": ""})
    folders = folders_over(tmp_path, max_answer_tokens=2000)
    texts = pages(lambda cursor: search_names(folders, new_call(), ".", "**/*.py", cursor=cursor))
    assert len(texts) > 5
    assert max(map(estimate_tokens, texts)) <= 2000
    lines = [line for text in texts for line in text.splitlines() if line.startswith("/")]
    assert len(lines) == len(set(lines)) == 1201


def test_the_time_limit_ends_a_search_and_the_cursor_goes_on(tmp_path: Path) -> None:
    plant(tmp_path, {f"d{number:02}": {"f.py": ""} for number in range(40)})
    folders = folders_over(tmp_path, search_seconds=1e-9)
    first = search_names(folders, new_call(), ".", "**/*.py")
    assert "Stopped after" in first
    rest = search_names(folders_over(tmp_path), new_call(), ".", "**/*.py", cursor=cursor_in(first))
    assert rest.count(".py") + first.count(".py\n") == 40


def test_a_cancelled_search_ends_quickly(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    for number in range(2000):
        os.mkdir(f"d{number}", dir_fd=fd)
    os.close(fd)
    folders = folders_over(tmp_path)
    call = cancelled_after(0.1)
    began = time.monotonic()
    with pytest.raises(Cancelled):
        while True:
            search_names(folders, call, ".", "**/none")
    assert time.monotonic() - began < 5


def test_a_long_search_tells_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.folders.finding.walk._PROGRESS_SECONDS", 0.0)
    plant(tmp_path, {f"d{number}": {"f": ""} for number in range(5)})
    told: list[tuple[float, float | None, str]] = []
    call = new_call()
    call.progress = lambda *report: told.append(report)
    search_names(folders_over(tmp_path), call, ".", "**/none")
    done = [each[0] for each in told]
    assert done == sorted(done)
    assert told[-1] == (10, None, "10 entries looked at")


def test_bad_patterns_and_cursors_are_refused(folders: Folders) -> None:
    with pytest.raises(InvalidQuery):
        search_names(folders, new_call(), ".", "!(a)")
    with pytest.raises(InvalidArgument):
        search_names(folders, new_call(), ".", "*", cursor=encode_cursor({"after": 1}))


def test_a_swapped_link_never_brings_an_outside_name_into_a_search(tmp_path: Path) -> None:
    plant(tmp_path, {"outside": {"secret": {"deep": ""}}, "root": {"door": {"inside": {"x": ""}}}})
    root = tmp_path / "root"
    (root / "link").symlink_to(tmp_path / "outside")
    folders = folders_over(root)
    seen: set[str] = set()
    with swapping(root / "door", root / "link", at_least=100):
        until = time.monotonic() + 2
        while time.monotonic() < until:
            seen.update(search_names(folders, new_call(), ".", "**/*").splitlines())
    assert f"{root}/door/inside/x" in seen
    assert not [line for line in seen if "secret" in line or "deep" in line]
