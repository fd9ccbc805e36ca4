"""Rate limits: a tenant that calls too often is told how long to wait, by one server or by several that share a Valkey.

The calls are pipes that cannot work: every tenant has them, and a call counts whether it succeeds or not.
"""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.agent import Agent, Reply
from tests.helpers.doors import House, Pipes, until
from tests.helpers.remote import RemoteAgent
from tests.helpers.valkey import Valkey, valkey_server

pytestmark = pytest.mark.timeout(60)

KEY = "a-tenant-of-these-tests"
REFUSED_PIPE = {"steps": [{"id": "a", "tool": "no_such_tool"}]}


class Instance(House):
    """One server of several, with what its deployment puts into its environment."""

    def __init__(self, folder: Path, redis_url: str, settings: str) -> None:
        folder.mkdir(exist_ok=True)
        super().__init__(folder)
        self._redis_url = redis_url
        self.settings(settings)

    @property
    def env(self) -> dict[str, str]:
        return {**super().env, "REDIS_URL": self._redis_url} if self._redis_url else super().env

    @contextmanager
    def tenant(self, key: str = KEY) -> Iterator[Agent]:
        with RemoteAgent(self.url, key) as agent:
            yield agent


@pytest.fixture(scope="module")
def valkey() -> Iterator[Valkey]:
    with valkey_server() as server:
        yield server


def open_with(tenant: int, local_searches: int = 0) -> str:
    limits = {"tenant": {"read_per_minute": tenant}, "local": {"search_per_minute": local_searches}}
    return json.dumps({"settings": {"auth": {"mode": "open"}, "limits": limits}})


def codes(replies: list[Reply]) -> Counter[str]:
    return Counter(reply.code for reply in replies)


@pytest.mark.req("SV-12")
def test_a_tenant_over_its_limit_is_told_when_to_come_back_and_others_go_on(tmp_path: Path) -> None:
    house = Instance(tmp_path / "one", "", open_with(3, local_searches=2))
    with house.serve(str(house.root)), house.tenant() as tenant:
        assert codes([tenant.call("mcp_pipe", **REFUSED_PIPE) for _ in range(3)]) == {"INVALID_ARGUMENT": 3}
        over = tenant.call("mcp_pipe", **REFUSED_PIPE)
        assert over.code == "RATE_LIMITED"
        assert over.error["retryable"] is True
        assert 50 < over.error["retry_after_seconds"] <= 60
        assert f"Try again in {over.error['retry_after_seconds']} s." in over.error["message"]
        with house.tenant("another-tenant-of-these") as other:
            assert other.call("mcp_pipe", **REFUSED_PIPE).code == "INVALID_ARGUMENT"
        with RemoteAgent(house.url, house.token) as local:
            assert {reply.is_error for reply in local.parallel([("list_allowed_directories", {})] * 20)} == {False}
            assert searched_in_a_pipe(local) == {"ok": 2, "RATE_LIMITED": 1}


def searched_in_a_pipe(agent: Agent) -> Counter[str]:
    """Return what became of three steps that search: each counts like a call of its own."""
    steps = [
        {"id": f"s{number}", "tool": "search_files", "arguments": {"path": ".", "pattern": "a*"}} for number in range(3)
    ]
    found = agent.call("mcp_pipe", steps=steps, continue_on_error=True).ok().data["steps"]
    return Counter(step.get("error", {}).get("code", "ok") for step in found)


@pytest.mark.req("SV-12")
def test_a_key_may_have_a_limit_of_its_own(tmp_path: Path) -> None:
    house = Instance(tmp_path / "one", "", "settings: {auth: {mode: listed}, limits: {tenant: {read_per_minute: 2}}}")
    more = json.loads(house.run("keys", "create", "--json", "--limit", "read=5").stdout)["key"]
    usual = json.loads(house.run("keys", "create", "--json").stdout)["key"]
    with house.serve(), house.tenant(more) as first, house.tenant(usual) as second:
        calls = [("mcp_pipe", REFUSED_PIPE)] * 8
        assert codes(first.parallel(calls)) == {"INVALID_ARGUMENT": 5, "RATE_LIMITED": 3}
        assert codes(second.parallel(calls)) == {"INVALID_ARGUMENT": 2, "RATE_LIMITED": 6}


@pytest.mark.req("SV-12", "SV-21.a")
def test_two_servers_share_one_limit_through_valkey(tmp_path: Path, valkey: Valkey) -> None:
    valkey.forget()
    one, two = (Instance(tmp_path / name, valkey.url, open_with(30)) for name in ("one", "two"))
    with one.serve(), two.serve(), one.tenant() as first, two.tenant() as second:
        started = [agent.start("mcp_pipe", REFUSED_PIPE) for _ in range(30) for agent in (first, second)]
        replies = [future.result(timeout=60) for future in started]
        assert codes(replies) == {"INVALID_ARGUMENT": 30, "RATE_LIMITED": 30}
        assert {first.call("mcp_pipe", **REFUSED_PIPE).code, second.call("mcp_pipe", **REFUSED_PIPE).code} == {
            "RATE_LIMITED"
        }


@pytest.mark.req("SV-12")
def test_when_valkey_dies_a_server_goes_on_and_counts_by_itself(tmp_path: Path) -> None:
    with valkey_server() as server:
        house = Instance(tmp_path / "one", server.url, open_with(5))
        with house.serve() as process, house.tenant() as tenant:
            assert codes([tenant.call("mcp_pipe", **REFUSED_PIPE) for _ in range(7)]) == {
                "INVALID_ARGUMENT": 5,
                "RATE_LIMITED": 2,
            }
            server.kill()
            assert codes([tenant.call("mcp_pipe", **REFUSED_PIPE) for _ in range(7)]) == {
                "INVALID_ARGUMENT": 5,
                "RATE_LIMITED": 2,
            }
            server.start()
            until(
                "the server counts in Valkey again",
                lambda: tenant.call("mcp_pipe", **REFUSED_PIPE).code == "INVALID_ARGUMENT",
            )
            process.process.terminate()
            log = process.errors()
        assert log.count("Redis does not answer (ConnectionError): this server counts calls by itself") == 1
        seen = {row["subject"]: row["level"] for row in json.loads(house.run("doctor", "--json").stdout)}
        assert seen["Redis"] == "ok"
        assert log.count("Redis answers again: calls are counted there") == 1


@pytest.mark.req("SV-21.a")
def test_an_address_that_cannot_be_one_stops_the_server_before_it_starts(tmp_path: Path) -> None:
    house = Instance(tmp_path / "one", "http://user:CANARY@example.test", open_with(0))
    with Pipes(["serve", "--port", "0"], house.env, "/") as server:
        said = server.errors()
        assert server.process.returncode == 2
    assert "REDIS_URL must begin with one of redis://" in said
    doctor = house.run("doctor", "--json")
    assert {row["subject"]: row["level"] for row in json.loads(doctor.stdout)}["Redis"] == "broken"
    assert "CANARY" not in said + doctor.stdout + doctor.stderr


@pytest.mark.req("SV-12", "SV-20.c")
def test_limits_are_settings_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    house = House(tmp_path)
    shown = {row["name"]: row["value"] for row in json.loads(house.run("config", "show", "--json").stdout)}
    assert {name: value for name, value in shown.items() if name.startswith("settings.limits.")} == {
        "settings.limits.local.read_per_minute": 0,
        "settings.limits.local.write_per_minute": 0,
        "settings.limits.local.search_per_minute": 0,
        "settings.limits.tenant.read_per_minute": 1200,
        "settings.limits.tenant.write_per_minute": 300,
        "settings.limits.tenant.search_per_minute": 120,
    }
    house.settings("settings: {limits: {tenant: {reads_per_minute: 5}}}")
    wrong = house.run("config", "check")
    assert wrong.returncode == 2
    assert "did you mean settings.limits.tenant.read_per_minute?" in wrong.stderr
