"""What a person's word, and a person's save, make of a review."""

from dataclasses import replace

import pytest

from holdfast.errors import Conflict, InvalidArgument
from holdfast.review.decide import choice_from_save, decide, encode_for
from holdfast.review.model import UNDECIDED_STATES, Channel, Choice, Decision, Review, ReviewState, UserAction
from holdfast.text.diff import compute_hunks

NOW, LATER = "2026-01-01T00:00:00.000000Z", "2026-01-02T00:00:00.000000Z"


def review(base: bytes | None = b"one\ntwo\n", proposed: bytes = b"one\nTWO\n") -> Review:
    return Review("i" * 32, "mcp_review_x", "/r/a.txt", "/r", NOW, LATER, "q", base, proposed)


def approval(one: Review, **more: object) -> Decision:
    return replace(Decision(Choice.APPROVE, Channel.TERMINAL, one.shown_hash), **more)  # type: ignore[arg-type]


def test_an_approval_takes_the_text_that_was_shown() -> None:
    after = decide(review(), approval(review()), NOW, LATER)
    assert (after.state, after.text, after.expires_at) == (ReviewState.APPROVED, b"one\nTWO\n", LATER)
    assert (after.decided_by, after.decided_at) == ("terminal", NOW)


def test_an_approval_of_something_else_than_shown_is_refused() -> None:
    with pytest.raises(Conflict, match="changed since it was shown"):
        decide(review(proposed=b"other\n"), approval(review()), NOW, LATER)


def test_an_approval_without_the_hash_of_what_was_shown_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="shown_hash"):
        decide(review(), Decision(Choice.APPROVE, Channel.TERMINAL), NOW, LATER)


def test_the_hash_covers_file_base_and_text() -> None:
    one = review()
    others = [replace(one, path="/r/b"), replace(one, base=b""), replace(one, base=None), replace(one, proposed=b"x")]
    assert len({one.shown_hash, *(other.shown_hash for other in others), replace(one, id="j" * 32).shown_hash}) == 6


@pytest.mark.parametrize("state", [state for state in ReviewState if state not in UNDECIDED_STATES])
@pytest.mark.parametrize("choice", list(Choice))
def test_what_is_decided_stays_decided(state: ReviewState, choice: Choice) -> None:
    one = replace(review(), state=state, answered=b"x")
    with pytest.raises(Conflict, match="decided already"):
        decide(one, Decision(choice, Channel.CONSOLE, one.shown_hash, reason="r"), NOW, LATER)


def test_a_revision_makes_the_persons_text_the_last_one() -> None:
    after = decide(review(), Decision(Choice.REVISE, Channel.CONSOLE, text=b"mine\n"), NOW, LATER)
    assert (after.action, after.text, after.proposed) == (UserAction.REVIEW, b"mine\n", b"one\nTWO\n")


def test_a_comment_alone_is_a_revision_of_the_same_text() -> None:
    after = decide(review(), Decision(Choice.REVISE, Channel.CONSOLE, reason="shorter"), NOW, LATER)
    assert (after.action, after.text, after.reason) == (UserAction.REVIEW, b"one\nTWO\n", "shorter")


def test_a_revision_that_says_nothing_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="text or a reason"):
        decide(review(), Decision(Choice.REVISE, Channel.CONSOLE), NOW, LATER)


def test_a_rejection_closes_the_review_and_lets_its_texts_go() -> None:
    after = decide(review(), Decision(Choice.REJECT, Channel.CONSOLE, reason="no"), NOW, LATER)
    assert (after.action, after.state, after.reason) == (UserAction.REJECT, ReviewState.REJECTED, "no")
    assert (after.base, after.proposed, after.answered, after.is_open) == (None, b"", None, False)


def test_after_a_revision_only_the_persons_text_can_be_approved() -> None:
    first = review()
    revised = decide(first, Decision(Choice.REVISE, Channel.CONSOLE, text=b"mine\n"), NOW, LATER)
    with pytest.raises(Conflict):
        decide(revised, approval(first), NOW, LATER)
    assert decide(revised, approval(revised), NOW, LATER).text == b"mine\n"


def test_chosen_hunks_are_approved_alone() -> None:
    before = b"".join(b"%d\n" % number for number in range(40))
    one = review(before, before.replace(b"\n5\n", b"\nfive\n").replace(b"\n30\n", b"\nthirty\n"))
    first, _second = compute_hunks(before.decode(), one.proposed.decode())
    assert decide(one, approval(one, hunks=(first.hash,)), NOW, LATER).text == before.replace(b"\n5\n", b"\nfive\n")


@pytest.mark.parametrize("hunks", [(), ("",), ("0" * 64,)])
def test_hunks_that_do_not_exist_are_refused(hunks: tuple[str, ...]) -> None:
    with pytest.raises(InvalidArgument, match="hunks are named by the hashes"):
        decide(review(), approval(review(), hunks=hunks), NOW, LATER)


def test_the_file_as_it_is_cannot_be_approved() -> None:
    with pytest.raises(InvalidArgument, match="reject"):
        decide(review(), approval(review(), text=b"one\ntwo\n"), NOW, LATER)


@pytest.mark.parametrize(
    ("base", "proposed", "saved", "meant"),
    [
        (b"a\n", b"b\n", b"b\n\n", (Choice.APPROVE, b"b\n")),
        (b"a\n", b"b\n", b"b\n\n\n\n", (Choice.APPROVE, b"b\n")),
        (b"a\n", b"b\n", b"mine\n\n", (Choice.APPROVE, b"mine\n")),
        (b"a", b"b", b"b\n\n", (Choice.APPROVE, b"b")),
        (b"a", b"b", b"b\n", (Choice.REVISE, b"b\n")),
        (b"a\n", b"b\n", b"b", (Choice.REVISE, b"b")),
        (b"a\n", b"b\n", b"c\n", (Choice.REVISE, b"c\n")),
        (b"a\n\n", b"b\n\n", b"c\n\n", (Choice.REVISE, b"c\n\n")),
        (b"a\n\n", b"b\n\n", b"b\n\n\n", (Choice.APPROVE, b"b\n\n")),
        (b"a\r\n", b"b\r\n", b"b\r\n\r\n", (Choice.APPROVE, b"b\r\n")),
        (b"a\r\n", b"b\r\n", b"b\r\n\n", (Choice.APPROVE, b"b\r\n")),
        (None, b"new\n", b"new\n\n", (Choice.APPROVE, b"new\n")),
        (None, b"new", b"new\n\n", (Choice.APPROVE, b"new")),
        (b"", b"new\n", b"new\n\n", (Choice.APPROVE, b"new\n")),
        (b"a\n", b"b", b"b\n\n", (Choice.APPROVE, b"b\n")),
        (b"a", b"a\n", b"a\n\n", (Choice.APPROVE, b"a\n")),
        (b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfb\n", b"b\n\n", (Choice.APPROVE, b"\xef\xbb\xbfb\n")),
        (b"a\n", b"b\n", b"\xff\xfe\n\n", (Choice.REVISE, b"\xff\xfe\n\n")),
        (
            "ä\n".encode("utf-16"),
            "ö\n".encode("utf-16"),
            "ö\n\n".encode("utf-16"),
            (Choice.APPROVE, "ö\n".encode("utf-16")),
        ),
    ],
)
def test_what_a_save_means(base: bytes | None, proposed: bytes, saved: bytes, meant: tuple[Choice, bytes]) -> None:
    assert choice_from_save(review(base, proposed), saved) == meant


def test_a_persons_text_gets_the_encoding_and_line_ends_of_the_file() -> None:
    one = review(b"\xef\xbb\xbfa\r\nb\r\n", b"\xef\xbb\xbfA\r\nb\r\n")
    assert encode_for(one, "mine\nb\n") == b"\xef\xbb\xbfmine\r\nb\r\n"
    assert encode_for(one, "mine\r\nb\n") == b"\xef\xbb\xbfmine\r\nb\n"


@pytest.mark.parametrize(
    ("proposed", "saved"),
    [
        (b"x\n  \n", b"x\n\n"),
        (b"x\n\n  ", b"x\n\n"),
        (b"x\n\n  ", b"x\n\n\n"),
        (b"x\n\r", b"x\n\n"),
        (b"x\n\xe2\x80\xa8\n", b"x\n\n"),
    ],
)
def test_an_editor_that_tidies_up_the_end_of_a_proposal_does_not_approve_it(proposed: bytes, saved: bytes) -> None:
    assert choice_from_save(review(proposed=proposed), saved) == (Choice.REVISE, saved)


def test_one_more_empty_line_approves_a_proposal_that_ends_with_blanks() -> None:
    assert choice_from_save(review(proposed=b"x\n  \n"), b"x\n  \n\n")[0] is Choice.APPROVE
