"""Pure: what a person's word makes of a review, and what saving a file in an editor means."""

from dataclasses import dataclass, replace

from holdfast.changes.model import PlanStatus
from holdfast.errors import Conflict, InvalidArgument
from holdfast.review.model import Action, Decision, Review, Verdict, as_text
from holdfast.text.decode import decode
from holdfast.text.diff import apply_hunks, compute_hunks
from holdfast.text.edit_text import encode_text

MAX_REASON_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Moment:
    """When something was said, and until when the review stays open because of it."""

    at: str
    expires_at: str


def decided(review: Review, verdict: Verdict, now: Moment) -> Review:
    """Return the review after a person's word. Conflict when it is decided already or is not what was shown."""
    if review.status is not PlanStatus.CREATED or review.closed_as is not None:
        raise Conflict(f"This review is decided already: {review.action}.")
    if verdict.shown_hash is not None and verdict.shown_hash != review.shown_hash:
        raise Conflict("This review has changed since it was shown. Look at it again.")
    if len(verdict.reason or "") > MAX_REASON_CHARS:
        raise InvalidArgument(f"reason is longer than {MAX_REASON_CHARS} characters.")
    said = replace(review, decided_by=verdict.channel.value, decided_at=now.at, reason=verdict.reason or None)
    if verdict.decision is Decision.REJECT:
        return said.closed(Action.REJECT)
    text = _wanted(review, verdict)
    if verdict.decision is Decision.REVISE:
        if text is None and not verdict.reason:
            raise InvalidArgument("A revision needs a text or a reason.")
        return replace(said, answered=review.text if text is None else text, expires_at=now.expires_at)
    if verdict.shown_hash is None and verdict.text is None:
        raise InvalidArgument("An approval needs shown_hash, the hash of what was shown.")
    approved = review.text if text is None else text
    if approved == review.base:
        raise InvalidArgument("The approved text is the file as it is: reject the change instead.")
    return replace(said, answered=approved, status=PlanStatus.APPROVED, expires_at=now.expires_at)


def by_save(review: Review, saved: bytes) -> tuple[Decision, bytes]:
    r"""Return what a save in an editor means, and the text that it stands for.

    One that ends with an empty line and has more line ends at its end than the proposal had approves; the extra ones
    are the person's sign and not part of the text, which ends as the original does. Any other save asks for a revision,
    also one in which only the editor tidied up blanks, line ends or a missing last one at the end of the proposal.
    """
    encoding = review.encoding
    try:
        text = decode(saved, encoding)
    except UnicodeDecodeError:
        return Decision.REVISE, saved
    plain, proposed = _lf(text), _lf(as_text(review.proposed, encoding))
    if not (plain.endswith("\n\n") and _ends(plain) > _ends(proposed) + (not proposed.endswith("\n"))):
        return Decision.REVISE, saved
    body = text.rstrip("\r\n")
    endings = [_end_of(as_text(model, encoding)) for model in (review.base or review.proposed, review.proposed)]
    texts = [encode_text(body + ending, encoding) for ending in endings]
    # Where only the end of the file was to change, ending as the original does would undo the proposal.
    return Decision.APPROVE, texts[1] if texts[0] == review.base else texts[0]


def _wanted(review: Review, verdict: Verdict) -> bytes | None:
    if verdict.hunks is None:
        return verdict.text
    if verdict.text is not None or verdict.decision is not Decision.APPROVE:
        raise InvalidArgument("hunks go with an approval without a text of its own.")
    before, after = as_text(review.base, review.encoding), as_text(review.text, review.encoding)
    count = len(compute_hunks(before, after))
    wrong = [number for number in verdict.hunks if not 1 <= number <= count]
    if wrong or not verdict.hunks:
        raise InvalidArgument(f"hunks are numbers from 1 to {count}: {list(verdict.hunks)}")
    return encode_text(apply_hunks(before, after, verdict.hunks), review.encoding)


def encoded(review: Review, text: str) -> bytes:
    """Return a person's text as the file stores it: its encoding, and its line ends where the text has plain ones."""
    present = as_text(review.text, review.encoding)
    if "\r\n" not in text and 2 * present.count("\r\n") > present.count("\n"):
        text = text.replace("\n", "\r\n")
    return encode_text(text, review.encoding)


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _ends(text: str) -> int:
    return text.count("\n", len(text.rstrip()))


def _end_of(text: str) -> str:
    return text[len(text.rstrip("\r\n")) :]
