"""Too many calls in a minute are refused with the time to wait, in memory, in Redis, and while Redis is away."""

import logging
import math
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import anyio
import limits.storage.memory
import pytest

from holdfast.adapters import counters as counters_module
from holdfast.adapters import redis as redis_module
from holdfast.adapters.counters import MemoryCounters
from holdfast.adapters.redis import RedisCounters, redis_fault
from holdfast.app import App
from holdfast.auth.context import LOCAL_USER, AuthContext, Caller, CallerKind
from holdfast.auth.keys import Key
from holdfast.auth.limits import Admission, Counters
from holdfast.auth.rates import Rate
from holdfast.config.settings import LimitSettings, RateSettings, Settings, TenantRateSettings
from holdfast.errors import InvalidArgument, PermissionDenied, RateLimited
from holdfast.tools.dispatch import Dispatcher
from holdfast.tools.registry import Group, Registry
from holdfast.tools.table import TOOLS
from tests.helpers import sample
from tests.helpers.valkey import Valkey, valkey_server

TENANT = Caller(AuthContext("a" * 64, "tenant"))
OTHER = Caller(AuthContext("b" * 64, "other"))
LOCAL = Caller(LOCAL_USER, roots=("/",))


@pytest.fixture(scope="module")
def valkey() -> Iterator[Valkey]:
    with valkey_server() as server:
        yield server


@pytest.fixture(params=["memory", "redis"])
def counters(request: pytest.FixtureRequest, valkey: Valkey) -> Iterator[Counters]:
    valkey.forget()
    opened: Counters = MemoryCounters() if request.param == "memory" else RedisCounters(valkey.url)
    yield opened
    opened.close()


def test_a_minute_holds_so_many_calls_and_tells_when_the_next_may_come(counters: Counters) -> None:
    before = time.time()
    assert [counters.hit("name", 3) for _ in range(3)] == [None] * 3
    wait = counters.hit("name", 3)
    assert wait is not None
    assert before + 60 - time.time() - 0.1 <= wait <= 60
    assert counters.hit("another", 3) is None


def test_who_waits_as_long_as_told_is_admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000.0
    clock = SimpleNamespace(time=lambda: now)
    monkeypatch.setattr(limits.storage.memory, "time", clock)
    monkeypatch.setattr(counters_module, "time", clock)
    counters = MemoryCounters()
    for _ in range(3):
        assert counters.hit("name", 3) is None
        now += 10
    for _ in range(6):
        wait = counters.hit("name", 3)
        assert wait is not None and wait <= 60
        now += math.floor(wait)
        assert counters.hit("name", 3) is not None
        now += 1
        assert counters.hit("name", 3) is None
    counters.close()


def test_a_refused_call_is_not_counted(counters: Counters) -> None:
    counters.hit("name", 1)
    waits = [counters.hit("name", 1) for _ in range(20)]
    assert all(wait is not None and wait <= 60 for wait in waits)
    assert counters.hit("name", 2) is None, "a larger limit has room for one more"


def test_many_threads_get_no_more_than_the_limit(counters: Counters) -> None:
    admitted: list[int] = []

    def call() -> None:
        admitted.extend(1 for _ in range(10) if counters.hit("name", 25) is None)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == 25


def test_memory_does_not_grow_with_every_tenant_that_ever_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters_module, "_MAX_NAMES", 100)
    counters = MemoryCounters()
    for number in range(1000):
        counters.hit(str(number), 5)
    assert counters._storage is not None
    assert len(counters._storage.events) <= 101
    counters.close()


def test_two_servers_share_one_count(valkey: Valkey) -> None:
    valkey.forget()
    first, second = RedisCounters(valkey.url), RedisCounters(valkey.url)
    assert [counter.hit("name", 4) for counter in (first, second, first, second)] == [None] * 4
    assert first.hit("name", 4) is not None
    assert second.hit("name", 4) is not None
    first.close()
    second.close()


def test_while_redis_is_away_a_server_counts_by_itself_and_says_so_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_module, "_RETRY_PAUSE_SECONDS", 0.2)
    with valkey_server() as server, caplog.at_level(logging.WARNING):
        counters = RedisCounters(server.url)
        assert [counters.hit("name", 3) for _ in range(3)] == [None] * 3
        server.kill()
        started = time.monotonic()
        assert [counters.hit("name", 3) for _ in range(3)] == [None] * 3
        assert counters.hit("name", 3) is not None
        assert time.monotonic() - started < 2
        assert caplog.messages == ["Redis does not answer (ConnectionError): this server counts calls by itself"]
        server.start()
        time.sleep(0.25)
        assert counters.hit("name", 3) is None
        assert caplog.messages[1:] == ["Redis answers again: calls are counted there"]
        counters.close()


def test_a_redis_that_accepts_and_never_answers_costs_a_second_once() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        counters = RedisCounters(f"redis://127.0.0.1:{silent.getsockname()[1]}")
        started = time.monotonic()
        assert [counters.hit("x", 10) for _ in range(10)] == [None] * 10
        assert time.monotonic() - started < 2.5
        counters.close()


@pytest.mark.parametrize("url", ["http://u:CANARY@host", "CANARY", "redis://u:CANARY@host:port", ""])
def test_an_address_that_is_none_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        RedisCounters(url)
    assert "REDIS_URL" in caught.value.message
    assert "CANARY" not in caught.value.message


def test_a_look_at_redis_says_whether_it_answers(valkey: Valkey) -> None:
    assert redis_fault(valkey.url) is None
    assert redis_fault("unix:///nowhere/at/all.sock") == "it does not answer (ConnectionError)"
    with pytest.raises(InvalidArgument, match="must begin with"):
        redis_fault("ftp://x")


def test_tenants_are_limited_and_the_local_user_is_not_unless_told() -> None:
    gate = Admission(LimitSettings(), MemoryCounters(), MemoryCounters())
    assert {rate: gate.allowance(TENANT, rate) for rate in Rate} == {"read": 1200, "write": 300, "search": 120}
    assert {gate.allowance(LOCAL, rate) for rate in Rate} == {0}
    told = Admission(LimitSettings(local=RateSettings(write_per_minute=7)), MemoryCounters(), MemoryCounters())
    assert told.allowance(LOCAL, Rate.WRITE) == 7
    assert told.allowance(LOCAL, Rate.READ) == 0
    assert told.allowance(replace(LOCAL, kind=CallerKind.PERSON), Rate.WRITE) == 0


def test_the_local_user_is_not_counted_together_with_those_of_other_machines(valkey: Valkey) -> None:
    servers = [Admission(LimitSettings(), RedisCounters(valkey.url), MemoryCounters()) for _ in range(2)]
    assert servers[0].can_block(TENANT) and not servers[0].can_block(LOCAL)
    for server in servers:
        server.count(LOCAL, Rate.READ, 1)
        with pytest.raises(RateLimited):
            server.count(LOCAL, Rate.READ, 1)
        server.close()


def test_classes_and_tenants_are_counted_apart() -> None:
    gate = Admission(LimitSettings(), MemoryCounters(), MemoryCounters())
    gate.count(TENANT, Rate.READ, 1)
    gate.count(TENANT, Rate.WRITE, 1)
    gate.count(OTHER, Rate.READ, 1)
    with pytest.raises(RateLimited) as caught:
        gate.count(TENANT, Rate.READ, 1)
    assert caught.value.payload() == {
        "code": "RATE_LIMITED",
        "message": "Too many read calls: at most 1 a minute. Try again in 60 s.",
        "retryable": True,
        "retry_after_seconds": 60,
    }


def test_a_key_may_have_limits_of_its_own_and_none_once_it_is_revoked() -> None:
    key = Key("id", "a" * 64, "label", "", per_minute={Rate.READ: 5, Rate.WRITE: 0})
    listed: dict[str, Key] = {"a" * 64: key}
    gate = Admission(
        LimitSettings(tenant=TenantRateSettings(search_per_minute=9)), MemoryCounters(), MemoryCounters(), listed.get
    )
    assert {rate: gate.allowance(TENANT, rate) for rate in Rate} == {"read": 5, "write": 0, "search": 9}
    assert gate.allowance(LOCAL, Rate.READ) == 0
    del listed["a" * 64]
    with pytest.raises(PermissionDenied, match="revoked"):
        gate.allowance(TENANT, Rate.READ)


def test_every_tool_counts_as_what_it_does() -> None:
    classes = {entry.name: entry.rate_class for entry in TOOLS}
    assert classes["read_text_file"] is Rate.READ
    assert classes["write_file"] is classes["delete_file"] is Rate.WRITE
    assert classes["grep_content"] is classes["search_files"] is Rate.SEARCH
    assert classes["mcp_pipe"] is Rate.READ


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_call_over_the_limit_is_refused_before_its_arguments_are_looked_at(counters: Counters) -> None:
    settings = Settings(limits=LimitSettings(tenant=TenantRateSettings(read_per_minute=2)))
    gate = Admission(settings.limits, counters, MemoryCounters())
    table = Dispatcher(cast(App, None), Registry([replace(sample.echo, group=Group.STORE)]), settings, gate)
    for _ in range(2):
        await table.call(TENANT, "echo", {"text": "x"})
    with anyio.fail_after(5), pytest.raises(RateLimited):
        await table.call(TENANT, "echo", {"wrong": 1})
