"""The reviews of this machine: the services of agent and person, and the upkeep that saves and expires them."""

import logging
from collections.abc import Sequence

from holdfast.bulletin import Bulletin
from holdfast.changes.service import Changes
from holdfast.config.settings import ReviewSettings
from holdfast.errors import HoldfastError
from holdfast.observe.metrics import Metrics
from holdfast.review.agent import AgentReviews
from holdfast.review.decide import decision_from_save
from holdfast.review.person import PersonReviews
from holdfast.review.ports import Presenter, ReviewTable
from holdfast.review.records import ReviewRecords
from holdfast.review.sessions import Sessions
from holdfast.review.watch import Watcher

_log = logging.getLogger(__name__)
_MAX_SAVED_BYTES = 50_000_000


class Reviews:
    """`agent` and `person` are the services of each; here is the upkeep: start, watch, end.

    Call `recover()` once before the first use and `close()` at the end. Whoever waits for a decision subscribes to
    `records.notifications` and looks again.
    """

    def __init__(
        self,
        book: ReviewTable,
        changes: Changes,
        sessions: Sessions,
        settings: ReviewSettings,
        presenters: Sequence[Presenter] = (),
        metrics: Metrics | None = None,
        bulletin: Bulletin | None = None,
    ) -> None:
        watcher = Watcher(
            sessions, watch_saves=settings.channels.vscode, on_save=self._take_save, on_due=self._expire_by_id
        )
        self.records = ReviewRecords(
            book, sessions, settings, presenters, watcher, changes.wake_upkeep, metrics, bulletin
        )
        self.agent = AgentReviews(self.records, changes)
        self.person = PersonReviews(self.records, self.agent)
        self.settings = settings
        self.is_ending = False

    def recover(self) -> None:
        """Bring directories and database into agreement and go on watching what was open."""
        records = self.records
        open_reviews = self.person.list_open()
        records.sessions.sweep({summary.session for summary in open_reviews})
        for summary in open_reviews:
            review = records.load(summary.id)
            try:
                records.sessions.restore(review)
            except OSError as error:
                _log.warning("review %s has no directory: %s", review.id, type(error).__name__)
            records.watcher.keep(review, read_at_once=True)

    def has_pending(self) -> bool:
        """Return whether a person has yet to decide on something."""
        return self.records.watcher.has_pending()

    def release(self) -> None:
        """Tell everyone who waits that the server is ending; their reviews stay as they are."""
        self.is_ending = True
        self.records.notifications.notify("")

    def close(self) -> None:
        """Stop watching, and release what was opened."""
        self.release()
        self.records.watcher.close()
        self.records.end_presentations()

    def _take_save(self, review_id: str) -> bool:
        """Take the decision that a person may have saved; False when the file has to be looked at again."""
        records = self.records
        try:
            with records.lock:
                review = records.load(review_id)
                saved = records.sessions.read_saved(review, _MAX_SAVED_BYTES)
                if saved is None or saved == review.text:
                    return saved is not None
                self.person.decide(review_id, decision_from_save(review, saved))
        except HoldfastError as error:
            _log.info("a save of review %s was not taken: %s", review_id, error.code)
        return True

    def _expire_by_id(self, review_id: str) -> None:
        review = self.records.book.find(review_id)
        if review is None or not review.is_open:
            self.records.watcher.drop(review_id)
        else:
            self.records.expire_if_due(review)
