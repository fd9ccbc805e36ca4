"""The trail of a file through the journal, back from where it is and onward from where it was; what a plan left."""

from collections.abc import Sequence

from holdfast.organiser.model import Notes, PastMove, SkippedFile, SkipReason, UncertainFile
from holdfast.organiser.planning.explain import PastOf, ancestors, left_by, trail_of


def past(seq: int, src: str, dest: str, status: str = "DONE") -> PastMove:
    return PastMove(f"p{seq}", seq, "organise", f"t{seq}", src, dest, status, "", None, "")


def journal(*moves: PastMove) -> PastOf:
    def past_of(paths: Sequence[str]) -> list[PastMove]:
        return [one for one in moves if one.src in paths or one.dest in paths]

    return past_of


def test_a_path_and_all_above_it() -> None:
    assert ancestors("/r/a/b.txt") == ["/r/a/b.txt", "/r/a", "/r"]


def test_the_trail_leads_onward_through_moves_of_the_file_and_of_its_folder() -> None:
    past_of = journal(past(1, "/r/a", "/r/d/a"), past(2, "/r/d", "/r/e"), past(3, "/r/e/a", "/r/a2"))
    now, hops = trail_of("/r/a", past_of, is_there=False)
    assert now == "/r/a2"
    assert [(hop.src, hop.dest) for hop in hops] == [("/r/e/a", "/r/a2"), ("/r/d/a", "/r/e/a"), ("/r/a", "/r/d/a")]


def test_the_trail_leads_back_from_where_something_is() -> None:
    past_of = journal(past(1, "/r/a", "/r/d/a"), past(2, "/r/d", "/r/e"))
    now, hops = trail_of("/r/e/a", past_of, is_there=True)
    assert now == "/r/e/a"
    assert [hop.src for hop in hops] == ["/r/d/a", "/r/a"]


def test_what_was_taken_back_or_never_happened_is_no_part_of_the_trail() -> None:
    past_of = journal(past(1, "/r/a", "/r/d/a", "UNDONE"), past(2, "/r/a", "/r/x/a", "SKIPPED"))
    assert trail_of("/r/a", past_of, is_there=False) == ("/r/a", ())


def test_a_circle_of_moves_comes_to_an_end() -> None:
    past_of = journal(past(1, "/r/a", "/r/b"), past(2, "/r/b", "/r/a"))
    assert trail_of("/r/a", past_of, is_there=False)[0] == "/r/a"


def test_what_a_plan_left_is_told_by_the_file_or_by_the_folder_above_it() -> None:
    doubt = UncertainFile("a/odd.txt", "hash", "Guess", 0.3, "Who knows.")
    locked, packages = (
        SkippedFile("a/locked.txt", SkipReason.UNREADABLE, "denied"),
        SkippedFile("a/node_modules/", SkipReason.DEPENDENCIES),
    )
    notes = Notes(decider="", folder="/r", doubts=(doubt,), skips=(locked, packages))
    assert left_by(notes, "/r/a/odd.txt") == (doubt, None)
    assert left_by(notes, "/r/a/locked.txt") == (None, locked)
    assert left_by(notes, "/r/a/node_modules/x/y.js") == (None, packages)
    assert left_by(notes, "/r/a/fine.txt") == (None, None)


def test_a_file_in_a_folder_that_was_left_whole_itself_is_told_so() -> None:
    whole = SkippedFile(".", SkipReason.WHOLE)
    assert left_by(Notes(decider="", folder="/r", skips=(whole,)), "/r/a/b.txt") == (None, whole)
