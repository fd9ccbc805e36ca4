"""Blocking work of tools runs in one bounded pool, in which long work cannot starve short calls."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.app import App
from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.changes.model import PlanStatus
from holdfast.config.server_settings import ServerSettings
from holdfast.config.settings import ReviewSettings, Settings
from holdfast.errors import Internal, ResourceBusy
from holdfast.tools.dispatch import Dispatcher
from holdfast.tools.table import TOOLS
from holdfast.tools.threads import CallThreads, Load, PoolLimits
from holdfast.wiring.build import build
from holdfast.wiring.server_parts import ServerParts

PLANS = 40
"""More than a server has threads for calls, and than asyncio has by default."""
pytestmark = pytest.mark.anyio


class BlockedPlans:
    """An organiser whose plans are all approved, and execute until `release` is set."""

    def __init__(self) -> None:
        self.plans = self
        self.started = 0
        self.release = threading.Event()

    async def settle(self) -> int:
        """Wait until plans execute and no further one begins; return how many do. No thread is used for that."""
        count = 0
        async with asyncio.timeout(30):
            while not self.started or count != self.started:
                count = self.started
                await asyncio.sleep(0.3)
        return count

    def show(self, *_args: object) -> Any:
        return SimpleNamespace(plan=SimpleNamespace(status=PlanStatus.APPROVED))

    def execute(self, *_args: object) -> Any:
        self.started += 1
        self.release.wait(120)
        raise RuntimeError("no more is needed")


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[ServerParts]:
    (tmp_path / "state").mkdir(0o700)
    (tmp_path / "work").mkdir()
    settings = Settings(review=ReviewSettings(wait_seconds=0.1))
    parts = build(settings, str(tmp_path / "state"))
    yield parts
    parts.close()


async def test_executing_plans_do_not_keep_a_proposal_waiting(parts: ServerParts, tmp_path: Path) -> None:
    organiser = BlockedPlans()
    dispatcher = Dispatcher(replace(parts.app, organiser=cast("Any", organiser)), TOOLS, parts.app.settings)
    caller = Caller(LOCAL_USER, roots=(str(tmp_path / "work"),))
    plans = [asyncio.create_task(dispatcher.call(caller, "execute_plan", {"plan_id": str(n)})) for n in range(PLANS)]
    try:
        assert await organiser.settle() >= 6
        async with asyncio.timeout(10):
            arguments = {"path": str(tmp_path / "work" / "new.txt"), "new_string": "text\n"}
            answer = await dispatcher.call(caller, "propose_and_review", arguments)
    finally:
        organiser.release.set()
        ended = await asyncio.gather(*plans, return_exceptions=True)
        dispatcher.close()

    assert answer.data is not None
    assert answer.data.model_dump()["user_action"] == "PENDING"
    assert {type(outcome) for outcome in ended} == {Internal}, "each plan was executed, also those that had to wait"


async def test_a_server_of_two_threads_executes_one_plan_at_a_time_and_still_answers() -> None:
    organiser = BlockedPlans()
    settings = Settings(server=ServerSettings(max_parallel_calls=2))
    app = cast("App", SimpleNamespace(organiser=organiser, folders_of=lambda _caller: None))
    dispatcher = Dispatcher(app, TOOLS, settings)
    caller = Caller(LOCAL_USER, roots=("/",))
    plans = [asyncio.create_task(dispatcher.call(caller, "execute_plan", {"plan_id": str(n)})) for n in range(3)]
    try:
        assert await organiser.settle() == 1
        async with asyncio.timeout(10):
            with pytest.raises(Internal):  # the sample app has no changes; that it fails shows that it ran
                await dispatcher.call(caller, "list_changes", {})
    finally:
        organiser.release.set()
        await asyncio.gather(*plans, return_exceptions=True)
        dispatcher.close()


async def test_long_work_that_is_given_up_in_the_queue_is_never_begun() -> None:
    threads, release, begun = CallThreads(PoolLimits(threads=2)), threading.Event(), list[str]()

    def work(name: str) -> str:
        begun.append(name)
        release.wait(10)
        return name

    first, second, third = (asyncio.create_task(threads.run("a", work, name, load=Load.LONG)) for name in "abc")
    while not begun:
        await asyncio.sleep(0.01)
    second.cancel()
    await asyncio.sleep(0)
    release.set()

    assert await first == "a"
    assert await third == "c"
    with pytest.raises(asyncio.CancelledError):
        await second
    assert begun == ["a", "c"]
    threads.close(1.0)


async def test_closing_cancels_what_waits_in_the_queue() -> None:
    threads, release, begun = CallThreads(PoolLimits(threads=1)), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        release.wait(10)

    first, second = (asyncio.create_task(threads.run("a", work, load=Load.LONG)) for _ in range(2))
    assert await asyncio.to_thread(begun.wait, 10)
    closing = asyncio.create_task(asyncio.to_thread(threads.close, 0.0))

    with pytest.raises(asyncio.CancelledError):
        await second
    with pytest.raises(RuntimeError, match="ending"):
        await threads.run("a", work, load=Load.LONG)
    assert not closing.done(), "it waits for long work, which still uses what is closed next"
    release.set()
    await first
    await closing


async def test_one_call_at_a_time_is_two_threads_so_that_a_plan_does_not_take_the_only_one() -> None:
    threads, release = CallThreads(PoolLimits(threads=1)), threading.Event()
    plan = asyncio.create_task(threads.run("a", release.wait, 10, load=Load.LONG))

    async with asyncio.timeout(5):
        assert await threads.run("a", lambda: "read") == "read"
    release.set()
    assert await plan
    threads.close(1.0)


class Flood:
    """One caller's jobs that run until they are let go."""

    def __init__(self, threads: CallThreads) -> None:
        self.threads, self.go, self.begun = threads, dict[str, threading.Semaphore](), list[str]()
        self.tasks: list[asyncio.Task[None]] = []

    def work(self, name: str) -> None:
        self.begun.append(name)
        self.go.setdefault(name, threading.Semaphore(0)).acquire(timeout=30)

    async def settle(self) -> None:
        """Wait until as many jobs run as may."""
        before = -1
        while before != len(self.begun):
            before = len(self.begun)
            await asyncio.sleep(0.05)

    async def add(self, caller: str, count: int, load: Load = Load.LIGHT) -> None:
        """Start jobs of a caller and wait until as many run as may."""
        self.tasks += [
            asyncio.create_task(self.threads.run(caller, self.work, caller, load=load)) for _ in range(count)
        ]
        await self.settle()

    async def end(self) -> None:
        """Let all of them go."""
        for go in (self.go.setdefault("later", threading.Semaphore(0)), *self.go.values()):
            go.release(10_000)
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.threads.close(1.0)


async def test_a_caller_that_floods_the_pool_leaves_threads_to_the_others() -> None:
    flood = Flood(CallThreads(PoolLimits(threads=16)))
    await flood.add("flooder", 100)
    assert len(flood.begun) == 6
    async with asyncio.timeout(5):
        assert await flood.threads.run("quiet", lambda: "at once") == "at once"
    await flood.end()
    assert len(flood.begun) == 100


@pytest.mark.parametrize("load", [Load.HEAVY, Load.CHILD])
async def test_heavy_work_and_children_of_one_caller_hold_half_of_their_places_and_no_other_thread(load: Load) -> None:
    flood = Flood(CallThreads(PoolLimits(threads=8, heavy=4, children=4)))
    await flood.add("flooder", 50, load)
    assert len(flood.begun) == 2, "those that wait for a place hold no thread"
    async with asyncio.timeout(5):
        assert await flood.threads.run("flooder", lambda: "light") == "light"
        assert await flood.threads.run("quiet", lambda: "heavy", load=load) == "heavy"
    await flood.end()


async def test_free_threads_go_to_the_caller_with_the_fewest_running() -> None:
    flood = Flood(CallThreads(PoolLimits(threads=16)))
    await flood.add("a", 100)
    await flood.add("b", 100)
    await flood.add("c", 100)
    assert {caller: flood.begun.count(caller) for caller in "abc"} == {"a": 6, "b": 1, "c": 1}
    for _ in range(3):
        flood.go["a"].release()
        await flood.settle()
    assert sorted(flood.begun[8:]) == ["b", "c"], "one of the three threads stays free for a newcomer"
    await flood.end()


async def test_a_caller_with_too_many_waiting_calls_is_told_and_the_others_are_not() -> None:
    flood = Flood(CallThreads(PoolLimits(threads=8, waiting_per_caller=10)))
    await flood.add("flooder", 13)
    with pytest.raises(ResourceBusy, match="10 of your calls are waiting already"):
        await flood.threads.run("flooder", str)
    assert await flood.threads.run("quiet", lambda: 1) == 1
    flood.tasks[-1].cancel()
    await asyncio.sleep(0)
    flood.tasks.append(asyncio.create_task(flood.threads.run("flooder", flood.work, "later")))
    await flood.end()
    assert "later" in flood.begun, "a call that was given up has left its place"


async def test_a_thousand_callers_of_which_many_give_up_leave_no_place_taken() -> None:
    threads = CallThreads(PoolLimits(threads=4))
    tasks = [asyncio.create_task(threads.run(str(number % 1000), sum, (number, 1))) for number in range(3000)]
    for task in tasks[::3]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert {task.result() - number for number, task in enumerate(tasks) if not task.cancelled()} == {1}
    assert await threads.run("another", lambda: 1) == 1
    assert (threads._all.taken_places, threads._queues, threads._running) == (0, {}, {})
    threads.close(1.0)


async def test_a_call_that_fails_gives_back_at_once_what_it_had_read() -> None:
    class Content(bytearray):
        """What a tool has read; a plain bytearray cannot be referred to weakly."""

    threads = CallThreads(PoolLimits())
    contents: list[weakref.ref[Content]] = []

    def read_and_fail() -> None:
        content = Content(1_000)
        contents.append(weakref.ref(content))
        raise ResourceBusy("after it was read")

    gc.disable()
    try:
        for _ in range(3):
            with suppress(ResourceBusy):
                await threads.run("a", read_and_fail)
        async with asyncio.timeout(5):
            while any(content() is not None for content in contents):
                await asyncio.sleep(0.01)
    finally:
        gc.enable()
        threads.close(1)
