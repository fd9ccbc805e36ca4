"""No text of a file that a plan left in file outlives the file."""

import os

from holdfast.organiser.model import Excerpt, UncertainFile
from holdfast.organiser.planning.explain import read_current_excerpts
from tests.helpers.messy import Messy


def uncertain_file(messy: Messy, name: str) -> UncertainFile:
    return UncertainFile(name, f"hash of {name}", "Guess", 0.4, "Who knows.", messy.scan()[name].version.scan_text)


def read(messy: Messy, *files: UncertainFile) -> list[tuple[str, str, str]]:
    texts = {file.file_hash: Excerpt(f"text of {file.relative}") for file in files}
    results = read_current_excerpts(messy.jail, str(messy.root), files, texts)
    return [(file.category, file.reasoning, text) for file, text in results]


def test_a_file_that_is_as_it_was_is_told_with_its_text(messy: Messy) -> None:
    messy.write("a.txt")
    assert read(messy, uncertain_file(messy, "a.txt")) == [("Guess", "Who knows.", "text of a.txt")]


def test_a_file_that_is_gone_or_behind_a_file_or_link_is_told_without(messy: Messy) -> None:
    for name in ("a.txt", "b/c.txt", "d/e.txt"):
        messy.write(name)
    files = [uncertain_file(messy, name) for name in ("a.txt", "b/c.txt", "d/e.txt")]
    (messy.root / "a.txt").unlink()
    os.rename(messy.root / "b", messy.root / "elsewhere")
    messy.write("b")
    os.rename(messy.root / "d", messy.root.parent / "outside")
    (messy.root / "d").symlink_to(messy.root.parent / "outside")
    results = read(messy, *files)
    assert [(guess, text) for guess, _, text in results] == [("", "")] * 3
    assert {why for _, why, _ in results[:2]} == {"It was removed since the plan was made."}


def test_a_file_that_was_written_replaced_or_made_a_link_is_told_without(messy: Messy) -> None:
    names = ("edited", "replaced", "kept times", "link")
    for name in names:
        messy.write(name)
    files = [uncertain_file(messy, name) for name in names]
    with (messy.root / "edited").open("ab") as file:
        file.write(b"more")
    messy.write("new", "other\n").rename(messy.root / "replaced")
    status = (messy.root / "kept times").stat()
    messy.write("kept times", "WORDS\n")
    os.utime(messy.root / "kept times", ns=(status.st_atime_ns, status.st_mtime_ns))
    (messy.root / "link").unlink()
    (messy.root / "link").symlink_to("edited")
    why = "It changed since the plan was made; make a new plan to classify it."
    assert read(messy, *files) == [("", why, "")] * 4
