"""A scan tells of everything once, follows nothing, opens nothing, and can be stopped."""

import os
import socket
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest

from holdfast.errors import AccessDenied, Cancelled, NotDirectory, NotFound
from holdfast.organiser.model import FileType, SkipReason, Unit
from holdfast.organiser.scan.directory import ScanOptions
from holdfast.organiser.scan.survey import FolderScan
from tests.helpers.messy import Messy


def test_every_file_is_found_once_with_its_facts(messy: Messy) -> None:
    names = ["a.txt", "b.pdf", "Invoices/c.pdf", "Invoices/2024/d.pdf"]
    for name in names:
        messy.write(name, name)
    found = messy.scan()
    assert sorted(found) == sorted(names)
    status = (messy.root / "Invoices/2024/d.pdf").stat()
    one = found["Invoices/2024/d.pdf"]
    assert one.path == str(messy.root / "Invoices/2024/d.pdf")
    assert (one.size, one.mtime_ns, one.ctime_ns) == (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    assert (one.device, one.inode, one.type, one.unit) == (status.st_dev, status.st_ino, FileType.FILE, None)
    assert (one.name, one.folder, one.suffix) == ("d.pdf", "Invoices/2024", ".pdf")


def test_a_folder_below_the_root_can_be_scanned_alone(messy: Messy) -> None:
    messy.write("a.txt")
    messy.write("Inbox/b.txt")
    found = messy.scan("Inbox")
    assert list(found) == ["b.txt"]
    assert found["b.txt"].path == str(messy.root / "Inbox/b.txt")


def test_an_empty_folder_tells_nothing(messy: Messy) -> None:
    assert messy.batches() == []


def test_a_folder_outside_the_roots_is_refused(messy: Messy) -> None:
    for folder in ("..", "/etc", str(messy.root.parent / "state")):
        with pytest.raises(AccessDenied):
            messy.batches(folder)
    with pytest.raises(NotFound):
        messy.batches("missing")
    messy.write("a.txt")
    with pytest.raises(NotDirectory):
        messy.batches("a.txt")


def test_links_are_counted_and_never_followed(messy: Messy) -> None:
    messy.write("Docs/a.txt")
    os.symlink("Docs", messy.root / "loop")
    os.symlink("/etc/passwd", messy.root / "outside")
    os.symlink("..", messy.root / "Docs" / "up")
    assert list(messy.scan()) == ["Docs/a.txt"]
    assert messy.skipped() == dict.fromkeys(["loop", "outside", "Docs/up"], SkipReason.LINK)


def test_links_are_found_as_links_when_they_are_allowed(messy: Messy) -> None:
    messy.write("Docs/a.txt")
    os.symlink("Docs", messy.root / "loop")
    found = messy.scan(allow_symlinks=True)
    assert found["loop"].type is FileType.LINK
    assert sorted(found) == ["Docs/a.txt", "loop"]


def test_fifos_sockets_and_devices_are_skipped_at_once(messy: Messy) -> None:
    os.mkfifo(messy.root / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.fspath(messy.root / "sock"))
        messy.write("a.txt")
        assert messy.skipped() == {"pipe": SkipReason.SPECIAL, "sock": SkipReason.SPECIAL}
        assert list(messy.scan()) == ["a.txt"]


def test_what_is_left_alone_is_told_with_its_reason_and_counted(messy: Messy) -> None:
    for name in (
        ".secret",
        "film.mkv.part",
        "node_modules/a/b.js",
        ".cache/x",
        "Safari.app/Contents/Info.plist",
        "a.txt",
    ):
        messy.write(name)
    messy.write("env/pyvenv.cfg")
    messy.write("env/lib/x.py")
    skipped = messy.skipped()
    assert skipped == {
        ".secret": SkipReason.HIDDEN,
        ".cache": SkipReason.HIDDEN,
        "film.mkv.part": SkipReason.IN_PROGRESS,
        "node_modules": SkipReason.DEPENDENCIES,
        "Safari.app": SkipReason.BUNDLE,
        "env": SkipReason.ENVIRONMENT,
    }
    scan = FolderScan(messy.jail, messy.call, ".", ScanOptions())
    assert [one.relative for batch in scan for one in batch.files] == ["a.txt"]
    assert scan.skip_counts == Counter(skipped.values())


def test_a_file_without_data_is_a_placeholder_where_others_have_some(messy: Messy) -> None:
    messy.write("real.pdf", b"x" * 10_000)
    with (messy.root / "stub.pdf").open("wb") as file:
        file.truncate(1_000_000)
    assert (messy.root / "stub.pdf").stat().st_blocks == 0
    assert messy.skipped() == {"stub.pdf": SkipReason.PLACEHOLDER}
    assert list(messy.scan()) == ["real.pdf"]


def test_a_disk_that_counts_no_blocks_has_no_placeholders(messy: Messy) -> None:
    with (messy.root / "only.pdf").open("wb") as file:
        file.truncate(1_000_000)
    assert list(messy.scan()) == ["only.pdf"]


def test_a_repository_and_a_project_are_one_thing_each(messy: Messy) -> None:
    messy.write("repo/.git/HEAD")
    messy.write("repo/src/a.py")
    messy.write("site/package.json", "{}")
    messy.write("site/index.html")
    found = messy.scan()
    assert {name: one.unit for name, one in found.items()} == {"repo": Unit.REPOSITORY, "site": Unit.PROJECT}
    assert all(one.type is FileType.DIRECTORY and one.size == 0 for one in found.values())


def test_a_folder_that_is_a_repository_itself_is_left_whole(messy: Messy) -> None:
    messy.write("repo/.git/HEAD")
    messy.write("repo/a.pdf")
    assert messy.scan("repo") == {}
    assert messy.skipped("repo") == {".": SkipReason.WHOLE}


def test_a_photo_is_one_with_its_sidecars(messy: Messy) -> None:
    for name in ("IMG_1.CR2", "IMG_1.JPG", "IMG_1.xmp", "IMG_2.JPG"):
        messy.write(name)
    found = messy.scan()
    assert sorted(found) == ["IMG_1.CR2", "IMG_2.JPG"]
    assert found["IMG_1.CR2"].unit is Unit.PHOTO
    assert [one.relative for one in found["IMG_1.CR2"].members] == ["IMG_1.JPG", "IMG_1.xmp"]
    assert found["IMG_1.CR2"].members[0].inode == (messy.root / "IMG_1.JPG").stat().st_ino
    assert found["IMG_2.JPG"].unit is None


def test_a_saved_page_takes_its_folder_along(messy: Messy) -> None:
    messy.write("News.html", "<html>")
    messy.write("News_files/logo.png")
    messy.write("Other_files/x.png")
    found = messy.scan()
    assert sorted(found) == ["News.html", "Other_files/x.png"]
    (folder,) = found["News.html"].members
    assert (folder.relative, folder.type) == ("News_files", FileType.DIRECTORY)


def test_a_unit_with_one_part_in_progress_is_left_alone_whole(messy: Messy) -> None:
    for name in ("a.part1.rar", "a.part2.rar", "a.part2.rar.crdownload"):
        messy.write(name)
    assert messy.scan() == {}
    assert messy.skipped() == dict.fromkeys(
        ["a.part1.rar", "a.part2.rar", "a.part2.rar.crdownload"], SkipReason.IN_PROGRESS
    )


def test_a_unit_with_one_part_in_the_cloud_is_left_alone_whole(messy: Messy) -> None:
    messy.write("IMG_1.JPG", b"x" * 9000)
    with (messy.root / "IMG_1.CR2").open("wb") as file:
        file.truncate(1_000_000)
    assert messy.scan() == {}
    assert messy.skipped() == {"IMG_1.CR2": SkipReason.PLACEHOLDER}


def test_names_that_are_no_unicode_are_found(messy: Messy) -> None:
    raw = os.fsencode(messy.root) + b"/caf\xe9.txt"
    with open(raw, "wb") as file:
        file.write(b"x")
    (one,) = messy.scan().values()
    assert os.fsencode(one.path) == raw


def test_the_state_folder_is_not_spoken_of(tmp_path: Path) -> None:
    from tests.helpers.messy import messy_folder

    with messy_folder(tmp_path) as messy:
        state = messy.root / "inner"
        state.mkdir()
        messy.write("inner/state.db")
        messy.write("a.txt")
        messy.jail.hidden = frozenset({(state.stat().st_dev, state.stat().st_ino)})
        assert list(messy.scan()) == ["a.txt"]
        assert messy.skipped() == {}


def test_a_very_deep_tree_is_walked_to_its_end_with_few_descriptors(messy: Messy) -> None:
    deep = messy.root
    for depth in range(150):
        deep = deep / f"d{depth}"
        deep.mkdir()
        if depth % 10 == 0:
            (deep / "z").mkdir()
            (deep / "z" / "side.txt").write_text("x")
    (deep / "bottom.txt").write_text("x")
    before = len(os.listdir("/proc/self/fd"))
    most = 0
    names = []
    for batch in FolderScan(messy.jail, messy.call, ".", ScanOptions()):
        most = max(most, len(os.listdir("/proc/self/fd")) - before)
        names += [one.name for one in batch.files]
    assert names.count("bottom.txt") == 1
    assert names.count("side.txt") == 15
    assert most <= 70
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_scan_streams_in_batches(messy: Messy) -> None:
    for folder in range(10):
        (messy.root / str(folder)).mkdir()
        for number in range(500):
            (messy.root / str(folder) / f"{number}.txt").touch()
    batches = messy.batches()
    assert sum(len(batch.files) for batch in batches) == 5_000
    assert all(len(batch) <= 2_000 for batch in batches)
    assert len(batches) >= 4


def test_memory_does_not_grow_with_the_tree(messy: Messy) -> None:
    for folder in range(40):
        (messy.root / str(folder)).mkdir()
        for number in range(500):
            (messy.root / str(folder) / f"{number}.txt").touch()
    tracemalloc.start()
    try:
        seen = sum(len(batch.files) for batch in FolderScan(messy.jail, messy.call, ".", ScanOptions()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seen == 20_000
    assert peak < 5_000_000


def test_a_scan_can_be_cancelled_and_leaves_no_descriptor(messy: Messy) -> None:
    for folder in range(5):
        for number in range(400):
            messy.write(f"{folder}/{number}.txt")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(Cancelled):
        for _ in FolderScan(messy.jail, messy.call, ".", ScanOptions()):
            messy.call.cancel()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_scan_tells_how_far_it_is(messy: Messy, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []
    messy.call.progress = lambda done, _total, _message: told.append(done)
    monkeypatch.setattr("holdfast.folders.finding.walk._PROGRESS_SECONDS", 0.0)
    for folder in range(3):
        messy.write(f"{folder}/a.txt")
    messy.batches()
    assert told == sorted(told)
    assert told[-1] == 3


def test_a_directory_that_cannot_be_opened_is_told_and_the_scan_goes_on(
    messy: Messy, monkeypatch: pytest.MonkeyPatch
) -> None:
    messy.write("bad/a.txt")
    messy.write("good/b.txt")
    real = os.open

    def failing(path: str, flags: int, **more: int) -> int:
        if path == "bad":
            raise PermissionError(13, "Permission denied")
        return real(path, flags, **more)

    monkeypatch.setattr(os, "open", failing)
    assert messy.skipped() == {"bad": SkipReason.UNREADABLE}
    assert list(messy.scan()) == ["good/b.txt"]


def test_a_directory_swapped_for_a_link_is_not_entered(messy: Messy, monkeypatch: pytest.MonkeyPatch) -> None:
    messy.write("swap/a.txt")
    real = os.open

    def swapping(path: str, flags: int, **more: int) -> int:
        if path == "swap":
            os.rename(messy.root / "swap", messy.root / "moved")
            os.symlink("/etc", messy.root / "swap")
        return real(path, flags, **more)

    monkeypatch.setattr(os, "open", swapping)
    (batch,) = messy.batches()
    assert batch.files == []
    assert [skip.reason for skip in batch.skipped] == [SkipReason.UNREADABLE]
