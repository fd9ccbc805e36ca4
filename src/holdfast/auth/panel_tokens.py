"""Issues the tokens by which a panel decides, and finds what a token stands for: one decision, of one tenant, for an hour.

A token goes to the client beside the answer of a call, where its panel gets it and its model does not. Only its SHA-256 is
kept, in memory: after a restart the person decides elsewhere, or in the panel of the next answer.
"""

import hashlib
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from holdfast.errors import PermissionDenied
from holdfast.secret import Secret

LIFETIME_SECONDS = 3600.0
_MAX_TOKENS = 4_096
_TOKEN_BYTES = 32


class PanelSubject(StrEnum):
    """What a token decides on."""

    REVIEW = "review"
    PLAN = "plan"


@dataclass(frozen=True, slots=True)
class PanelGrant:
    """What a token allows: one decision on a review or plan of a tenant, as it was shown."""

    subject: PanelSubject
    subject_id: str
    shown_hash: str
    tenant: str
    until: float


class PanelTokens:
    """The tokens of one server. Safe to use from any thread; when there are too many, the oldest go."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._grants: dict[str, PanelGrant] = {}

    def issue(self, subject: PanelSubject, subject_id: str, shown_hash: str, tenant: str) -> Secret:
        """Return a new token of 256 random bits; this is the only copy of it."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        now = self._now()
        with self._lock:
            while self._grants:
                oldest = next(iter(self._grants))
                if self._grants[oldest].until > now and len(self._grants) < _MAX_TOKENS:
                    break
                del self._grants[oldest]
            self._grants[_hash(token)] = PanelGrant(subject, subject_id, shown_hash, tenant, now + LIFETIME_SECONDS)
        return Secret(token)

    def find(self, token: str, subject: PanelSubject, tenant: str) -> PanelGrant:
        """Return what a token stands for. PermissionDenied when it is used, too old, another tenant's or none at all."""
        with self._lock:
            return self._find(_hash(token), subject, tenant)

    @contextmanager
    def spend(self, token: str, subject: PanelSubject, tenant: str) -> Iterator[PanelGrant]:
        """Take a token for a decision; it is back when the block fails. Raises what `find` raises."""
        key = _hash(token)
        with self._lock:
            grant = self._find(key, subject, tenant)
            del self._grants[key]
        try:
            yield grant
        except BaseException:
            with self._lock:
                self._grants[key] = grant
            raise

    def _find(self, key: str, subject: PanelSubject, tenant: str) -> PanelGrant:
        grant = self._grants.get(key)
        if grant is None or grant.until <= self._now() or (grant.subject, grant.tenant) != (subject, tenant):
            raise PermissionDenied(
                "This panel cannot decide: its token was used, has expired, or is not of this server. Decide in the "
                "console (`holdfast open`) or with a command (`holdfast review`, `holdfast organise`)."
            )
        return grant


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
