"""The trail of a file through the journal, back from where it is and onward from where it was; what a plan left."""

from collections.abc import Sequence

from holdfast.organiser.model import Notes, PastMove, SkippedFile, SkipReason, UncertainFile
from holdfast.organiser.planning.explain import FindMoves, find_in_notes, path_and_parents, trace_moves


def move(seq: int, src: str, dest: str, status: str = "DONE") -> PastMove:
    return PastMove(f"p{seq}", seq, "organise", f"t{seq}", src, dest, status, "", None, "")


def journal(*moves: PastMove) -> FindMoves:
    def find_moves(paths: Sequence[str]) -> list[PastMove]:
        return [entry for entry in moves if entry.src in paths or entry.dest in paths]

    return find_moves


def test_a_path_and_all_above_it() -> None:
    assert path_and_parents("/r/a/b.txt") == ["/r/a/b.txt", "/r/a", "/r"]


def test_the_trail_leads_onward_through_moves_of_the_file_and_of_its_folder() -> None:
    find_moves = journal(move(1, "/r/a", "/r/d/a"), move(2, "/r/d", "/r/e"), move(3, "/r/e/a", "/r/a2"))
    now, hops = trace_moves("/r/a", find_moves, exists=False)
    assert now == "/r/a2"
    assert [(hop.src, hop.dest) for hop in hops] == [("/r/e/a", "/r/a2"), ("/r/d/a", "/r/e/a"), ("/r/a", "/r/d/a")]


def test_the_trail_leads_back_from_where_something_is() -> None:
    find_moves = journal(move(1, "/r/a", "/r/d/a"), move(2, "/r/d", "/r/e"))
    now, hops = trace_moves("/r/e/a", find_moves, exists=True)
    assert now == "/r/e/a"
    assert [hop.src for hop in hops] == ["/r/d/a", "/r/a"]


def test_what_was_taken_back_or_never_happened_is_no_part_of_the_trail() -> None:
    find_moves = journal(move(1, "/r/a", "/r/d/a", "UNDONE"), move(2, "/r/a", "/r/x/a", "SKIPPED"))
    assert trace_moves("/r/a", find_moves, exists=False) == ("/r/a", ())


def test_a_circle_of_moves_comes_to_an_end() -> None:
    find_moves = journal(move(1, "/r/a", "/r/b"), move(2, "/r/b", "/r/a"))
    assert trace_moves("/r/a", find_moves, exists=False)[0] == "/r/a"


def test_what_a_plan_left_is_told_by_the_file_or_by_the_folder_above_it() -> None:
    uncertain = UncertainFile("a/odd.txt", "hash", "Guess", 0.3, "Who knows.")
    locked, packages = (
        SkippedFile("a/locked.txt", SkipReason.UNREADABLE, "denied"),
        SkippedFile("a/node_modules/", SkipReason.DEPENDENCIES),
    )
    notes = Notes(decider="", folder="/r", uncertain=(uncertain,), skipped=(locked, packages))
    assert find_in_notes(notes, "/r/a/odd.txt") == (uncertain, None)
    assert find_in_notes(notes, "/r/a/locked.txt") == (None, locked)
    assert find_in_notes(notes, "/r/a/node_modules/x/y.js") == (None, packages)
    assert find_in_notes(notes, "/r/a/fine.txt") == (None, None)


def test_a_file_in_a_folder_that_was_left_whole_itself_is_told_so() -> None:
    whole = SkippedFile(".", SkipReason.WHOLE)
    assert find_in_notes(Notes(decider="", folder="/r", skipped=(whole,)), "/r/a/b.txt") == (None, whole)
