"""The use cases of review: an agent proposes and commits, a person looks and decides; each review ends once."""

import logging
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from holdfast.call import Call
from holdfast.changes.disk.files import error_from_os
from holdfast.changes.model import ChangeKind, Plan, PlanStatus, is_beneath
from holdfast.changes.service import Changes, WriteResult
from holdfast.clock import utc_in, utc_now
from holdfast.config.settings import ReviewSettings
from holdfast.errors import (
    Conflict,
    EditRejected,
    HoldfastError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    QuotaExceeded,
)
from holdfast.folders.service import Folders
from holdfast.review.apply import Applied, content_of
from holdfast.review.decide import Moment, by_save, decided
from holdfast.review.model import Action, Channel, Decision, Listed, Review, Verdict, as_text, request_of
from holdfast.review.notifications import News
from holdfast.review.ports import Presenter, ReviewBook
from holdfast.review.present import Presenters
from holdfast.review.sessions import Sessions
from holdfast.review.watch import Watcher
from holdfast.text.decode import round_trips
from holdfast.text.diff import Hunk, compute_hunks
from holdfast.text.display import escape_lines
from holdfast.text.edit import Edit, EditLimits
from holdfast.text.edit_text import edit_bytes

_log = logging.getLogger(__name__)
_REJECTION_STANDS_SECONDS = 60.0
"""A client that asks its user repeats the call; meanwhile the person may have rejected the same proposal elsewhere."""
_MAX_SAVED_BYTES = 50_000_000
_MAX_OPEN = 500


@dataclass(frozen=True, slots=True)
class Shown:
    """A review as a person sees it: both texts, the hunks between them, and the hash that an approval names."""

    review: Review
    before: str
    after: str
    hunks: tuple[Hunk, ...]


class Reviews:
    """All reviews of this machine. Call `recover()` once before the first use and `close()` at the end.

    Whoever waits for a decision listens to `news` and asks again.
    """

    def __init__(
        self,
        book: ReviewBook,
        changes: Changes,
        sessions: Sessions,
        settings: ReviewSettings,
        presenters: Sequence[Presenter] = (),
    ) -> None:
        self._book = book
        self._changes = changes
        self._sessions = sessions
        self._presenters = Presenters(presenters)
        self._lock = threading.RLock()
        self._asked_in_vain: set[str] = set()
        self._watcher = Watcher(
            sessions, saves=settings.channels.vscode, saved=self._take_save, expired=self._expire_by_id
        )
        self.settings = settings
        self.news = News()
        self.is_ending = False

    def recover(self) -> None:
        """Bring directories and database into agreement and go on watching what was open."""
        self._sessions.sweep(self._book.sweep())
        for listed in self._book.listed(None, -1, None):
            review = self._book.find(listed.id)
            if review is None:
                continue
            try:
                self._sessions.restore(review)
            except OSError as error:
                _log.warning("review %s has no directory: %s", review.id, type(error).__name__)
            self._watcher.keep(review, unseen=True)

    def release(self) -> None:
        """Tell everyone who waits that the server is ending; their reviews stay as they are."""
        self.is_ending = True
        self.news.tell("")

    def close(self) -> None:
        """Stop watching, and let go of what was opened."""
        self.release()
        self._watcher.close()
        self._presenters.end()

    def has_pending(self) -> bool:
        """Return whether a person is still to be heard on something."""
        return self._watcher.has_pending()

    def session_path(self, session: str) -> str:
        """Return what agents know a session by."""
        return self._sessions.path_of(session)

    def propose(self, folders: Folders, call: Call, path: str, edits: Sequence[Edit]) -> Review:
        """Validate edits as an edit would, keep them and show them to the person; the file stays as it is.

        An equal proposal that is open is that one; a failure leaves nothing behind.
        """
        drafted = self._changes.draft(folders, call, path, edits)
        now = self._moment()
        review = Review(
            id=secrets.token_hex(16),
            session=self._sessions.new_name(),
            path=drafted.path,
            root=drafted.root,
            created_at=now.at,
            expires_at=now.expires_at,
            request=request_of(edits),
            base=drafted.base,
            proposed=drafted.data,
        )
        with self._lock:
            twin = self._book.find_twin(review.twin, utc_in(-_REJECTION_STANDS_SECONDS))
            if twin is not None and not self._has_expired(twin):
                return twin
            self._admit(review)
            self._keep_new(review)
            self._watcher.keep(review)
        self._show(review)
        return self._found(review.id)

    def go_on(self, folders: Folders, call: Call, session_path: str, path: str, edits: Sequence[Edit]) -> Review:
        """Propose again within a review, on the person's last text; the same edits twice count once."""
        review = self.find(folders, session_path, path)
        if review.request == request_of(edits) or review.closed_as is not None:
            return review
        if review.status is not PlanStatus.CREATED:
            raise Conflict(
                "This review is approved or applied already. Call commit_review, or propose anew without session_path."
            )
        if review.answered is None and self.settings.channels.vscode:
            # An editor would show the new text in place of the one that the person is about to approve by a save.
            raise Conflict("The person has not answered yet. Wait, or propose anew without session_path.")
        if any(edit.count != 1 for edit in edits):
            raise InvalidArgument("With session_path every match must occur exactly once.")
        limits = EditLimits(folders.settings.max_match_chars, folders.settings.max_answer_tokens)
        known = review.encoding if round_trips(review.text, review.encoding) else None
        data = edit_bytes(review.text, edits, limits, call.check, known).data
        if data == review.base:
            raise EditRejected(
                "validation_error", "The edits give the file as it is.", "Propose something that changes it."
            )
        after = replace(
            review,
            round=review.round + 1,
            request=request_of(edits),
            proposed=data,
            answered=None,
            decided_by=None,
            decided_at=None,
            reason=None,
            expires_at=self._moment().expires_at,
        )
        with self._lock:
            self._store(review, after)
        self._show(after)
        return self._found(review.id)

    def find(self, folders: Folders, session_path: str, path: str) -> Review:
        """Return a caller's review. NotFound for any session that is not one of this file beneath its roots."""
        name = self._sessions.name_of(session_path)
        review = self._book.find_session(name) if name else None
        if (
            review is None
            or not is_beneath(review.root, folders.jail.allowed_paths)
            or not _names(folders, path, review)
        ):
            raise NotFound("There is no such review of this file. list_reviews shows the open ones.")
        return self._found(review.id) if self._has_expired(review) else review

    def listed(self, folders: Folders, limit: int, before_seq: int | None) -> list[Listed]:
        """Return a caller's open reviews, newest first."""
        return self._book.listed(folders.jail.allowed_paths, limit, before_seq)

    def commit(self, folders: Folders, call: Call, session_path: str, path: str) -> tuple[Applied, WriteResult]:
        """Write an approved text; Conflict, and nothing written, when it is not approved or does not merge."""
        review = self.find(folders, session_path, path)
        if review.status in (PlanStatus.EXECUTED, PlanStatus.UNDONE):
            raise Conflict(f"This review was applied already, as change {review.id}.", change_id=review.id)
        if review.action is not Action.APPROVE:
            raise Conflict(f"This review is not approved: {review.action}. Nothing was written.")
        plan = Plan(review.id, ChangeKind.REVIEW, review.root, (), review.created_at, seq=review.seq)
        applied = Applied(review)
        try:
            written = self._changes.apply_approved(folders, call, plan, review.path, content_of(applied))
        except Conflict as error:
            words = {"user_action": Action.CONFLICT.value, "session_path": session_path}
            raise Conflict(error.message, **{**error.details, **words}) from None
        self._end(review)
        self._book.forget(review.id)
        return applied, written

    def current(self, review_id: str) -> Review:
        """Return a review as it stands now."""
        review = self._found(review_id)
        return self._found(review_id) if self._has_expired(review) else review

    def may_ask(self, review: Review) -> bool:
        """Return whether a client may ask its user; not again when that user would not answer."""
        return self.settings.channels.elicitation and review.shown_hash not in self._asked_in_vain

    def asked_in_vain(self, review: Review) -> None:
        """Remember that a client's user closed the question without an answer."""
        self._asked_in_vain.add(review.shown_hash)

    def readable_diff(self, review: Review) -> str:
        """Return the hunks of what a review would write, with nothing in them that could deceive a reader."""
        found = compute_hunks(as_text(review.base, review.encoding), as_text(review.text, review.encoding))
        return "".join("\n".join([hunk.header.rstrip(), *escape_lines(hunk.body), ""]) for hunk in found)

    def pending(self) -> list[Listed]:
        """Return every open review for the person, newest first."""
        return self._book.listed(None, -1, None)

    def show(self, review_id: str) -> Shown:
        """Return a review as a person sees it. NotFound when there is none of that id, or it is over."""
        review = self._found(review_id)
        if not review.is_open or self._has_expired(review):
            raise NotFound(f"The review {review_id} is over.")
        before, after = as_text(review.base, review.encoding), as_text(review.text, review.encoding)
        return Shown(review, before, after, tuple(compute_hunks(before, after)))

    def decide(self, review_id: str, verdict: Verdict) -> Review:
        """Take a person's word. The first one wins: Conflict when it comes second, or for something else than shown."""
        if not getattr(self.settings.channels, verdict.channel.value):
            raise PermissionDenied(
                f"The channel {verdict.channel} is switched off (review.channels.{verdict.channel})."
            )
        with self._lock:
            review = self._found(review_id)
            if self._has_expired(review):
                raise Conflict(f"The review {review_id} has expired.")
            after = decided(review, verdict, self._moment())
            self._store(review, after, is_on_disk=verdict.channel is Channel.VSCODE)
        if after.status is not PlanStatus.CREATED:
            self._presenters.close(review_id)
        return after

    def _admit(self, review: Review) -> None:
        """Refuse more reviews of one allowed directory than a person could look at; the caller holds the lock."""
        if self._watcher.count(review.root) >= _MAX_OPEN:
            raise QuotaExceeded(
                f"{_MAX_OPEN} reviews are open in {review.root} already. Wait until the user has decided on some."
            )

    def _keep_new(self, review: Review) -> None:
        with _told(review.path):
            self._sessions.make(review)
        try:
            self._book.add(review)
        except BaseException:
            self._sessions.remove(review.session)
            raise

    def _store(self, before: Review, after: Review, *, is_on_disk: bool = False) -> None:
        """Store what a review became, and put its text where an editor shows it; the caller holds the lock."""
        rewrites = after.is_open and after.text != before.text and not is_on_disk
        if rewrites:
            with _told(before.path):
                self._sessions.restore(before)
                self._sessions.prepare(after)
        if not self._book.replace(before, after):
            raise Conflict("Somebody else decided on this review at the same moment. Look at it again.")
        if rewrites:
            self._sessions.publish(after)
        if after.closed_as is not None:
            self._sessions.remove(after.session)
        self._watcher.keep(after)
        self.news.tell(after.id)

    def _take_save(self, review_id: str) -> bool:
        """Look at what a person may have saved; False when it has to be looked at again."""
        try:
            with self._lock:
                review = self._found(review_id)
                saved = self._sessions.saved(review, _MAX_SAVED_BYTES)
                if saved is None or saved == review.text:
                    return saved is not None
                self.decide(review_id, _verdict_of_save(review, saved))
        except HoldfastError as error:
            _log.info("a save of review %s was not taken: %s", review_id, error.code)
        return True

    def _expire_by_id(self, review_id: str) -> None:
        review = self._book.find(review_id)
        if review is None or not review.is_open:
            self._watcher.drop(review_id)
        else:
            self._has_expired(review)

    def _has_expired(self, review: Review) -> bool:
        """Close a review whose time is over; returns whether it was."""
        if not review.is_open or review.expires_at > utc_now():
            return False
        with self._lock:
            if self._book.replace(review, review.closed(Action.EXPIRED)):
                self._end(review)
        return True

    def _end(self, review: Review) -> None:
        """Tidy up after a review that is over."""
        self._sessions.remove(review.session)
        self._watcher.drop(review.id)
        self._presenters.close(review.id)
        self.news.tell(review.id)

    def _show(self, review: Review) -> None:
        self._presenters.show(review.id, self._sessions.current(review), self._sessions.future(review))

    def _found(self, review_id: str) -> Review:
        review = self._book.find(review_id)
        if review is None:
            raise NotFound(f"There is no review {review_id!r}.")
        return review

    def _moment(self) -> Moment:
        return Moment(utc_now(), utc_in(self.settings.expires_hours * 3600.0))


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Turn an error of the system into one that the caller understands."""
    try:
        yield
    except OSError as error:
        raise (error_from_os(error, path) or error) from None


def _names(folders: Folders, path: str, review: Review) -> bool:
    try:
        with folders.jail.place(path, follow=True) as place:
            return place.path == review.path
    except HoldfastError:
        return False


def _verdict_of_save(review: Review, saved: bytes) -> Verdict:
    decision, text = by_save(review, saved)
    if decision is Decision.APPROVE and text == review.base:
        return Verdict(Decision.REJECT, Channel.VSCODE, reason="The person put the original text back.")
    return Verdict(decision, Channel.VSCODE, text=text)
