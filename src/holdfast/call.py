"""One call in progress: who made it, how to report progress, and when to stop."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from holdfast.auth.context import Caller
from holdfast.errors import Cancelled, TimedOut

ProgressSink = Callable[[float, float | None, str], None]


def _silent(_done: float, _total: float | None, _message: str) -> None:
    return None


@dataclass(slots=True)
class Call:
    """Passed down to every loop; a loop that runs long calls `check()` and may call `progress()`.

    `progress(done, total, message)` may be called from any thread and never blocks.
    """

    caller: Caller
    timeout_seconds: float = 120.0
    progress: ProgressSink = _silent
    started_at: float = field(default_factory=time.monotonic)
    _stop: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """Ask the call to stop at its next check."""
        self._stop.set()

    @property
    def cancelled(self) -> bool:
        """Return whether the caller gave up."""
        return self._stop.is_set()

    def remaining(self) -> float:
        """Return the seconds left before the deadline, never negative."""
        return max(0.0, self.started_at + self.timeout_seconds - time.monotonic())

    def elapsed(self) -> float:
        """Return the seconds since the call began, a measure of progress that only grows."""
        return time.monotonic() - self.started_at

    def within(self, seconds: float) -> "Call":
        """Return the same call, cancelled together with this one, with a deadline at most that far away."""
        allowed = min(self.remaining(), seconds)
        return replace(self, timeout_seconds=self.elapsed() + allowed)

    def check(self) -> None:
        """Raise Cancelled or TimedOut when the call must stop."""
        if self._stop.is_set():
            raise Cancelled("The call was cancelled.")
        if self.remaining() == 0.0:
            raise TimedOut(f"The call took longer than {self.timeout_seconds:g} s. Narrow it, or raise the limit.")
