"""The person's way into the browser: links that work once for a minute, and the sessions they open."""

import secrets
import time
from collections.abc import Callable
from hashlib import sha256

LINK_SECONDS = 60.0
SESSION_SECONDS = 12 * 3600.0
COOKIE = "holdfast_session"
_MAX_LINKS = 32
_MAX_SESSIONS = 64


class ConsoleLinks:
    """Links and sessions live in memory only and are held as hashes; a restart ends them all."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._links: dict[str, float] = {}
        self._sessions: dict[str, float] = {}

    def mint(self) -> str:
        """Return a token that opens one session within the next minute."""
        return self._issue(self._links, LINK_SECONDS, _MAX_LINKS)

    def redeem(self, token: str) -> str | None:
        """Use a link up and return the session it opens, None when it was used, is too old or was never made."""
        ends_at = self._links.pop(_hash(token), 0.0)
        if self._now() >= ends_at:
            return None
        return self._issue(self._sessions, SESSION_SECONDS, _MAX_SESSIONS)

    def is_open(self, session: str) -> bool:
        """Return whether this session was opened by a link and has not run out."""
        return self._now() < self._sessions.get(_hash(session), 0.0)

    def _issue(self, book: dict[str, float], seconds: float, limit: int) -> str:
        now = self._now()
        for old in [entry for entry, ends_at in book.items() if ends_at <= now]:
            del book[old]
        while len(book) >= limit:
            del book[next(iter(book))]
        token = secrets.token_urlsafe(32)
        book[_hash(token)] = now + seconds
        return token


def _hash(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
