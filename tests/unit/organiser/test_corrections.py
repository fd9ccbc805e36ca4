"""Which file and which folder somebody means, and how a plan changes by it."""

import pytest

from holdfast.changes.model import Item, Op
from holdfast.changes.plans.resolve_moves import MoveRequest
from holdfast.errors import InvalidArgument
from holdfast.folders.access.file_version import FileVersion, HashedVersion
from holdfast.organiser.model import DestinationFolder, Notes, ScannedFile, UncertainFile
from holdfast.organiser.planning.corrections import (
    compare_moves,
    index_by_path,
    moves_to_keep,
    resolve_file,
    resolve_folder,
    revise_notes,
)
from holdfast.organiser.scan.survey import SurveyedFile

PHOTO = SurveyedFile(ScannedFile("/r/a.jpg", "a.jpg", members=(ScannedFile("/r/a.xmp", "a.xmp"),)), "h", None)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("Taxes", "Taxes"),
        ("taxes/", "Taxes"),
        ("./Work//Ideas", "Work/Ideas"),
        ("a:b", "a b"),
        ("odd: name", "odd: name"),
    ],
)
def test_a_folder_is_the_known_one_or_a_clean_one(given: str, meant: str) -> None:
    assert resolve_folder(given, ["Taxes", "odd: name"]) == meant


@pytest.mark.parametrize("given", ["", "/", "/etc", "..", "a/..", "../a", "NUL", "a/" * 9 + "b", "x" * 101])
def test_a_folder_that_leads_elsewhere_or_cannot_be_is_refused(given: str) -> None:
    with pytest.raises(InvalidArgument):
        resolve_folder(given, [])


def test_a_folder_that_lies_too_deep_is_told_so() -> None:
    with pytest.raises(InvalidArgument, match="at most 8 levels"):
        resolve_folder("a/" * 9, [])


@pytest.mark.parametrize("given", ["a.jpg", "./a.jpg", "/r/a.jpg", "a.xmp", "/r/a.xmp"])
def test_what_goes_with_a_file_means_that_file(given: str) -> None:
    assert resolve_file(given, "/r", index_by_path([PHOTO])) == "a.jpg"


def test_an_unknown_file_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"'b\.jpg' is not a file of this plan"):
        resolve_file("b.jpg", "/r", index_by_path([PHOTO]))


def move(position: int, name: str, folder: str) -> Item:
    return Item(Op.MOVE, f"/r/{name}", f"/r/{folder}/{name} (2)", position=position, composite_hash="h")


def wish(name: str, folder: str, file_hash: str = "h") -> MoveRequest:
    return MoveRequest(
        f"/r/{name}", f"/r/{folder}/{name}", "why", 0.9, HashedVersion(FileVersion(1, 1, 1, 1, 1), file_hash)
    )


def test_only_what_differs_changes_in_a_plan() -> None:
    moves = [move(0, "same", "A"), move(1, "other", "A"), move(2, "gone", "A"), move(3, "changed", "A")]
    wishes = [wish("same", "A"), wish("other", "B"), wish("changed", "A", "new"), wish("more", "B")]
    change = compare_moves(moves, wishes)
    assert change.dests == {1: "/r/B/other", 2: None, 3: None}
    assert change.reasons == {0: ("why", 0.9), 1: ("why", 0.9)}
    assert [added.src for added in change.added] == ["/r/changed", "/r/more"]


def test_a_correction_questions_only_the_folder_that_it_keeps_a_file_from() -> None:
    moves = [move(0, "a", "A"), move(1, "b", "A"), move(2, "c", "B")]
    assert {path: verdict.category for path, verdict in moves_to_keep(moves, "/r", {"a": "B"}).items()} == {"/r/c": "B"}
    assert moves_to_keep(moves, "/r", {"a": None}).keys() == {"/r/c"}
    assert moves_to_keep(moves, "/r", {"a": "A"}).keys() == {"/r/b", "/r/c"}
    assert moves_to_keep(moves, "/r", {"new": "B"}).keys() == {"/r/a", "/r/b", "/r/c"}


def test_a_decision_on_single_files_leaves_the_rest_of_the_notes() -> None:
    doubts = tuple(UncertainFile(name, "h", "A", 0.5, "why") for name in ("one", "two", "three"))
    notes = Notes(
        "me",
        destinations=(DestinationFolder("A", "A", is_new=False),),
        uncertain=doubts,
        uncertain_count=5,
        decisions={"old": "A"},
    )
    after = revise_notes(notes, {"one": "B", "two": None, "four": "C/D"}, [doubts[1]], ["A", "B"])
    assert [doubt.relative for doubt in after.uncertain] == ["two", "three"]
    assert after.uncertain_count == 4
    assert [(shelf.folder, shelf.is_new) for shelf in after.destinations] == [("A", False), ("B", False), ("C/D", True)]
    assert after.decisions == {"old": "A", "one": "B", "two": None, "four": "C/D"}
