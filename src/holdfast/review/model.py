"""Pure: what a review is: a proposed change, what the person decided, and the states it goes through."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from typing import Any

from holdfast.auth.context import UNKNOWN_CLIENT, ClientInfo
from holdfast.changes.model import ChangeKind, PlanStatus
from holdfast.changes.path_change import PathChange
from holdfast.text.decode import UTF8, Encoding, decode, detect_encoding
from holdfast.text.diff import compute_hunks
from holdfast.text.edit import Edit


class ReviewKind(StrEnum):
    """What a review is about, in the word that person and agent are told."""

    EDIT = "edit"
    """The text of one file, also one that is to be created; every other kind proposes no text."""
    MOVE = "move"
    DELETE = "delete"
    CREATE_DIRECTORY = "create_directory"
    UNDO = "undo"


MAX_NOTE_CHARS = 500
"""Longest reason that an agent may give with a proposal."""

CHANGE_KINDS: Mapping[ReviewKind, ChangeKind] = {
    ReviewKind.EDIT: ChangeKind.REVIEW,
    ReviewKind.MOVE: ChangeKind.MOVE,
    ReviewKind.DELETE: ChangeKind.DELETE,
    ReviewKind.CREATE_DIRECTORY: ChangeKind.MKDIR,
    ReviewKind.UNDO: ChangeKind.UNDO,
}
"""The kind of the change that each review becomes."""

_KINDS = {change_kind: kind for kind, change_kind in CHANGE_KINDS.items()}


def kind_of(change: PathChange | None) -> ReviewKind:
    """Return what a review is about, by its change of paths; None stands for a change of a text."""
    return ReviewKind.EDIT if change is None else _KINDS[change.kind]


class UserAction(StrEnum):
    """The `user_action` that agents are told."""

    APPROVE = "APPROVE"
    REVIEW = "REVIEW"
    REJECT = "REJECT"
    PENDING = "PENDING"
    CONFLICT = "CONFLICT"
    EXPIRED = "EXPIRED"


class ReviewState(StrEnum):
    """Where a review stands; the column `reviews.state`, which every transition writes."""

    PENDING = "PENDING"
    """The person has not decided on the proposed text."""
    CHANGES_REQUESTED = "CHANGES_REQUESTED"
    """The person wants another text; the agent may propose again."""
    APPROVED = "APPROVED"
    """commit_review may write the text; a commit that failed leaves this state."""
    COMMITTED = "COMMITTED"
    """The text was written; undoing that change does not open the review again."""
    REJECTED = "REJECTED"
    EXPIRED = "EXPIRED"


TRANSITIONS: Mapping[ReviewState, frozenset[ReviewState]] = {
    ReviewState.PENDING: frozenset(
        {
            ReviewState.PENDING,
            ReviewState.CHANGES_REQUESTED,
            ReviewState.APPROVED,
            ReviewState.REJECTED,
            ReviewState.EXPIRED,
        }
    ),
    ReviewState.CHANGES_REQUESTED: frozenset(
        {
            ReviewState.PENDING,
            ReviewState.CHANGES_REQUESTED,
            ReviewState.APPROVED,
            ReviewState.REJECTED,
            ReviewState.EXPIRED,
        }
    ),
    ReviewState.APPROVED: frozenset({ReviewState.COMMITTED, ReviewState.EXPIRED, ReviewState.REJECTED}),
    ReviewState.COMMITTED: frozenset(),
    ReviewState.REJECTED: frozenset(),
    ReviewState.EXPIRED: frozenset(),
}
"""The states that each state may become. PENDING becomes PENDING when the agent proposes another text, and APPROVED becomes
REJECTED when the person takes the approval back."""

OPEN_STATES = frozenset(state for state, following in TRANSITIONS.items() if following)
UNDECIDED_STATES = frozenset({ReviewState.PENDING, ReviewState.CHANGES_REQUESTED})

_USER_ACTIONS = {
    ReviewState.PENDING: UserAction.PENDING,
    ReviewState.CHANGES_REQUESTED: UserAction.REVIEW,
    ReviewState.APPROVED: UserAction.APPROVE,
    ReviewState.COMMITTED: UserAction.APPROVE,
    ReviewState.REJECTED: UserAction.REJECT,
    ReviewState.EXPIRED: UserAction.EXPIRED,
}


class Choice(StrEnum):
    """What a person may decide."""

    APPROVE = "approve"
    REVISE = "revise"
    REJECT = "reject"


class Channel(StrEnum):
    """The ways to a person; each can be switched off."""

    CONSOLE = "console"
    TERMINAL = "terminal"
    ELICITATION = "elicitation"
    PANEL = "panel"
    VSCODE = "vscode"


@dataclass(frozen=True, slots=True)
class DiffSize:
    """How large a proposed change of a text is: lines added and removed, and hunks; and whether it makes the file."""

    added: int
    removed: int
    hunks: int
    is_new_file: bool = False


@dataclass(frozen=True, slots=True)
class Review:
    """A proposed change. Its id is that of its plan, which becomes the change when it is committed.

    `path_change` is set when it is no change of a text; then `proposed` is the statement of it that a person is shown,
    and there is no `base`. `answered` is the person's last text of this round. A review that has ended has no texts.
    `version` counts the changes of the row. `directory` is the identity of the directory that held the file when it was
    proposed, None for a review of an earlier release. `reason` is what the person said last, also of an earlier round;
    `note` is the agent's reason in its own words, and `client` the program that proposed it.
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
    state: ReviewState = ReviewState.PENDING
    version: int = 1
    round: int = 1
    answered: bytes | None = None
    decided_by: str | None = None
    decided_at: str | None = None
    reason: str | None = None
    directory: str | None = None
    path_change: PathChange | None = None
    note: str = ""
    client: ClientInfo = UNKNOWN_CLIENT

    @property
    def kind(self) -> ReviewKind:
        """Return what the review is about."""
        return kind_of(self.path_change)

    @property
    def dest_path(self) -> str | None:
        """Return where a move, or the undo of one, leads to."""
        return None if self.path_change is None else self.path_change.dest_path

    @property
    def diff_size(self) -> DiffSize | None:
        """Return how much of the file would change; None for what is no text and for a review that has ended."""
        if self.path_change is not None or not self.is_open:
            return None
        before, after = as_text(self.base, self.encoding), as_text(self.text, self.encoding)
        hunks = compute_hunks(before, after)
        lines = [line[:1] for hunk in hunks for line in hunk.body.split("\n")]
        return DiffSize(lines.count("+"), lines.count("-"), len(hunks), self.base is None)

    @property
    def text(self) -> bytes:
        """Return what the review is about now: the person's last text, else the proposal."""
        return self.proposed if self.answered is None else self.answered

    @property
    def size_bytes(self) -> int:
        """Return what its texts take up: the file, and what it would be."""
        return len(self.base or b"") + len(self.text)

    @property
    def action(self) -> UserAction:
        """Return where it stands, in the word that agents are told."""
        return _USER_ACTIONS[self.state]

    @property
    def is_open(self) -> bool:
        """Return whether the review can still be decided or committed."""
        return self.state in OPEN_STATES

    @property
    def proposal_hash(self) -> str:
        """Return what two equal proposals have in common: root, directory, path, what is there, and what it becomes."""
        return _digest(
            self.root, self.path, *self._directory, *self._path_facts, _hash(self.base), _hash(self.proposed)
        )

    @property
    def shown_hash(self) -> str:
        """Return the hash that an approval names: everything that a person is shown to decide on."""
        parts = (str(self.round), self.reason or "", _hash(self.base), _hash(self.text), *filter(None, [self.note]))
        return _digest(self.id, self.path, *self._directory, *self._path_facts, *parts)

    @property
    def _directory(self) -> tuple[str, ...]:
        """Return the inode of the directory: device numbers change when a machine starts."""
        return () if self.directory is None else (self.directory.rpartition(":")[2],)

    @property
    def _path_facts(self) -> tuple[str, ...]:
        """Return what identifies a change of paths beside its path, directory and statement."""
        change = self.path_change
        if change is None:
            return ()
        dest_inode = (change.dest_directory or "").rpartition(":")[2]
        return (change.kind, change.fingerprint, change.dest_path or "", dest_inode, change.undoes or "")

    @property
    def encoding(self) -> Encoding:
        """Return how the file's text is stored."""
        return detect_encoding(self.base or b"") or UTF8

    def become(self, state: ReviewState, **fields: Any) -> "Review":
        """Return the review in another state, without its texts when it has ended. ValueError against TRANSITIONS."""
        if state not in TRANSITIONS[self.state]:
            raise ValueError(f"a review that is {self.state} cannot become {state}")
        after = replace(self, state=state, **fields)
        return after if state in OPEN_STATES else after.without_texts()

    def without_texts(self) -> "Review":
        """Return the review with empty texts."""
        return replace(self, base=None, proposed=b"", answered=None)


@dataclass(frozen=True, slots=True)
class ReviewSummary:
    """A review in a list, without its texts."""

    seq: int
    id: str
    session: str
    path: str
    root: str
    state: ReviewState
    round: int
    created_at: str
    expires_at: str
    decided_by: str | None
    path_change: PathChange | None = None
    """Without its statement."""
    decided_at: str | None = None
    reason: str | None = None
    note: str = ""
    client: ClientInfo = UNKNOWN_CLIENT
    diff_size: DiffSize | None = None
    plan_status: PlanStatus | None = None
    """Of its plan, which is the change once it is committed."""

    @property
    def kind(self) -> ReviewKind:
        """Return what the review is about."""
        return kind_of(self.path_change)

    @property
    def dest_path(self) -> str | None:
        """Return where a move, or the undo of one, leads to."""
        return None if self.path_change is None else self.path_change.dest_path

    @property
    def action(self) -> UserAction:
        """Return where it stands, in the word that agents are told."""
        return _USER_ACTIONS[self.state]


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided by a channel. `text` or `hunks` say what exactly is approved or wanted instead.

    `shown_hash` is that of what the person was shown; `hunks` are named by their hashes.
    """

    choice: Choice
    channel: Channel
    shown_hash: str | None = None
    text: bytes | None = None
    hunks: tuple[str, ...] | None = None
    reason: str | None = None


def review_of(
    change: PathChange,
    *,
    id_: str,
    session: str,
    created_at: str,
    expires_at: str,
    client: ClientInfo = UNKNOWN_CLIENT,
) -> Review:
    """Return a new review of a change of paths."""
    return Review(
        id=id_,
        session=session,
        path=change.path,
        root=change.root,
        created_at=created_at,
        expires_at=expires_at,
        request=change.fingerprint,
        base=None,
        proposed=change.statement.encode("utf-8", "surrogateescape"),
        directory=change.directory,
        path_change=change,
        client=client,
    )


def tidy_note(note: str | None) -> str:
    """Return an agent's reason as one line."""
    return " ".join((note or "").split())


def as_text(data: bytes | None, encoding: Encoding) -> str:
    """Return bytes of a review as text, with U+FFFD for what the encoding cannot read."""
    return "" if data is None else decode(data, encoding, errors="replace")


def request_hash(edits: Sequence[Edit]) -> str:
    """Return what two equal requests have in common."""
    return _digest(*(part for edit in edits for part in (edit.old, edit.new, str(edit.count))))


def _hash(data: bytes | None) -> str:
    return "" if data is None else sha256(data).hexdigest()


def _digest(*parts: str) -> str:
    framed = "\0".join(f"{len(part)}:{part}" for part in parts)
    return sha256(framed.encode("utf-8", "surrogateescape")).hexdigest()
