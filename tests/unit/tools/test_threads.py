"""Blocking work of tools runs in one bounded pool, in which long work cannot starve short calls."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.app import App
from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.changes.model import PlanStatus
from holdfast.config.settings import ReviewSettings, ServerSettings, Settings
from holdfast.errors import Internal
from holdfast.tools.dispatch import Dispatcher
from holdfast.tools.table import TOOLS
from holdfast.tools.threads import CallThreads
from holdfast.wiring import ServerParts, build

PLANS = 40
"""More than a server has threads for calls, and than asyncio has by default."""
pytestmark = pytest.mark.anyio


class BlockedPlans:
    """An organiser whose plans are all approved, and execute until `release` is set."""

    def __init__(self) -> None:
        self.settings = SimpleNamespace(require_approval=False)
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
def wired(tmp_path: Path) -> Iterator[ServerParts]:
    (tmp_path / "state").mkdir(0o700)
    (tmp_path / "work").mkdir()
    settings = Settings(review=ReviewSettings(wait_seconds=0.1))
    wired = build(settings, str(tmp_path / "state"))
    yield wired
    wired.close()


async def test_executing_plans_do_not_keep_a_proposal_waiting(wired: ServerParts, tmp_path: Path) -> None:
    organiser = BlockedPlans()
    dispatcher = Dispatcher(replace(wired.app, organiser=cast("Any", organiser)), TOOLS, wired.app.settings)
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
    threads, release, begun = CallThreads(2), threading.Event(), list[str]()

    def work(name: str) -> str:
        begun.append(name)
        release.wait(10)
        return name

    first, second, third = (asyncio.create_task(threads.run(work, name, is_long=True)) for name in "abc")
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
    threads, release, begun = CallThreads(1), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        release.wait(10)

    first, second = (asyncio.create_task(threads.run(work, is_long=True)) for _ in range(2))
    assert await asyncio.to_thread(begun.wait, 10)
    closing = asyncio.create_task(asyncio.to_thread(threads.close, 0.0))

    with pytest.raises(asyncio.CancelledError):
        await second
    with pytest.raises(RuntimeError, match="ending"):
        await threads.run(work, is_long=True)
    assert not closing.done(), "it waits for long work, which still uses what is closed next"
    release.set()
    await first
    await closing


async def test_one_call_at_a_time_is_two_threads_so_that_a_plan_does_not_take_the_only_one() -> None:
    threads, release = CallThreads(1), threading.Event()
    plan = asyncio.create_task(threads.run(release.wait, 10, is_long=True))

    async with asyncio.timeout(5):
        assert await threads.run(lambda: "read") == "read"
    release.set()
    assert await plan
    threads.close(1.0)
