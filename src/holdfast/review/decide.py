"""Pure: applies a person's decision to a review, and derives one from a save in an editor."""

from holdfast.errors import Conflict, InvalidArgument
from holdfast.review.model import UNDECIDED_STATES, Channel, Choice, Decision, Review, ReviewKind, ReviewState, as_text
from holdfast.text.decode import decode
from holdfast.text.diff import apply_hunks, compute_hunks
from holdfast.text.edit import encode_text

MAX_REASON_CHARS = 20_000
_NOUNS = {
    ReviewKind.EDIT: "change of a text",
    ReviewKind.MOVE: "move",
    ReviewKind.DELETE: "deletion",
    ReviewKind.CREATE_DIRECTORY: "new directory",
    ReviewKind.UNDO: "change that is to be undone",
}


def decide(review: Review, decision: Decision, now: str, expires_at: str) -> Review:
    """Return the review after a decision. Conflict when it is decided already or is not what was shown.

    It stays open until `expires_at`.
    """
    if review.state not in UNDECIDED_STATES:
        raise Conflict(f"This review is decided already: {review.action}.")
    if decision.shown_hash is not None and decision.shown_hash != review.shown_hash:
        raise Conflict("This review has changed since it was shown. Look at it again.")
    if len(decision.reason or "") > MAX_REASON_CHARS:
        raise InvalidArgument(f"reason is longer than {MAX_REASON_CHARS} characters.")
    if review.path_change is not None and (decision.text is not None or decision.hunks is not None):
        raise InvalidArgument(f"This review is of a {_NOUNS[review.kind]}, which is approved or rejected as a whole.")
    decision_fields = {"decided_by": decision.channel.value, "decided_at": now, "reason": decision.reason or None}
    if decision.choice is Choice.REJECT:
        return review.become(ReviewState.REJECTED, **decision_fields)
    new_text = _given_text(review, decision)
    text = review.text if new_text is None else new_text
    if decision.choice is Choice.REVISE:
        if new_text is None and not decision.reason:
            raise InvalidArgument("A revision needs a text or a reason.")
        return review.become(ReviewState.CHANGES_REQUESTED, answered=text, expires_at=expires_at, **decision_fields)
    if decision.shown_hash is None and decision.text is None:
        raise InvalidArgument("An approval needs shown_hash, the hash of what was shown.")
    if text == review.base:
        raise InvalidArgument("The approved text is the file as it is: reject the change instead.")
    return review.become(ReviewState.APPROVED, answered=text, expires_at=expires_at, **decision_fields)


def decision_from_save(review: Review, saved: bytes) -> Decision:
    """Return the decision that a save in an editor stands for; approving the original text rejects the change."""
    choice, text = choice_from_save(review, saved)
    if choice is Choice.APPROVE and text == review.base:
        return Decision(Choice.REJECT, Channel.VSCODE, reason="The person put the original text back.")
    return Decision(choice, Channel.VSCODE, text=text)


def choice_from_save(review: Review, saved: bytes) -> tuple[Choice, bytes]:
    r"""Return whether a save approves or asks for a revision, and the text that it stands for.

    A save approves when it ends with an empty line and has more line ends at its end than the proposal had; the extra
    ones are the person's sign and not part of the text, which ends as the original does. Any other save asks for a
    revision, also one in which the editor only tidied up blanks or line ends at the end of the proposal.
    """
    encoding = review.encoding
    try:
        text = decode(saved, encoding)
    except UnicodeDecodeError:
        return Choice.REVISE, saved
    plain, proposed = _with_line_feeds(text), _with_line_feeds(as_text(review.proposed, encoding))
    extra = _count_final_line_feeds(plain) - _count_final_line_feeds(proposed)
    if not plain.endswith("\n\n") or extra <= (not proposed.endswith("\n")):
        return Choice.REVISE, saved
    body = text.rstrip("\r\n")
    endings = [_line_ends_at_end(as_text(data, encoding)) for data in (review.base or review.proposed, review.proposed)]
    texts = [encode_text(body + ending, encoding) for ending in endings]
    # Where only the end of the file was to change, ending as the original does would undo the proposal.
    return Choice.APPROVE, texts[1] if texts[0] == review.base else texts[0]


def encode_for(review: Review, text: str) -> bytes:
    """Return a person's text as the file stores it: its encoding, and its line ends where the text has plain ones."""
    present = as_text(review.text, review.encoding)
    if "\r\n" not in text and 2 * present.count("\r\n") > present.count("\n"):
        text = text.replace("\n", "\r\n")
    return encode_text(text, review.encoding)


def _given_text(review: Review, decision: Decision) -> bytes | None:
    """Return the text that the person gave, or the one that the chosen hunks make; None for the text as shown."""
    if decision.hunks is None:
        return decision.text
    if decision.text is not None or decision.choice is not Choice.APPROVE:
        raise InvalidArgument("hunks can only be given with an approval, and not together with a text.")
    before, after = as_text(review.base, review.encoding), as_text(review.text, review.encoding)
    unknown = set(decision.hunks) - {hunk.hash for hunk in compute_hunks(before, after)}
    if not decision.hunks or unknown:
        raise InvalidArgument(f"hunks are named by the hashes that show_review gives: {sorted(unknown)}")
    return encode_text(apply_hunks(before, after, decision.hunks), review.encoding)


def _with_line_feeds(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _count_final_line_feeds(text: str) -> int:
    return text.count("\n", len(text.rstrip()))


def _line_ends_at_end(text: str) -> str:
    return text[len(text.rstrip("\r\n")) :]
