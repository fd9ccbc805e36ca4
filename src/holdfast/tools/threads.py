"""The threads in which tools do their blocking work: one bounded pool, of which long work may hold half."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


class CallThreads:
    """Runs blocking functions for coroutines, at most `count` at once, two at least.

    Long work, such as executing a plan, has a queue of its own and at most half of the threads, so that short calls find
    a free thread however many plans are executed.
    """

    def __init__(self, count: int) -> None:
        count = max(2, count)
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="holdfast-call")
        self._is_closed = False
        self._unfinished: set[Future[Any]] = set()
        self._lock = threading.Lock()
        self._max_long = count // 2
        self._long_running = 0
        self._running_long: set[Future[Any]] = set()
        self._long_queue: deque[tuple[Future[Any], Callable[[], Any]]] = deque()

    async def run(self, function: Callable[..., T], *args: Any, is_long: bool = False) -> T:
        """Call a function in a thread and return its result. Cancelling takes it out of the queue, but stops no thread."""
        future: Future[T]
        future = self._submit_long(partial(function, *args)) if is_long else self._pool.submit(function, *args)
        self._unfinished.add(future)
        future.add_done_callback(self._unfinished.discard)
        return await asyncio.wrap_future(future)

    def close(self, seconds: float) -> None:
        """Start nothing more, and wait for what is running: `seconds` for short calls, without a bound for long work.

        Long work ends at its next check of its call, which the caller has cancelled. What it works on is closed next, and
        a command releases the lock of the state folder, so nothing of a plan may still move then. A server's process has
        a deadline of its own.
        """
        with self._lock:
            self._is_closed = True
            for future, _ in self._long_queue:
                future.cancel()
            self._long_queue.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)
        wait(tuple(self._running_long))
        wait(tuple(self._unfinished), seconds)

    def _submit_long(self, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the server is ending")
            if self._long_running < self._max_long:
                self._pool.submit(self._run_long_work)
                self._long_running += 1
            self._long_queue.append((future, work))
        return future

    def _run_long_work(self) -> None:
        """Work off the queue of long work in one thread of the pool, until it is empty."""
        while True:
            with self._lock:
                if not self._long_queue:
                    self._long_running -= 1
                    return
                future, work = self._long_queue.popleft()
                self._running_long.add(future)
            try:
                if future.set_running_or_notify_cancel():
                    future.set_result(work())
            except BaseException as error:  # noqa: BLE001 -- whoever awaits the future gets it
                future.set_exception(error)
            finally:
                self._running_long.discard(future)
