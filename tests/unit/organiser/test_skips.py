"""What is left alone, by name and by what lies beside it."""

import pytest

from holdfast.organiser.model import SkipReason
from holdfast.organiser.scan.skips import (
    affects_neighbours,
    is_dataless,
    reason_by_content,
    reason_for_directory,
    reason_for_file,
    reasons_by_neighbours,
)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (".bashrc", SkipReason.HIDDEN),
        (".DS_Store", SkipReason.HIDDEN),
        ("Thumbs.db", SkipReason.SYSTEM),
        ("desktop.ini", SkipReason.SYSTEM),
        ("Icon\r", SkipReason.SYSTEM),
        ("._photo.jpg", SkipReason.SYSTEM),
        ("film.mkv.crdownload", SkipReason.IN_PROGRESS),
        ("film.mkv.PART", SkipReason.IN_PROGRESS),
        ("film.mkv.partial", SkipReason.IN_PROGRESS),
        ("film.mkv.opdownload", SkipReason.IN_PROGRESS),
        ("film.mkv.aria2", SkipReason.IN_PROGRESS),
        ("film.mkv.!qB", SkipReason.IN_PROGRESS),
        (".report.pdf.icloud", SkipReason.PLACEHOLDER),
        ("report.pdf.nextcloud", SkipReason.PLACEHOLDER),
        ("~$report.docx", SkipReason.IN_USE),
        (".~lock.report.odt#", SkipReason.IN_USE),
        (".holdfast-0123.tmp", SkipReason.OWN),
        ("report.pdf", None),
        ("part", None),
        ("download", None),
        ("archive.part1.rar", None),
        ("~notes.txt", None),
        ("$list.txt", None),
    ],
)
def test_a_file_is_judged_by_its_name(name: str, reason: SkipReason | None) -> None:
    assert reason_for_file(name, include_hidden=False) is reason


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (".git", SkipReason.HIDDEN),
        ("node_modules", SkipReason.DEPENDENCIES),
        ("__pycache__", SkipReason.DEPENDENCIES),
        (".cache", SkipReason.HIDDEN),
        ("Safari.app", SkipReason.BUNDLE),
        ("Pictures.photoslibrary", SkipReason.BUNDLE),
        ("Thing.Framework", SkipReason.BUNDLE),
        ("film.mkv.download", SkipReason.IN_PROGRESS),
        ("$RECYCLE.BIN", SkipReason.SYSTEM),
        ("lost+found", SkipReason.SYSTEM),
        (".holdfast-quarantine", SkipReason.OWN),
        ("app", None),
        ("plugin", None),
        ("Invoices", None),
    ],
)
def test_a_directory_is_judged_by_its_name(name: str, reason: SkipReason | None) -> None:
    assert reason_for_directory(name, include_hidden=False) is reason


def test_hidden_files_are_let_in_but_placeholders_and_our_own_are_not() -> None:
    assert reason_for_file(".bashrc", include_hidden=True) is None
    assert reason_for_directory(".config", include_hidden=True) is None
    assert reason_for_file(".holdfast-1.tmp", include_hidden=True) is SkipReason.OWN
    assert reason_for_file(".a.pdf.icloud", include_hidden=True) is SkipReason.PLACEHOLDER


def test_a_virtual_environment_is_known_by_what_is_in_it() -> None:
    assert reason_by_content({"pyvenv.cfg", "bin", "lib"}) is SkipReason.ENVIRONMENT
    assert reason_by_content({"conda-meta", "bin"}) is SkipReason.ENVIRONMENT
    assert reason_by_content({"bin", "lib"}) is None


def test_the_file_that_a_download_fills_is_left_alone_with_it() -> None:
    names = ["film.mkv", "film.mkv.aria2", "song.mp3.part", "song.mp3", "other.mp3"]
    assert reasons_by_neighbours(names) == {"film.mkv": SkipReason.IN_PROGRESS, "song.mp3": SkipReason.IN_PROGRESS}


def test_a_document_that_is_open_is_left_alone() -> None:
    names = ["~$report.docx", "report.docx", "~$nnual.docx", "annual.docx", ".~lock.a.odt#", "a.odt", "b.odt"]
    assert reasons_by_neighbours(names) == dict.fromkeys(["report.docx", "annual.docx", "a.odt"], SkipReason.IN_USE)


def test_plain_names_say_nothing_of_their_neighbours() -> None:
    assert affects_neighbours("~$a.docx")
    assert affects_neighbours("a.mkv.PART")
    assert not affects_neighbours("a.docx")


def test_a_file_without_its_data_is_known_by_flag_or_by_blocks() -> None:
    assert is_dataless(100, 8, 0x40000000)
    assert is_dataless(100, 0, 0)
    assert not is_dataless(0, 0, 0)
    assert not is_dataless(100, 8, 0)
