"""Proposes, lists and commits reviews for an agent."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.auth.context import UNKNOWN_CLIENT, ClientInfo
from holdfast.call import Call
from holdfast.changes.disk.policy_gate import hides_any
from holdfast.changes.model import Plan, is_beneath
from holdfast.changes.path_change import PathChange
from holdfast.changes.service import Changes, WriteResult
from holdfast.changes.single.content import EditPreview
from holdfast.clock import utc_in, utc_now
from holdfast.errors import Conflict, EditRejected, HoldfastError, InvalidArgument, NotFound, QuotaExceeded
from holdfast.folders.access.jail import Jail
from holdfast.folders.service import Folders
from holdfast.review.model import (
    CHANGE_KINDS,
    UNDECIDED_STATES,
    Review,
    ReviewState,
    ReviewSummary,
    UserAction,
    as_text,
    request_hash,
    review_of,
)
from holdfast.review.records import ReviewRecords
from holdfast.text.budget import visible_rows
from holdfast.text.decode import decode, detect_encoding, round_trips
from holdfast.text.diff import unified_diff
from holdfast.text.edit import OVERWRITE, Edit, EditLimits, edit_bytes, encode_text
from holdfast.text.merge import merge

_REJECTION_STANDS_SECONDS = 60.0
"""A client that asks its user repeats the call; meanwhile the person may have rejected the same proposal elsewhere."""
_MAX_OPEN = 500


class CommitContent:
    """What commit_review writes: the approved text, or its merge with what happened to the file since the proposal.

    `merged` is set when the file had changed.
    """

    def __init__(self, review: Review) -> None:
        self.review = review
        self.merged: bytes | None = None

    def choose(self, present: bytes | None) -> bytes:
        """Return what to write, given the file's present bytes. Conflict when the two changes do not merge."""
        review = self.review
        if present == review.base:
            return review.text
        if present == review.text:
            self.merged = review.text
        else:
            self.merged = _merge(review, present)
        if self.merged is None:
            raise Conflict(
                f"{review.path} has changed since it was proposed, and the changes do not merge. Nothing was written.",
                hint="Read the file again and propose the change again, without session_path.",
            )
        return self.merged

    @property
    def merged_diff(self) -> str:
        """Return how the written text differs from the approved one, empty when it does not."""
        if self.merged is None:
            return ""
        encoding = self.review.encoding
        written = as_text(self.merged, detect_encoding(self.merged) or encoding)
        return unified_diff(as_text(self.review.text, encoding), written, self.review.path)


@dataclass(frozen=True, slots=True)
class Committed:
    """An approved change that was made: for a text what was written, and how that differs from what was approved."""

    review: Review
    merged_diff: str
    written: WriteResult | None


class AgentReviews:
    """The reviews beneath the roots of an agent; any other review does not exist for it."""

    def __init__(self, records: ReviewRecords, changes: Changes) -> None:
        self._records = records
        self._changes = changes

    def propose(
        self,
        folders: Folders,
        call: Call,
        path: str,
        edits: Sequence[Edit],
        *,
        expected_hash: str | None = None,
        note: str = "",
    ) -> Review:
        """Validate edits as an edit would, keep them and show them to the person; the file stays as it is.

        An equal proposal that is open, or was just rejected, is returned instead; a failure leaves nothing behind.
        """
        preview = self._changes.preview_edit(folders, call, path, edits, expected_hash=expected_hash)
        return self._open(preview, request_hash(edits), call.caller.client, note)

    def propose_write(self, folders: Folders, call: Call, path: str, content: str) -> Review:
        """Propose the whole content of a file, as `propose` does for edits."""
        preview = self._changes.preview_write(folders, call, path, content)
        return self._open(preview, request_hash([Edit(OVERWRITE, content)]), call.caller.client)

    def propose_path_change(self, change: PathChange, client: ClientInfo = UNKNOWN_CLIENT) -> Review:
        """Propose a move, a deletion, new directories or an undo, as `propose` does for edits."""
        records = self._records
        review = review_of(
            change,
            id_=secrets.token_hex(16),
            session=records.sessions.new_name(),
            created_at=utc_now(),
            expires_at=utc_in(records.settings.expires_hours * 3600.0),
            client=client,
        )
        return self._add(review)

    def _open(self, preview: EditPreview, request: str, client: ClientInfo, note: str = "") -> Review:
        records = self._records
        review = Review(
            id=secrets.token_hex(16),
            session=records.sessions.new_name(),
            path=preview.path,
            root=preview.root,
            created_at=utc_now(),
            expires_at=utc_in(records.settings.expires_hours * 3600.0),
            request=request,
            base=preview.base,
            proposed=preview.data,
            directory=preview.directory,
            note=note,
            client=client,
        )
        return self._add(review)

    def _add(self, review: Review) -> Review:
        """Keep and show a new review; an equal one that is open, or was just rejected, is returned instead."""
        records = self._records
        with records.lock:
            equal = records.book.find_equal_proposal(review.proposal_hash, utc_in(-_REJECTION_STANDS_SECONDS))
            if equal is not None and not records.expire_if_due(equal):
                return equal
            self._check_room(review)
            records.add(review)
        records.present(review)
        return records.load(review.id)

    def propose_again(
        self, folders: Folders, call: Call, session_path: str, path: str, edits: Sequence[Edit], note: str = ""
    ) -> Review:
        """Propose again within a review, on the person's last text; the same edits twice count once."""
        records = self._records
        review = self.find(folders, session_path, path)
        if review.path_change is not None:
            raise InvalidArgument(
                f"This review is no edit: {review.kind} {review.path}. To go on waiting, give path and session_path alone."
            )
        if review.request == request_hash(edits) or review.state in (ReviewState.REJECTED, ReviewState.EXPIRED):
            return review
        if review.state not in UNDECIDED_STATES:
            raise Conflict(
                "This review is already approved or committed. Call commit_review, or propose again without session_path."
            )
        if review.state is ReviewState.PENDING and records.settings.channels.vscode:
            # An editor would show the new text in place of the one that the person is about to approve by a save.
            raise Conflict("The person has not answered yet. Wait, or propose again without session_path.")
        if any(edit.count != 1 for edit in edits):
            raise InvalidArgument("With session_path every match must occur exactly once.")
        limits = EditLimits(folders.settings.max_match_chars, folders.settings.max_answer_tokens)
        encoding = review.encoding if round_trips(review.text, review.encoding) else None
        data = edit_bytes(review.text, edits, limits, call.check, encoding).data
        if data == review.base:
            raise EditRejected(
                "validation_error", "The edits do not change the file.", "Propose something that changes it."
            )
        after = review.become(
            ReviewState.PENDING,
            round=review.round + 1,
            request=request_hash(edits),
            proposed=data,
            answered=None,
            decided_by=None,
            decided_at=None,
            note=note,
            expires_at=utc_in(records.settings.expires_hours * 3600.0),
        )
        with records.lock:
            self._check_room(after, replaced_bytes=review.size_bytes)
            records.save(review, after)
        records.present(after)
        return records.load(review.id)

    def find(self, folders: Folders, session_path: str, path: str) -> Review:
        """Return a caller's review. NotFound for any session that is not one of this file beneath its roots."""
        session = self._records.sessions.name_of(session_path)
        review = self._records.book.find_by_session(session) if session else None
        if review is None or not _is_visible(folders, review) or not _is_path(folders, path, review):
            raise NotFound("There is no such review of this file. list_reviews shows the open ones.")
        return self._records.load(review.id) if self._records.expire_if_due(review) else review

    def list_open(self, folders: Folders, limit: int, before_seq: int | None) -> list[ReviewSummary]:
        """Return a caller's open reviews, newest first."""
        jail = folders.jail
        return visible_rows(
            lambda before: self._records.book.list_open(jail.allowed_paths, limit, before),
            lambda review: not hides_any(jail, (review.path, review.dest_path)),
            limit,
            before_seq,
        )

    def session_path(self, session: str) -> str:
        """Return the path that agents know a session by."""
        return self._records.sessions.path_of(session)

    def commit(self, folders: Folders, call: Call, session_path: str, path: str) -> Committed:
        """Make an approved change. Conflict, and nothing changed, when it is not approved, or cannot be made as approved."""
        return self.apply(folders, call, self.find(folders, session_path, path))

    def apply(self, folders: Folders, call: Call, review: Review) -> Committed:
        """Make an approved change that was looked up before, as `commit` does."""
        session_path = self.session_path(review.session)
        if review.state is ReviewState.COMMITTED:
            raise Conflict(f"This review was already committed, as change {review.id}.", change_id=review.id)
        if review.state is not ReviewState.APPROVED:
            raise Conflict(f"This review is not approved: {review.action}. Nothing was changed.")
        change = review.path_change
        plan = Plan(review.id, CHANGE_KINDS[review.kind], review.root, (), review.created_at, seq=review.seq)
        content = CommitContent(review)
        written = None
        try:
            if change is None:
                written = self._changes.apply_approved(
                    folders.approved(), call, plan, review.path, content.choose, directory=review.directory
                )
            else:
                self._changes.proposals.make_approved(folders, call, plan, change)
        except Conflict as error:
            fields = {"user_action": UserAction.CONFLICT.value, "session_path": session_path}
            raise Conflict(error.message, **{**error.details, **fields}) from None
        self._records.end_committed(review)
        return Committed(review, content.merged_diff, written)

    def _check_room(self, review: Review, replaced_bytes: int = 0) -> None:
        """Raise QuotaExceeded when the open reviews of a root are too many, or their texts take up too much."""
        watcher, limit = self._records.watcher, self._records.settings.max_open_bytes
        if not replaced_bytes and watcher.count(review.root) >= _MAX_OPEN:
            raise QuotaExceeded(
                f"{_MAX_OPEN} reviews are open in {review.root} already. Wait until the user has decided on some."
            )
        needed = watcher.size_bytes(review.root) - replaced_bytes + review.size_bytes
        if needed > limit:
            raise QuotaExceeded(
                f"The open reviews of {review.root} would take up {needed} bytes; the limit is {limit}. Wait until the user "
                "has decided on some: `holdfast review` lists them, and rejecting one frees its room. The limit is the "
                "setting review.max_open_bytes."
            )


def _is_visible(folders: Folders, review: Review) -> bool:
    """Return whether a review is beneath the caller's roots, and of no path that is hidden from it."""
    change = review.path_change
    roots = [root for root in (review.root, None if change is None else change.dest_root) if root]
    is_within = all(is_beneath(root, folders.jail.allowed_paths) for root in roots)
    return is_within and not hides_any(folders.jail, (review.path, review.dest_path))


def _is_path(folders: Folders, path: str, review: Review) -> bool:
    """Return whether a path names what a review is about; what moves or goes need not be there any more."""
    try:
        if review.path_change is not None:
            return _real_path(folders.jail, path) == review.path
        with folders.jail.place(path, follow=True) as place:
            return place.path == review.path
    except HoldfastError:
        return False


def _real_path(jail: Jail, path: str) -> str:
    """Return a path with the links above its last name resolved; below a missing directory it is taken as written."""
    head = jail.absolute(path)
    tail: list[str] = []
    while True:
        try:
            with jail.place(head, follow=False) as place:
                return "/".join([place.path, *reversed(tail)])
        except NotFound:
            head, _, name = head.rpartition("/")
            tail.append(name)


def _merge(review: Review, present: bytes | None) -> bytes | None:
    """Return the merge in the encoding that the file has now, None when there is none."""
    encoding = None if present is None else detect_encoding(present)
    if present is None or encoding is None or review.base is None:
        return None
    try:
        base, approved = decode(review.base, review.encoding), decode(review.text, review.encoding)
        text = merge(base, approved, decode(present, encoding))
        return None if text is None else encode_text(text, encoding)
    except (UnicodeDecodeError, EditRejected):
        return None
