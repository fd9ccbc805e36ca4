"""The bulletin: what happened to reviews, plans and changes, by id and never by content, for doors that show it to a person.

Telling never waits for a reader. The bulletin keeps the last thousand entries; a reader who comes later than that is told
that entries are gone and looks at everything again.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from holdfast.auth.context import LOCAL_TENANT

MAX_ENTRIES = 1_000
PROGRESS_SECONDS = 0.25
"""The shortest time between two notices of one plan's progress; its end is always published."""

_MAX_MESSAGE_CHARS = 200
_log = logging.getLogger(__name__)

Value = str | int | float | bool | None


class NewsKind(StrEnum):
    """What an entry is about; the value is the name of the event that a console gets."""

    REVIEW_OPENED = "review.opened"
    """review_id, action, round."""
    REVIEW_CHANGED = "review.changed"
    """review_id, action, round."""
    REVIEW_APPLIED = "review.applied"
    """review_id, action, round, change_id."""
    PLAN_PROGRESS = "plan.progress"
    """plan_id, phase (scan, execute or undo), done, total (None while it is not known), message."""
    PLAN_CHANGED = "plan.changed"
    """id, status, kind."""
    CHANGE_MADE = "change.made"
    """id, status, kind, undoes (the id of a change that it took back, else None)."""


@dataclass(frozen=True, slots=True)
class News:
    """One entry: `seq` counts up from 1 as long as the server runs. Only its tenant may be shown it."""

    seq: int
    kind: NewsKind
    fields: Mapping[str, Value]
    tenant: str = LOCAL_TENANT


class Bulletin:
    """Safe to use from any thread. A listener is called after each entry, from the thread that told it, and must not wait."""

    def __init__(self, max_entries: int = MAX_ENTRIES) -> None:
        self._max_entries = max_entries
        self._lock = threading.Lock()
        self._entries: OrderedDict[int, News] = OrderedDict()
        self._listeners: dict[object, Callable[[], None]] = {}
        self._progress: dict[str, tuple[int, float]] = {}
        self._newest = 0
        self._newest_gone = 0

    @property
    def newest_seq(self) -> int:
        """Return the number of the last entry, 0 before the first."""
        return self._newest

    def tell(self, kind: NewsKind, /, *, tenant: str = LOCAL_TENANT, **fields: Value) -> None:
        """Add an entry."""
        with self._lock:
            self._add(kind, fields, tenant)
            listeners = list(self._listeners.values())
        _call_each(listeners)

    def tell_progress(self, plan_id: str, phase: str, done: float, total: float | None, message: str) -> None:
        """Add how far a plan has come, in place of what was told before of that plan; dropped when it comes too soon."""
        now = time.monotonic()
        with self._lock:
            last_seq, last_at = self._progress.get(plan_id, (0, 0.0))
            if last_seq and now - last_at < PROGRESS_SECONDS and (total is None or done < total):
                return
            self._entries.pop(last_seq, None)
            text = message[:_MAX_MESSAGE_CHARS]
            self._add(
                NewsKind.PLAN_PROGRESS,
                {
                    "plan_id": plan_id,
                    "phase": phase,
                    "done": done,
                    "total": total,
                    "message": text,
                },
            )
            self._progress[plan_id] = (self._newest, now)
            listeners = list(self._listeners.values())
        _call_each(listeners)

    def read_after(self, seq: int) -> list[News] | None:
        """Return the entries after one, oldest first; None when some are gone, or this bulletin never had that one."""
        with self._lock:
            if seq < self._newest_gone or seq > self._newest:
                return None
            entries: list[News] = []
            for entry in reversed(self._entries.values()):
                if entry.seq <= seq:
                    break
                entries.append(entry)
        entries.reverse()
        return entries

    @contextmanager
    def subscribe(self, listener: Callable[[], None]) -> Iterator[None]:
        """Have a listener called as long as the block runs; it reads what is new with `read_after`."""
        key = object()
        with self._lock:
            self._listeners[key] = listener
        try:
            yield
        finally:
            with self._lock:
                self._listeners.pop(key, None)

    def _add(self, kind: NewsKind, fields: Mapping[str, Value], tenant: str = LOCAL_TENANT) -> None:
        """Add an entry and let the oldest go where they are too many. The caller holds the lock."""
        self._newest += 1
        self._entries[self._newest] = News(self._newest, kind, fields, tenant)
        if kind is NewsKind.PLAN_CHANGED:
            self._progress.pop(str(fields.get("id")), None)
        while len(self._entries) > self._max_entries:
            self._newest_gone, dropped = self._entries.popitem(last=False)
            if dropped.kind is NewsKind.PLAN_PROGRESS:
                self._progress.pop(str(dropped.fields["plan_id"]), None)


def _call_each(listeners: list[Callable[[], None]]) -> None:
    for listener in listeners:
        try:
            listener()
        except Exception as error:  # noqa: BLE001 -- a reader that went away must not stop the others
            _log.warning("a reader of the bulletin failed: %s", type(error).__name__)
