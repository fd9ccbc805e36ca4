"""Stores reviews and keeps session files, watcher and listeners in step."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from holdfast.auth.context import Caller
from holdfast.bulletin import Bulletin, NewsKind
from holdfast.changes.disk.files import error_from_os
from holdfast.clock import seconds_since, utc_now
from holdfast.config.settings import ReviewSettings
from holdfast.errors import Conflict, NotFound
from holdfast.observe.metrics import Metrics, Reading
from holdfast.review.model import Review, ReviewState
from holdfast.review.ports import Presenter, ReviewTable
from holdfast.review.sessions import Sessions
from holdfast.review.watch import Watcher

_log = logging.getLogger(__name__)

Listener = Callable[[str], None]


def may_elicit(settings: ReviewSettings, caller: Caller) -> bool:
    """Return whether the client of a caller may ask its user for a decision, about a review or about a plan."""
    channels = settings.channels
    return channels.elicitation and (caller.has_own_client or channels.elicitation_over_http)


def may_show_panels(settings: ReviewSettings, caller: Caller) -> bool:
    """Return whether the client of a caller is given the panels, the tools behind them and the tokens that decide there."""
    channels = settings.channels
    is_trusted = caller.has_own_client or channels.panel_over_http
    return channels.panel and is_trusted and caller.client.shows_panels and caller.auth.is_local


class Notifications:
    """Listeners are called with a review's id from whichever thread changed it, and must not wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[object, Listener] = {}

    @contextmanager
    def subscribe(self, listener: Listener) -> Iterator[None]:
        """Have a listener called as long as the block runs."""
        key = object()
        with self._lock:
            self._listeners[key] = listener
        try:
            yield
        finally:
            with self._lock:
                self._listeners.pop(key, None)

    def notify(self, review_id: str) -> None:
        """Say that a review changed; an empty id stands for every review."""
        with self._lock:
            listeners = list(self._listeners.values())
        for listener in listeners:
            listener(review_id)


class ReviewRecords:
    """Every change of a review goes through here, so that record, files, watcher and listeners agree.

    `on_stored` is called after a review was stored or ended. `lock` is held from reading a review until what became of it is saved.
    """

    def __init__(
        self,
        book: ReviewTable,
        sessions: Sessions,
        settings: ReviewSettings,
        presenters: Sequence[Presenter],
        watcher: Watcher,
        on_stored: Callable[[], None] = lambda: None,
        metrics: Metrics | None = None,
        bulletin: Bulletin | None = None,
    ) -> None:
        self.metrics = metrics or Metrics()
        self._bulletin = bulletin or Bulletin()
        self.metrics.watch(Reading.REVIEWS_OPEN, watcher.count_by_state)
        self.book = book
        self.sessions = sessions
        self.settings = settings
        self.watcher = watcher
        self.lock = threading.RLock()
        self.notifications = Notifications()
        self._on_stored = on_stored
        self._presenters = tuple(presenters)
        self._unanswered: dict[str, str] = {}

    def load(self, review_id: str) -> Review:
        """Return a review as it is stored. NotFound when there is none."""
        review = self.book.find(review_id)
        if review is None:
            raise NotFound(f"There is no review {review_id!r}.")
        return review

    def current(self, review_id: str) -> Review:
        """Return a review as it stands now, closed if its time is over."""
        review = self.load(review_id)
        return self.load(review_id) if self.expire_if_due(review) else review

    def add(self, review: Review) -> None:
        """Keep a new review with its files; a failure leaves nothing behind. The caller holds the lock."""
        with _system_errors(review.path):
            self.sessions.make(review)
        try:
            self.book.add(review)
        except BaseException:
            self.sessions.remove(review.session)
            raise
        self.watcher.keep(review)
        self.metrics.review_opened()
        self._on_stored()
        self._tell(NewsKind.REVIEW_OPENED, review)

    def save(self, before: Review, after: Review, *, is_on_disk: bool = False) -> None:
        """Store what a review became, and put its text where an editor shows it. The caller holds the lock.

        Conflict when it is not as `before` any more. `is_on_disk` when the text comes from that file.
        """
        rewrites = after.is_open and after.text != before.text and not is_on_disk
        if rewrites:
            with _system_errors(before.path):
                self.sessions.restore(before)
                self.sessions.prepare(after)
        if not self.book.replace(before, after):
            raise Conflict("This review was decided by someone else at the same time. Look at it again.")
        if rewrites:
            self.sessions.publish(after)
        if after.is_open:
            self.watcher.keep(after)
            self.notifications.notify(after.id)
        else:
            self.end(after)
        self._tell(NewsKind.REVIEW_CHANGED, after)

    def expire_if_due(self, review: Review) -> bool:
        """Close a review whose time is over; return whether it was."""
        if not review.is_open or review.expires_at > utc_now():
            return False
        with self.lock:
            expired = review.become(ReviewState.EXPIRED)
            if self.book.replace(review, expired):
                self.metrics.review_decided("expired", "none", seconds_since(review.created_at))
                self.end(review)
                self._tell(NewsKind.REVIEW_CHANGED, expired)
        return True

    def end_committed(self, review: Review) -> None:
        """End a review whose change was made."""
        self.end(review)
        self._tell(NewsKind.REVIEW_APPLIED, review.become(ReviewState.COMMITTED), change_id=review.id)

    def end(self, review: Review) -> None:
        """Remove the files of a review that has ended, and notify those who wait for it."""
        self.sessions.remove(review.session)
        self.watcher.drop(review.id)
        self._unanswered.pop(review.id, None)
        self.close_presentation(review.id)
        self.notifications.notify(review.id)
        self._on_stored()

    def _tell(self, kind: NewsKind, review: Review, **fields: str) -> None:
        self._bulletin.tell(kind, review_id=review.id, action=review.action.value, round=review.round, **fields)

    def may_ask(self, review: Review, caller: Caller) -> bool:
        """Return whether a caller's client may ask its user; not again about a text that the user gave no answer to."""
        return may_elicit(self.settings, caller) and self._unanswered.get(review.id) != review.shown_hash

    def note_unanswered(self, review: Review) -> None:
        """Remember, as long as the review is open, that a client's user closed the question without an answer."""
        with self.lock:
            if self.load(review.id).is_open:
                self._unanswered[review.id] = review.shown_hash

    def present(self, review: Review) -> None:
        """Show a review in every program of the person that shows two texts beside each other."""
        if review.path_change is not None:
            return
        current, future = self.sessions.current(review), self.sessions.future(review)
        _try_each([partial(presenter.show, review.id, current, future) for presenter in self._presenters])

    def close_presentation(self, review_id: str) -> None:
        """Tell every program of the person that a review is decided."""
        _try_each([partial(presenter.close, review_id) for presenter in self._presenters])

    def end_presentations(self) -> None:
        """Let every program of the person release what it opened."""
        _try_each([presenter.end for presenter in self._presenters])


def _try_each(steps: Sequence[Callable[[], None]]) -> None:
    for step in steps:
        try:
            step()
        except Exception as error:  # noqa: BLE001 -- the other ways to the person remain
            _log.warning("a review could not be shown or closed: %s", type(error).__name__)


@contextmanager
def _system_errors(path: str) -> Iterator[None]:
    """Turn an error of the system into one that the caller understands."""
    try:
        yield
    except OSError as error:
        raise (error_from_os(error, path) or error) from None
