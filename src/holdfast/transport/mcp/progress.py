"""Progress from a worker thread to the event loop: never blocking, a few notices a second, none after the call's end."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.call import ProgressSink

_INTERVAL_SECONDS = 0.1


@contextmanager
def progress_to(deliver: ProgressSink) -> Iterator[ProgressSink]:
    """Give a sink that any thread may call; `deliver` runs on the event loop that is running now.

    Notices that follow one another within a tenth of a second are dropped, except the one that completes the total.
    So are those that do not go beyond the last one, since the protocol wants each to be more, and whatever a thread
    says after the block was left: a cancelled call may take a moment to notice.
    """
    loop = asyncio.get_running_loop()
    last_at, last_done, is_over = 0.0, -1.0, False

    def sink(done: float, total: float | None, message: str) -> None:
        nonlocal last_at, last_done
        now = time.monotonic()
        if done <= last_done or (now - last_at < _INTERVAL_SECONDS and done != total):
            return
        last_at, last_done = now, done
        _post(loop, lambda: None if is_over else deliver(done, total, message))

    try:
        yield sink
    finally:
        is_over = True


def _post(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(work)
    except RuntimeError:
        # The loop has closed: the server is going down and nobody is left to tell.
        return
