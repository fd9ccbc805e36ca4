"""The walk: order, what it passes over, how deep it goes, and that a swapped link never leads it out."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.errors import AccessDenied, Cancelled, NotDirectory, NotFound
from holdfast.folders.finding.walk import OPEN_DIRECTORIES, EntryType, Walk, list_entries, open_start, path_key
from holdfast.folders.service import Folders
from tests.helpers.finder import cancelled_after, folders_over, new_call
from tests.helpers.swapper import swapping
from tests.helpers.trees import plant


@contextmanager
def walking(folders: Folders, path: str = ".", seconds: float | None = None) -> Iterator[Walk]:
    with open_start(folders.jail, path, ignore=True) as start:
        yield Walk(folders.jail, new_call(), start, ignore=True, seconds=seconds)


def walked(folders: Folders, path: str = ".") -> list[str]:
    with walking(folders, path) as walk:
        return [run.folder.relative + name for run in walk for name, _ in run.entries]


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_entries_come_in_the_order_of_their_bytes_each_directory_before_its_content(tmp_path: Path) -> None:
    plant(tmp_path, {"b": {"z": "", "a": {"deep": ""}}, "a.txt": "", "a": {"x": ""}, "Z": "", "é": "", "z": ""})
    paths = walked(folders_over(tmp_path))
    assert paths == ["Z", "a", "a/x", "a.txt", "b", "b/a", "b/a/deep", "b/z", "z", "é"]
    assert paths == sorted(paths, key=path_key)


def test_names_that_are_no_utf8_are_walked_in_the_order_of_their_bytes(tmp_path: Path) -> None:
    for name in (b"\xff", "漢".encode(), b"a"):
        os.close(os.open(os.path.join(os.fsencode(tmp_path), name), os.O_CREAT))
    assert walked(folders_over(tmp_path)) == ["a", "漢", "\udcff"]


def test_links_are_reported_and_never_followed(tmp_path: Path) -> None:
    root = plant(tmp_path, {"outside": {"secret": ""}, "root": {"d": {"f": ""}}}) / "root"
    (root / "loop").symlink_to(".")
    (root / "d" / "up").symlink_to("..")
    (root / "out").symlink_to(tmp_path / "outside")
    with walking(folders_over(root)) as walk:
        kinds = {run.folder.relative + name: kind for run in walk for name, kind in run.entries}
    assert kinds == {
        "d": EntryType.DIRECTORY,
        "d/f": EntryType.FILE,
        "d/up": EntryType.LINK,
        "loop": EntryType.LINK,
        "out": EntryType.LINK,
    }


def test_a_fifo_and_a_socket_are_entries_like_any_other(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with open_start(folders_over(tmp_path).jail, ".", ignore=False) as start:
        assert list_entries(folders_over(tmp_path).jail, start.fd, None) == [("fifo", EntryType.OTHER)]


def test_the_state_folder_is_left_out_at_any_depth(tmp_path: Path) -> None:
    plant(tmp_path, {"a": {"state": {"key": ""}, "b": ""}})
    assert walked(folders_over(tmp_path, state=tmp_path / "a" / "state")) == ["a", "a/b"]


def test_the_git_directory_is_left_out(tmp_path: Path) -> None:
    plant(tmp_path, {".git": {"config": ""}, ".github": {"x": ""}, "sub": {".git": "gitdir: elsewhere"}})
    assert walked(folders_over(tmp_path)) == [".github", ".github/x", "sub"]


def test_a_directory_that_vanishes_is_passed_over(tmp_path: Path) -> None:
    plant(tmp_path, {"a": {"x": ""}, "b": {"y": ""}, "c": ""})
    seen: list[str] = []
    with walking(folders_over(tmp_path)) as walk:
        for run in walk:
            seen += [run.folder.relative + name for name, _ in run.entries]
            if seen == ["a"]:
                (tmp_path / "a" / "x").unlink()
                (tmp_path / "a").rmdir()
    assert seen == ["a", "b", "b/y", "c"]


def test_a_thousand_levels_need_few_descriptors_and_the_way_back_works(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1000):
        os.mkdir("d", dir_fd=fd)
        os.mkdir("later", dir_fd=fd)
        deeper = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = deeper
    os.close(fd)
    folders = folders_over(tmp_path)
    before = most = open_descriptors()
    count = 0
    with walking(folders) as walk:
        for run in walk:
            count += len(run.entries)
            most = max(most, open_descriptors())
    assert count == 2000
    # Deeper than Python's own way of removing a tree goes.
    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)
    assert most - before <= OPEN_DIRECTORIES + 8
    assert open_descriptors() == before
    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)  # deeper than pytest can clear away


def test_pruning_keeps_out_of_one_directory(tmp_path: Path) -> None:
    plant(tmp_path, {"a": {"x": ""}, "b": {"y": ""}})
    seen = []
    with walking(folders_over(tmp_path)) as walk:
        for run in walk:
            seen += [run.folder.relative + name for name, _ in run.entries]
            if seen[-1] == "a":
                walk.prune()
    assert seen == ["a", "b", "b/y"]


def test_no_time_ends_the_walk_and_says_where(tmp_path: Path) -> None:
    plant(tmp_path, {f"d{number}": {"f": ""} for number in range(20)})
    with walking(folders_over(tmp_path), seconds=0) as walk:
        seen = [name for run in walk for name, _ in run.entries]
    assert walk.timed_out
    assert walk.last == seen[-1] == "d0"


def test_a_cancelled_call_ends_the_walk(tmp_path: Path) -> None:
    plant(tmp_path, {f"d{number}": {"f": ""} for number in range(50)})
    folders = folders_over(tmp_path)
    call = cancelled_after(0.05)
    began = time.monotonic()
    with open_start(folders.jail, ".", ignore=True) as start, pytest.raises(Cancelled):
        while True:
            for _ in Walk(folders.jail, call, start, ignore=True):
                pass
    assert time.monotonic() - began < 5


def test_a_start_must_be_a_directory_beneath_the_roots(tmp_path: Path) -> None:
    root = plant(tmp_path, {"root": {"f": "", "sub": {}}, "outside": {}}) / "root"
    (root / "out").symlink_to(tmp_path / "outside")
    jail = folders_over(root).jail
    for path, error in {"f": NotDirectory, "gone": NotFound, "out": AccessDenied, "..": AccessDenied}.items():
        with pytest.raises(error), open_start(jail, path, ignore=True):
            pass


def test_a_start_behind_a_link_is_where_the_link_leads(tmp_path: Path) -> None:
    root = plant(tmp_path / "root", {"real": {"f": ""}})
    (root / "link").symlink_to("real")
    with open_start(folders_over(root).jail, "link", ignore=True) as start:
        assert (start.path, start.folder) == (str(root / "real"), "real/")


def test_a_swapped_link_never_leads_a_walk_out(tmp_path: Path) -> None:
    plant(tmp_path, {"outside": {"secret": {"deep": ""}}, "root": {"door": {"inside": {"x": ""}}}})
    root = tmp_path / "root"
    (root / "link").symlink_to(tmp_path / "outside")
    folders = folders_over(root)
    seen: set[str] = set()
    with swapping(root / "door", root / "link", at_least=100):
        until = time.monotonic() + 2
        while time.monotonic() < until:
            seen.update(walked(folders))
    assert "door/inside/x" in seen
    assert not [path for path in seen if "secret" in path or "deep" in path]
