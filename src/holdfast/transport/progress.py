"""Progress from a worker thread to the event loop: never blocking, never more than a few notices a second."""

import asyncio
import time
from collections.abc import Callable

from holdfast.call import ProgressSink

_INTERVAL_SECONDS = 0.1


def threadsafe_sink(deliver: ProgressSink) -> ProgressSink:
    """Return a sink that any thread may call; `deliver` runs on the event loop that is running now.

    Notices that follow one another within a tenth of a second are dropped, except the one that completes the total.
    """
    loop = asyncio.get_running_loop()
    last = [0.0]

    def sink(done: float, total: float | None, message: str) -> None:
        now = time.monotonic()
        if now - last[0] < _INTERVAL_SECONDS and done != total:
            return
        last[0] = now
        _post(loop, lambda: deliver(done, total, message))

    return sink


def _post(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(work)
    except RuntimeError:
        # The loop has closed: the server is going down and nobody is left to tell.
        return
