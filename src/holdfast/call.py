"""Defines `Call`, a tool call in progress: its caller, progress, questions to the person, cancellation and deadline."""

import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.errors import Cancelled, TimedOut

ProgressSink = Callable[[float, float | None, str], None]


@dataclass(frozen=True, slots=True)
class Question:
    """A form for the person behind the client; `schema` is a JSON Schema object whose properties are not nested.

    `key` is unique among the questions of one call.
    """

    key: str
    message: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """The person's answer. `content` fits the form, and is empty unless `action` is accept."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] = field(default_factory=dict)


Elicit = Callable[[Question], Awaitable[Reply]]
"""Asks the person through the client. A client that fails or disconnects is a Reply of `cancel`.

Raises InvalidArgument when the content does not fit the form, TimedOut at the call's deadline, and InputNeeded
where the protocol makes the call again with the reply: what the call does before asking must be safe to repeat.
"""


class InputNeeded(BaseException):
    """The call ends here and is made again with the reply; the client sends `state` back with it.

    A BaseException, as a cancellation is: handlers of errors must let it pass.
    """

    def __init__(self, question: Question, state: str) -> None:
        super().__init__(question.key)
        self.question = question
        self.state = state


class HeavyNeeded(BaseException):
    """Raised by a call that turns out to be heavy, before any effect; it is made again with a place of heavy work."""


class ChildNeeded(BaseException):
    """The call ends here, before it had any effect, and is made again once it may start a child process.

    A BaseException, as a cancellation is: handlers of errors must let it pass.
    """


def _ignore_progress(_done: float, _total: float | None, _message: str) -> None:
    return None


@dataclass(slots=True)
class Call:
    """Passed down to every loop; a long loop calls `check()` and may call `progress()`.

    `progress(done, total, message)` may be called from any thread and never blocks. `elicit` is there for an async
    tool when the person behind the client can be asked; a step of a pipe has none. `may_start_child` says whether the
    call has one of the few places of those that run a child process, `is_heavy` whether it has one of heavy work,
    `may_wait` whether it may wait for a person.
    """

    caller: Caller
    timeout_seconds: float = 120.0
    progress: ProgressSink = _ignore_progress
    elicit: Elicit | None = None
    may_start_child: bool = True
    is_heavy: bool = True
    may_wait: bool = True
    started_at: float = field(default_factory=time.monotonic)
    _stop: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """Ask the call to stop at its next check."""
        self._stop.set()

    @property
    def cancelled(self) -> bool:
        """Return whether the call was cancelled."""
        return self._stop.is_set()

    def remaining(self) -> float:
        """Return the seconds left before the deadline, never negative."""
        return max(0.0, self.started_at + self.timeout_seconds - time.monotonic())

    def elapsed(self) -> float:
        """Return the seconds since the call began; it increases, so it can serve as progress."""
        return time.monotonic() - self.started_at

    def within(self, seconds: float) -> "Call":
        """Return the same call, cancelled together with this one, with a deadline at most that far away."""
        allowed = min(self.remaining(), seconds)
        return replace(self, timeout_seconds=self.elapsed() + allowed)

    def need_child(self) -> None:
        """Raise ChildNeeded unless the call may start a child process."""
        if not self.may_start_child:
            raise ChildNeeded

    def check(self) -> None:
        """Raise Cancelled or TimedOut when the call must stop."""
        if self._stop.is_set():
            raise Cancelled("The call was cancelled.")
        if self.remaining() == 0.0:
            raise TimedOut(f"The call took longer than {self.timeout_seconds:g} s. Narrow it, or raise the limit.")


def uncancellable_call() -> Call:
    """Return a call without deadline and cancellation, for work that must be finished once it was started."""
    return Call(Caller(LOCAL_USER), timeout_seconds=float("inf"))
