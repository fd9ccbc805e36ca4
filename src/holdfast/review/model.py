"""Pure: what a review is: a proposed change of one file, what a person said to it, and where it stands."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256

from holdfast.changes.model import PlanStatus
from holdfast.text.decode import UTF8, Encoding, decode, detect_encoding
from holdfast.text.edit import Edit


class Action(StrEnum):
    """Where a review stands, in the words that agents are told."""

    APPROVE = "APPROVE"
    REVIEW = "REVIEW"
    REJECT = "REJECT"
    PENDING = "PENDING"
    CONFLICT = "CONFLICT"
    EXPIRED = "EXPIRED"


class Decision(StrEnum):
    """What a person may say."""

    APPROVE = "approve"
    REVISE = "revise"
    REJECT = "reject"


class Channel(StrEnum):
    """The ways to a person; each can be switched off."""

    CONSOLE = "console"
    TERMINAL = "terminal"
    ELICITATION = "elicitation"
    VSCODE = "vscode"


@dataclass(frozen=True, slots=True)
class Review:
    """A plan of kind `review` and what a plan does not have.

    `status` is the plan's: CREATED while a person or the agent has the word, APPROVED, RUNNING or FAILED
    until it is applied.
    `answered` is the person's last text of this round. Texts are let go when a review ends; `closed_as` says why it
    ended without being applied. `version` counts every change of the row.
    """

    id: str
    session: str
    path: str
    root: str
    created_at: str
    expires_at: str
    request: str
    base: bytes | None
    proposed: bytes
    seq: int = 0
    status: PlanStatus = PlanStatus.CREATED
    version: int = 1
    round: int = 1
    answered: bytes | None = None
    decided_by: str | None = None
    decided_at: str | None = None
    reason: str | None = None
    closed_as: Action | None = None

    @property
    def text(self) -> bytes:
        """Return what the review is about now: the person's last text, else the proposal."""
        return self.proposed if self.answered is None else self.answered

    @property
    def action(self) -> Action:
        """Return where it stands; one that was applied counts as approved."""
        return action_of(self.status, self.closed_as, has_answer=self.answered is not None)

    @property
    def is_open(self) -> bool:
        """Return whether somebody can still do something with it."""
        return is_open(self.status, self.closed_as)

    @property
    def twin(self) -> str:
        """Return what two equal proposals have in common: root, file, what it held, and what it is to hold."""
        return _digest(self.root, self.path, _hash(self.base), _hash(self.proposed))

    @property
    def shown_hash(self) -> str:
        """Return the hash that an approval binds to: everything that a person is shown to decide on."""
        return _digest(self.id, self.path, _hash(self.base), _hash(self.text))

    @property
    def encoding(self) -> Encoding:
        """Return how the file's text is stored."""
        return detect_encoding(self.base or b"") or UTF8

    def closed(self, action: Action) -> "Review":
        """Return the review as it ended, without its texts."""
        status = self.status if self.status is PlanStatus.FAILED else PlanStatus.CANCELLED
        return replace(self, closed_as=action, status=status, base=None, proposed=b"", answered=None)


@dataclass(frozen=True, slots=True)
class Listed:
    """A review in a list, without its texts."""

    seq: int
    id: str
    session: str
    path: str
    root: str
    action: Action
    round: int
    created_at: str
    expires_at: str
    decided_by: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a person said by a channel. `text` or `hunks` say what exactly is approved or wanted instead.

    `shown_hash` is that of what the person was shown.
    """

    decision: Decision
    channel: Channel
    shown_hash: str | None = None
    text: bytes | None = None
    hunks: tuple[int, ...] | None = None
    reason: str | None = None


def action_of(status: PlanStatus, closed_as: Action | None, *, has_answer: bool) -> Action:
    """Return where a review stands."""
    if closed_as is not None:
        return closed_as
    if status is PlanStatus.CREATED:
        return Action.REVIEW if has_answer else Action.PENDING
    return Action.EXPIRED if status is PlanStatus.CANCELLED else Action.APPROVE


def is_open(status: PlanStatus, closed_as: Action | None) -> bool:
    """Return whether a review has neither been applied nor closed."""
    return closed_as is None and status in (
        PlanStatus.CREATED,
        PlanStatus.APPROVED,
        PlanStatus.RUNNING,
        PlanStatus.FAILED,
    )


def as_text(data: bytes | None, encoding: Encoding) -> str:
    """Return bytes of a review as text; what the encoding cannot read is shown by a mark."""
    return "" if data is None else decode(data, encoding, errors="replace")


def request_of(edits: Sequence[Edit]) -> str:
    """Return what two equal requests have in common."""
    return _digest(*(part for edit in edits for part in (edit.old, edit.new, str(edit.count))))


def _hash(data: bytes | None) -> str:
    return "" if data is None else sha256(data).hexdigest()


def _digest(*parts: str) -> str:
    framed = "\0".join(f"{len(part)}:{part}" for part in parts)
    return sha256(framed.encode("utf-8", "surrogateescape")).hexdigest()
