"""One thread for all open reviews: it sees what a person saved, and closes what has waited too long."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from holdfast.clock import utc_now
from holdfast.review.model import Action, Review
from holdfast.review.sessions import Sessions

_log = logging.getLogger(__name__)
_LOOK_SECONDS = 0.25
_CLOCK_SECONDS = 1.0


@dataclass(slots=True)
class _Watched:
    """`seen` is the last save that was dealt with; `noticed` one that must hold still for a look before it counts."""

    review: Review
    seen: str | None
    noticed: str | None = None


class Watcher:
    """Looks at files only where saving one is a way to decide; sleeps while no review is open.

    `saved(id)` says whether a save could be dealt with; `expired(id)` closes a review.
    """

    def __init__(
        self, sessions: Sessions, *, saves: bool, saved: Callable[[str], bool], expired: Callable[[str], None]
    ) -> None:
        self._sessions = sessions
        self._saves = saves
        self._saved = saved
        self._expired = expired
        self._lock = threading.Lock()
        self._open: dict[str, _Watched] = {}
        self._some = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def keep(self, review: Review, *, unseen: bool = False) -> None:
        """Watch a review, or what it has become; one that is over is let go. `unseen` files are looked into once."""
        with self._lock:
            if not review.is_open:
                self._open.pop(review.id, None)
                return
            known = self._open.get(review.id)
            seen = None if unseen else self._sessions.signature(review)
            self._open[review.id] = _Watched(_without_texts(review), known.seen if known else seen)
            self._start()
            self._some.set()

    def drop(self, review_id: str) -> None:
        """Let go of a review."""
        with self._lock:
            self._open.pop(review_id, None)

    def has_pending(self) -> bool:
        """Return whether a person is still to be heard on something."""
        with self._lock:
            return any(one.review.action is Action.PENDING for one in self._open.values())

    def count(self, root: str) -> int:
        """Return how many reviews of one allowed directory are open."""
        with self._lock:
            return sum(one.review.root == root for one in self._open.values())

    def close(self) -> None:
        """Stop looking and wait for the thread."""
        self._closing.set()
        self._some.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def look(self) -> None:
        """Look once at everything that is open."""
        now = utc_now()
        with self._lock:
            watched = list(self._open.values())
        for one in watched:
            if one.review.expires_at <= now:
                self._expired(one.review.id)
            elif self._saves and one.review.action in (Action.PENDING, Action.REVIEW):
                self._look_at(one)

    def _look_at(self, one: _Watched) -> None:
        present = self._sessions.signature(one.review)
        if present is None or present == one.seen:
            return
        if present == one.noticed and self._saved(one.review.id):
            one.seen = present
            with self._lock:
                newer = self._open.get(one.review.id)
                if newer is not None:
                    newer.seen = present
        one.noticed = present

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name="review-watch", daemon=True)
            self._thread.start()

    def _loop(self) -> None:
        pause = _LOOK_SECONDS if self._saves else _CLOCK_SECONDS
        while not self._closing.wait(pause):
            with self._lock:
                if not self._open:
                    self._some.clear()
            self._some.wait()
            if self._closing.is_set():
                return
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 -- the thread outlives any failure of one round
                _log.warning("watching the open reviews failed: %s", type(error).__name__)


def _without_texts(review: Review) -> Review:
    answered = None if review.answered is None else b""
    return replace(review, base=None, proposed=b"", answered=answered)
