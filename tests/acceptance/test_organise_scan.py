"""What a scan of a messy folder finds, leaves alone and reads, on real files."""

import hashlib
import os
import resource
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import AccessDenied, Cancelled
from holdfast.folders.access.syscalls import composite_hash
from holdfast.folders.children.extract import ExtractionLimits, ExtractionRequest, extract_texts
from holdfast.organiser.model import Excerpt, SkipReason, Unit, Verdict
from holdfast.organiser.ports import CachedFile
from holdfast.organiser.scan.directory import ScanOptions
from holdfast.organiser.scan.excerpts import reason_to_read_text
from holdfast.organiser.scan.survey import Survey
from tests.helpers import documents
from tests.helpers.messy import Messy, messy_folder

_opened: list[str] | None = None


def _note_opening(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _opened is not None:
        _opened.append(os.fsdecode(arguments[0]) if isinstance(arguments[0], (str, bytes)) else str(arguments[0]))


sys.addaudithook(_note_opening)


@contextmanager
def openings() -> Iterator[list[str]]:
    """Give the names of everything that this process opens meanwhile."""
    global _opened  # noqa: PLW0603  an audit hook stays for good, so it is switched on and off
    _opened = []
    try:
        yield _opened
    finally:
        _opened = None


@pytest.fixture
def messy(tmp_path: Path) -> Iterator[Messy]:
    with messy_folder(tmp_path) as folder:
        yield folder


def hash_of(path: Path) -> str:
    fd = os.open(path, os.O_RDONLY)
    try:
        return composite_hash(fd, os.fstat(fd))
    finally:
        os.close(fd)


SIZES = [0, 1, 100, 4095, 4096, 4097, 8191, 8192, 8193, 100_000]


@pytest.mark.req("OR-01.a")
@pytest.mark.parametrize("size", SIZES)
def test_the_hash_covers_size_time_and_both_ends_of_a_file_of_any_length(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(os.urandom(size))
    data, before = path.read_bytes(), hash_of(path)
    assert before == hash_of(path)
    ends = data[:4096] + (data[-4096:] if size > 4096 else b"")
    assert before == hashlib.sha256(b"%d\0%d\0" % (size, path.stat().st_mtime_ns) + ends).hexdigest()
    stamp = path.stat().st_mtime_ns
    for at in {0, min(size, 4096) - 1, max(0, size - 4096), size - 1} if size else set():
        changed = bytearray(data)
        changed[at] ^= 1
        path.write_bytes(changed)
        os.utime(path, ns=(stamp, stamp))
        assert hash_of(path) != before
    path.write_bytes(data)
    os.utime(path, ns=(stamp + 1, stamp + 1))
    assert hash_of(path) != before


@pytest.mark.req("OR-01.b")
@pytest.mark.parametrize("size", SIZES)
def test_the_hash_reads_8_kb_at_most(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"x" * size)
    fd = os.open(path, os.O_RDONLY)
    try:
        status = os.fstat(fd)
        before = _bytes_read()
        overhead = _bytes_read() - before
        before = _bytes_read()
        composite_hash(fd, status)
        assert _bytes_read() - before - overhead <= 8192
    finally:
        os.close(fd)


def _bytes_read() -> int:
    fd = os.open("/proc/thread-self/io", os.O_RDONLY)
    try:
        return int(os.read(fd, 200).split()[1])
    finally:
        os.close(fd)


@pytest.mark.req("OR-01.c")
def test_a_change_in_the_middle_alone_keeps_the_hash(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"a" * 20_000)
    before, stamp = hash_of(path), path.stat().st_mtime_ns
    path.write_bytes(b"a" * 9_999 + b"b" + b"a" * 10_000)
    os.utime(path, ns=(stamp, stamp))
    assert hash_of(path) == before


@pytest.mark.req("OR-02.a")
def test_the_second_scan_of_an_unchanged_tree_opens_no_file(messy: Messy) -> None:
    names = {f"{folder}/{number}.txt" for folder in ("a", "b") for number in range(30)}
    for name in names:
        messy.write(name, name)
    with openings() as first:
        messy.survey()
    assert len([name for name in first if name.endswith(".txt")]) == len(names)
    messy.write("a/new.txt")
    with openings() as second:
        messy.survey()
    assert [name for name in second if name.endswith(".txt")] == ["new.txt"]


@pytest.mark.req("OR-02.b")
def test_a_verdict_is_known_for_its_own_decider_alone(messy: Messy) -> None:
    messy.write("a.txt")
    survey = Survey(messy.jail, messy.call, ".", ScanOptions(), messy.cache)
    ((entry,),) = [batch.files for batch in survey]
    verdict = Verdict("Notes", 0.9, decider="embedded:minilm:Notes,Bills")
    messy.cache.save([CachedFile(entry.file, entry.file_hash, None, verdict)])
    assert messy.cache.load_verdicts([entry.file_hash], verdict.decider) == {entry.file_hash: verdict}
    assert messy.cache.load_verdicts([entry.file_hash], "embedded:minilm:Notes,Bills,Photos") == {}


@pytest.mark.req("OR-03.a", "OR-03.b")
def test_what_must_not_be_touched_is_left_alone_and_counted_by_reason(messy: Messy) -> None:
    for name in (
        ".profile", "repo/.git/HEAD", "repo/.git/objects/ab", "node_modules/left-pad/index.js", "env/pyvenv.cfg", "Photos.photoslibrary/db",
        "Tool.app/Contents/Info.plist", ".report.pdf.icloud", "film.mkv.crdownload", "song.mp3.part", "real.bin",
    ):  # fmt: skip
        messy.write(name, b"x" * 5000)
    with (messy.root / "dataless.pdf").open("wb") as file:
        file.truncate(1 << 20)
    survey = messy.survey()
    assert sorted(messy.scan()) == ["real.bin", "repo"]
    assert messy.skipped() == {
        ".profile": SkipReason.HIDDEN,
        "node_modules": SkipReason.DEPENDENCIES,
        "env": SkipReason.ENVIRONMENT,
        "Photos.photoslibrary": SkipReason.BUNDLE,
        "Tool.app": SkipReason.BUNDLE,
        ".report.pdf.icloud": SkipReason.PLACEHOLDER,
        "dataless.pdf": SkipReason.PLACEHOLDER,
        "film.mkv.crdownload": SkipReason.IN_PROGRESS,
        "song.mp3.part": SkipReason.IN_PROGRESS,
    }
    assert survey.skip_counts == Counter(messy.skipped().values())


@pytest.mark.req("OR-04.a")
def test_repositories_projects_and_bundles_are_one_item_each(messy: Messy) -> None:
    for name in ("repo/.git/HEAD", "repo/a.py", "tool/pyproject.toml", "tool/src/x.py", "site/package.json",
                 "crate/Cargo.toml", "win/App.sln", "Talk.key/index.apxl", "Plain/notes.txt"):  # fmt: skip
        messy.write(name)
    units = {name: found.unit for name, found in messy.scan().items()}
    assert units == {
        "repo": Unit.REPOSITORY,
        "tool": Unit.PROJECT,
        "site": Unit.PROJECT,
        "crate": Unit.PROJECT,
        "win": Unit.PROJECT,
        "Talk.key": Unit.BUNDLE,
        "Plain/notes.txt": None,
    }


@pytest.mark.req("OR-04.b")
def test_files_that_belong_together_are_one_item(messy: Messy) -> None:
    for name in ("IMG_1.CR3", "IMG_1.JPG", "IMG_1.xmp", "game.part1.rar", "game.part2.rar", "disk.zip", "disk.z01",
                 "News.html", "News_files/logo.png", "alone.txt"):  # fmt: skip
        messy.write(name)
    found = {name: [member.name for member in one.members] for name, one in messy.scan().items()}
    assert found == {
        "IMG_1.CR3": ["IMG_1.JPG", "IMG_1.xmp"],
        "game.part1.rar": ["game.part2.rar"],
        "disk.zip": ["disk.z01"],
        "News.html": ["News_files"],
        "alone.txt": [],
    }


@pytest.mark.req("OR-04.c")
def test_a_unit_is_left_alone_whole_when_one_part_must_be(messy: Messy) -> None:
    for name in ("game.part1.rar", "game.part2.rar", "game.part2.rar.part"):
        messy.write(name)
    assert messy.scan() == {}
    assert set(messy.skipped().values()) == {SkipReason.IN_PROGRESS}


@pytest.mark.req("OR-05.a")
def test_special_files_do_not_hold_a_scan_up(messy: Messy) -> None:
    for number in range(20):
        os.mkfifo(messy.root / f"pipe{number}.txt")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.fspath(messy.root / "sock"))
        started = time.monotonic()
        assert messy.survey().skip_counts == {SkipReason.SPECIAL: 21}
        assert time.monotonic() - started < 5


@pytest.mark.req("OR-05.b")
def test_an_unreadable_file_does_not_end_a_scan(messy: Messy, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.txt", "bad.txt", "z/b.txt"):
        messy.write(name)
    real = os.open

    def failing(path: str, flags: int, *rest: int, **more: int) -> int:
        if path == "bad.txt":
            raise OSError(5, "Input/output error")
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", failing)
    survey = Survey(messy.jail, messy.call, ".", ScanOptions(), messy.cache)
    (batch,) = survey
    assert [each.file.relative for each in batch.files] == ["a.txt", "z/b.txt"]
    assert batch.skipped == [("bad.txt", SkipReason.UNREADABLE, "Input/output error")]


@pytest.mark.req("OR-05.c")
@pytest.mark.timeout(300)
def test_100_000_files_stream_in_bounded_memory_with_progress(messy: Messy) -> None:
    for folder in range(200):
        place = messy.root / f"d{folder // 20}" / f"e{folder % 20}"
        place.mkdir(parents=True)
        fd = os.open(place, os.O_RDONLY)
        for number in range(500):
            os.close(os.open(f"file {number}.txt", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        os.close(fd)
    told: list[float] = []
    messy.call.progress = lambda done, _total, _message: told.append(done)
    messy.call.timeout_seconds = 280
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    survey = Survey(messy.jail, messy.call, ".", ScanOptions(), messy.cache)
    most = files = 0
    for batch in survey:
        most, files = max(most, len(batch.files)), files + len(batch.files)
    assert files == 100_000
    assert most <= 2_000
    assert told == sorted(told)
    assert told
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100_000, f"{grown} KB more"


@pytest.mark.req("OR-05.d")
def test_a_scan_stops_when_it_is_told_to(messy: Messy) -> None:
    for folder in range(4):
        for number in range(600):
            messy.write(f"{folder}/{number}.txt")
    survey = Survey(messy.jail, messy.call, ".", ScanOptions(), messy.cache)
    with pytest.raises(Cancelled):
        for _ in survey:
            messy.call.cancel()
    assert survey.entry_count < 2_400
    messy.call = type(messy.call)(messy.call.caller)
    again = messy.survey()
    assert again.entry_count == 2_400
    assert again.opened_count < 2_400


@pytest.mark.req("OR-06.a")
def test_a_folder_outside_the_roots_is_not_scanned(messy: Messy) -> None:
    os.symlink("/etc", messy.root / "out")
    for folder in ("/etc", "..", "out", str(messy.root) + "-neighbour"):
        with pytest.raises(AccessDenied):
            messy.survey(folder)


@pytest.mark.req("OR-06.b")
def test_no_link_is_followed(messy: Messy) -> None:
    messy.write("Docs/a.txt")
    (messy.root.parent / "private").mkdir()
    (messy.root.parent / "private" / "secret.txt").write_text("x")
    for target, name in (
        ("../private", "folder"),
        ("../private/secret.txt", "file"),
        (".", "Docs/loop"),
        ("no", "dead"),
    ):
        os.symlink(target, messy.root / name)
    survey = messy.survey()
    assert survey.skip_counts == {SkipReason.LINK: 4}
    assert survey.opened_count == 1


@pytest.mark.req("OR-10.a", "OR-10.b")
@pytest.mark.parametrize("size", [0, 1, 2047, 2048, 3071, 3072, 3073, 5000, 50_000])
def test_tier_1_is_the_first_2_kb_and_the_last_1_kb(messy: Messy, size: int) -> None:
    body = "".join(chr(97 + at % 26) for at in range(size))
    messy.write("a.txt", body)
    excerpt = messy.peek("a.txt").excerpt
    assert excerpt.bytes_read == min(size, 3072)
    assert excerpt.text == (body if size <= 3072 else f"{body[:2048]}\n…\n{body[-1024:]}")


@pytest.mark.req("OR-11.a")
def test_tier_2_is_for_those_that_need_it() -> None:
    plain = Excerpt("see you on Monday", content_type="text/plain")
    for word in ("Total", "Invoice", "Balance Due", "Agreement", "Witnesseth"):
        assert reason_to_read_text(Excerpt(f"… {word} …", content_type="text/plain"), "txt"), word
    assert reason_to_read_text(plain, "pdf")
    assert reason_to_read_text(plain, "docx")
    assert reason_to_read_text(plain, "txt", Verdict("Notes", 0.95, requires_deep_scan=True))
    assert reason_to_read_text(plain, "txt", Verdict("Notes", 0.79))
    assert reason_to_read_text(plain, "txt", Verdict("Notes", 0.8)) is None
    assert reason_to_read_text(plain, "txt") is None


@pytest.mark.req("OR-12.a")
def test_text_comes_out_of_every_kind_of_document(messy: Messy) -> None:
    expected = {
        "a.pdf": (documents.pdf(), "Hello from a PDF page"),
        "a.docx": (documents.word(), "First paragraph."),
        "a.xlsx": (documents.sheet(), "person 0"),
        "a.pptx": (documents.slides(), "Closing"),
        "a.html": (b"<!DOCTYPE html><p>Weather report</p>" + b"<br>" * 5000 + b"rain", "Weather report\nrain"),
        "a.eml": (documents.message(), "The engine weaves patterns."),
        "a.epub": (documents.epub(), "Call me Ishmael."),
        "a.zip": (documents.archive({"thesis/chapter1.tex": b"x"}), "thesis/chapter1.tex"),
        "a.jpg": (documents.photo(), "Camera maker: Fujifilm"),
    }
    for name, (content, _) in expected.items():
        messy.write(name, content)
    for name, (_, words) in expected.items():
        assert words in messy.read_text(name).text, name


@pytest.mark.req("OR-12.b")
def test_a_wrong_suffix_does_not_hide_what_a_file_is(messy: Messy) -> None:
    messy.write("photo.pdf", documents.photo())
    messy.write("letter.jpg", documents.word())
    messy.write("notes.docx", "only words\n")
    assert messy.read_text("photo.pdf").content_type == "image/jpeg"
    assert "First paragraph." in messy.read_text("letter.jpg").text
    assert messy.read_text("notes.docx").text == "only words"


@pytest.mark.req("OR-13.a")
def test_a_document_that_takes_too_long_or_too_much_is_given_up(messy: Messy) -> None:
    messy.write("slow.xlsx", documents.sheet(60_000))
    messy.write("ok.pdf", documents.pdf())
    with messy.jail.open_file("slow.xlsx") as slow, messy.jail.open_file("ok.pdf") as fine:
        wanted = [ExtractionRequest(slow.fd, "ARCHIVE"), ExtractionRequest(fine.fd, "PDF")]
        late = extract_texts(messy.call, wanted, ExtractionLimits(max_text_bytes=50_000_000, seconds=0.01))
        assert late[0].error == "reading it took longer than 0.01 s"
        small = extract_texts(messy.call, wanted, ExtractionLimits(max_text_bytes=500))
        assert [len(each.text) <= 500 and not each.error for each in small] == [True, True]
    messy.write("big.docx", documents.heavy_word(200))
    with messy.jail.open_file("big.docx") as big:
        (starved,) = extract_texts(
            messy.call, [ExtractionRequest(big.fd, "ARCHIVE")], ExtractionLimits(memory_bytes=150 << 20)
        )
        assert starved.error == "it needs more than 150 MiB of memory"


@pytest.mark.req("OR-13.b")
def test_bombs_and_broken_documents_keep_their_name_and_type(messy: Messy) -> None:
    hostile = {
        "bomb.docx": documents.zip_bomb(),
        "pixels.png": documents.pixel_bomb(),
        "cut.pdf": documents.pdf()[:80],
        "cut.xlsx": documents.sheet()[:-200],
    }
    for name, content in hostile.items():
        messy.write(name, content)
    started = time.monotonic()
    for name in hostile:
        excerpt = messy.read_text(name)
        assert excerpt.text == "", name
        assert excerpt.note, name
        assert excerpt.content_type != "application/octet-stream", name
    assert time.monotonic() - started < 60
