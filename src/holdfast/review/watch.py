"""The thread that watches all open reviews: it notices what a person saved, and when a review is due to expire."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.clock import utc_now
from holdfast.review.model import OPEN_STATES, UNDECIDED_STATES, Review, ReviewState
from holdfast.review.sessions import Sessions

_log = logging.getLogger(__name__)
_SAVES_POLL_SECONDS = 0.25
_EXPIRY_POLL_SECONDS = 1.0


@dataclass(slots=True)
class _WatchedReview:
    """`handled` is the version of the file that was dealt with, `candidate` one that must be the same at the next look.

    `size_bytes` is what its texts take up.
    """

    review: Review
    size_bytes: int
    handled: str | None
    candidate: str | None = None


class Watcher:
    """Looks at files only where saving one is a way to decide; sleeps while no review is open.

    `on_save(id)` returns whether a save could be dealt with; `on_due(id)` closes a review whose time is over.
    """

    def __init__(
        self,
        sessions: Sessions,
        *,
        watch_saves: bool,
        on_save: Callable[[str], bool],
        on_due: Callable[[str], None],
    ) -> None:
        self._sessions = sessions
        self._watch_saves = watch_saves
        self._on_save = on_save
        self._on_due = on_due
        self._lock = threading.Lock()
        self._open: dict[str, _WatchedReview] = {}
        self._has_open = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def keep(self, review: Review, *, read_at_once: bool = False) -> None:
        """Watch an open review, or what it has become; `read_at_once` when its file may hold an earlier save."""
        with self._lock:
            known = self._open.get(review.id)
            version = None if read_at_once else self._sessions.saved_version(review)
            self._open[review.id] = _WatchedReview(
                review.without_texts(), review.size_bytes, known.handled if known else version
            )
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="review-watch", daemon=True)
                self._thread.start()
            self._has_open.set()

    def drop(self, review_id: str) -> None:
        """Stop watching a review."""
        with self._lock:
            self._open.pop(review_id, None)

    def has_pending(self) -> bool:
        """Return whether a person has yet to decide on something."""
        with self._lock:
            return any(watched.review.state is ReviewState.PENDING for watched in self._open.values())

    def count(self, root: str) -> int:
        """Return how many reviews of one allowed directory are open."""
        with self._lock:
            return sum(watched.review.root == root for watched in self._open.values())

    def count_by_state(self) -> dict[tuple[str, ...], float]:
        """Return how many reviews are open, by state."""
        with self._lock:
            states = [watched.review.state for watched in self._open.values()]
        return {(state.value.lower(),): float(states.count(state)) for state in OPEN_STATES}

    def size_bytes(self, root: str) -> int:
        """Return what the texts of the open reviews of one allowed directory take up."""
        with self._lock:
            return sum(watched.size_bytes for watched in self._open.values() if watched.review.root == root)

    def close(self) -> None:
        """Stop looking and wait for the thread."""
        self._closing.set()
        self._has_open.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def look(self) -> None:
        """Look once at everything that is open."""
        now = utc_now()
        with self._lock:
            open_reviews = list(self._open.values())
        for watched in open_reviews:
            if watched.review.expires_at <= now:
                self._on_due(watched.review.id)
            elif self._watch_saves and watched.review.state in UNDECIDED_STATES:
                self._look_for_save(watched)

    def _look_for_save(self, watched: _WatchedReview) -> None:
        version = self._sessions.saved_version(watched.review)
        if version is None or version == watched.handled:
            return
        if version == watched.candidate and self._on_save(watched.review.id):
            watched.handled = version
            with self._lock:
                newer = self._open.get(watched.review.id)
                if newer is not None:
                    newer.handled = version
        watched.candidate = version

    def _loop(self) -> None:
        pause = _SAVES_POLL_SECONDS if self._watch_saves else _EXPIRY_POLL_SECONDS
        while not self._closing.wait(pause):
            with self._lock:
                if not self._open:
                    self._has_open.clear()
            self._has_open.wait()
            if self._closing.is_set():
                return
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 -- the thread outlives any failure of one round
                _log.warning("watching the open reviews failed: %s", type(error).__name__)
