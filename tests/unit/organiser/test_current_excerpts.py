"""No text of a file that a plan left in doubt outlives the file."""

import os

from holdfast.organiser.model import Excerpt, UncertainFile
from holdfast.organiser.planning.current_excerpts import said_now
from tests.helpers.messy import Messy


def doubted(messy: Messy, name: str) -> UncertainFile:
    return UncertainFile(name, f"hash of {name}", "Guess", 0.4, "Who knows.", messy.found()[name].look)


def said(messy: Messy, *doubts: UncertainFile) -> list[tuple[str, str, str]]:
    texts = {doubt.file_hash: Excerpt(f"text of {doubt.relative}") for doubt in doubts}
    told = said_now(messy.jail, str(messy.root), doubts, texts)
    return [(doubt.category, doubt.reasoning, text) for doubt, text in told]


def test_a_file_that_is_as_it_was_is_told_with_its_text(messy: Messy) -> None:
    messy.write("a.txt")
    assert said(messy, doubted(messy, "a.txt")) == [("Guess", "Who knows.", "text of a.txt")]


def test_a_file_that_is_gone_or_behind_a_file_or_link_is_told_without(messy: Messy) -> None:
    for name in ("a.txt", "b/c.txt", "d/e.txt"):
        messy.write(name)
    doubts = [doubted(messy, name) for name in ("a.txt", "b/c.txt", "d/e.txt")]
    (messy.root / "a.txt").unlink()
    os.rename(messy.root / "b", messy.root / "elsewhere")
    messy.write("b")
    os.rename(messy.root / "d", messy.root.parent / "outside")
    (messy.root / "d").symlink_to(messy.root.parent / "outside")
    told = said(messy, *doubts)
    assert [(guess, text) for guess, _, text in told] == [("", "")] * 3
    assert {why for _, why, _ in told[:2]} == {"It is gone since the plan was made."}


def test_a_file_that_was_written_replaced_or_made_a_link_is_told_without(messy: Messy) -> None:
    names = ("edited", "replaced", "kept times", "link")
    for name in names:
        messy.write(name)
    doubts = [doubted(messy, name) for name in names]
    with (messy.root / "edited").open("ab") as file:
        file.write(b"more")
    messy.write("new", "other\n").rename(messy.root / "replaced")
    status = (messy.root / "kept times").stat()
    messy.write("kept times", "WORDS\n")
    os.utime(messy.root / "kept times", ns=(status.st_atime_ns, status.st_mtime_ns))
    (messy.root / "link").unlink()
    (messy.root / "link").symlink_to("edited")
    why = "It changed since the plan was made: a new plan will judge it."
    assert said(messy, *doubts) == [("", why, "")] * 4
