"""What a scrape of /metrics says of a running server, who may ask, and that nothing a caller chose is in it."""

import json
import re
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from holdfast.auth.rates import Rate
from holdfast.changes.model import ChangeKind
from holdfast.errors import HoldfastError
from holdfast.observe.model import UNKNOWN_TOOL, CallStatus
from holdfast.tools.table import TOOLS
from tests.helpers.agent import Agent, command
from tests.helpers.databases import postgres_database
from tests.helpers.doors import House, post, until
from tests.helpers.remote import RemoteAgent
from tests.helpers.scraper import Figures, get_metrics, metrics_token, scrape
from tests.helpers.stores import OPEN, Deployment, deployed

pytestmark = pytest.mark.timeout(120)

KEY = "a-tenant-of-the-metrics-test"
CANARY = "kestrel4711"


@pytest.fixture(scope="module")
def measured(
    database_url: str | None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    """Give a server of its own on each kind of database, where a mutation waits for its lock for a second.

    The database is its own too: other servers on it would index some of what this one is to count.
    """
    settings = {**OPEN, "mcp": {"files": {"lock_timeout_ms": 1_000, "search": {"embedder": {"kind": "none"}}}}}
    with ExitStack() as stack:
        if database_url is not None:
            server_url = request.getfixturevalue("postgres_server_url")
            database_url = stack.enter_context(postgres_database(server_url, migrated=False))
        yield stack.enter_context(deployed(tmp_path_factory.mktemp("measured"), settings, database_url))


def growth(before: Figures, after: Figures, name: str, **labels: str) -> float:
    return after.value(name, **labels) - before.value(name, **labels)


@pytest.mark.req("SV-32.a")
def test_mutations_searches_and_indexing_are_counted(measured: Deployment, project: str) -> None:
    before = scrape(measured.house)
    agent = measured.agent
    for number in range(5):
        agent.call("file_write", project=project, path=f"/{number}.txt", content="a falcon dives").ok()
    assert agent.call("file_delete", project=project, path="/missing.txt").code == "NOT_FOUND"
    agent.call("file_search", project=project, query="falcon").ok()
    after: Figures = until(
        "the writes are indexed",
        lambda: (
            figures
            if growth(before, figures := scrape(measured.house), "mcp_files_index_visibility_lag_ms_count") >= 5
            else None
        ),
    )

    assert growth(before, after, "mcp_files_mutation_total", tool="file_write", status="ok") == 5
    assert growth(before, after, "mcp_files_mutation_total", tool="file_delete", status="error") == 1
    assert growth(before, after, "mcp_files_lock_wait_ms_count") == 6
    assert growth(before, after, "mcp_files_search_latency_ms_count") == 1
    assert growth(before, after, "mcp_files_index_job_latency_ms_count") >= 5
    assert growth(before, after, "holdfast_index_jobs_ended_total", stage="words", outcome="done") >= 5
    assert growth(before, after, "holdfast_calls_total", tool="file_delete", code="NOT_FOUND") == 1
    assert after.value("mcp_files_search_rerank_fail_total") == 0
    assert after.value("holdfast_database_up") == 1
    assert after.value("holdfast_index_slo_seconds") == 30
    assert after.has("mcp_files_index_queue_depth")


@pytest.mark.req("SV-32.a")
def test_a_lock_that_is_held_shows_in_the_wait_and_in_the_codes(measured: Deployment, project: str) -> None:
    measured.agent.call("file_write", project=project, path="/a.txt", content="x").ok()
    before = scrape(measured.house)
    with measured.holding(project):
        assert measured.agent.call("file_write", project=project, path="/a.txt", content="x").code == "RESOURCE_BUSY"
    after = scrape(measured.house)

    assert growth(before, after, "mcp_files_lock_wait_ms_count") == 1
    assert 900 <= growth(before, after, "mcp_files_lock_wait_ms_sum") <= 5_000
    assert growth(before, after, "holdfast_calls_total", code="RESOURCE_BUSY") == 1


@pytest.mark.req("SV-32.b")
def test_no_label_holds_what_a_caller_chose(measured: Deployment) -> None:
    with RemoteAgent(measured.house.url, f"{CANARY}-key-of-a-tenant") as tenant:
        tenant.call("file_write", project=CANARY, path=f"/{CANARY}/a.txt", content=CANARY).ok()
        tenant.call("file_search", project=CANARY, query=CANARY).ok()
        assert tenant.call(f"{CANARY}_tool").is_error
    client = Agent([measured.house.root], measured.house.state, name=f"{CANARY}-client", version=CANARY)
    with client as agent:
        agent.call("write_file", path=str(measured.house.root / f"{CANARY}.txt"), content=CANARY).ok()
        assert agent.call("read_text_file", path=f"/{CANARY}").is_error
    httpx2.get(f"{measured.house.url}/{CANARY}", headers={"authorization": f"Bearer {KEY}"})
    text, figures = get_metrics(measured.house).text, scrape(measured.house)

    assert CANARY not in text
    assert KEY not in text
    values = dict(figures.label_values())
    assert values.pop("tool") <= {tool.name for tool in TOOLS} | {UNKNOWN_TOOL}
    assert values.pop("code") <= {"", *all_codes()}
    assert values.pop("status") <= {*CallStatus, *map(str, range(100, 600)), "pending", "processing", "failed"}
    assert values.pop("le")
    assert values.pop("version")
    assert values == {label: given & BOUNDED[label] for label, given in values.items()}


BOUNDED: dict[str, set[str]] = {
    "action": {"approve", "revise", "reject", "expired"},
    "channel": {"console", "terminal", "elicitation", "panel", "vscode", "none"},
    "class": set(map(str, Rate)),
    "door": {"socket", "http"},
    "kind": set(map(str, ChangeKind)),
    "load": {"light", "heavy", "child", "long"},
    "outcome": {"ok", "done", "skipped", "error", "retried", "failed", "lost", "move", "uncertain", "stay"},
    "part": {"words", "meaning", "reranker", "served_at"},
    "reason": set(
        """
        malformed no_valid_key foreign_origin not_there wrong_method slow_body too_large foreign_host rate_limited
        head_too_large fault busy http_version
        """.split()
    ),
    "route": {"/", "/api/", "/api/logs", "/assets/", "/health", "/mcp", "/metrics", "/ws", "other"},
    "stage": {"words", "meaning"},
    "state": {"pending", "changes_requested", "approved"},
}


def all_codes() -> set[str]:
    kinds, codes = [HoldfastError], set()
    while kinds:
        kind = kinds.pop()
        codes.add(kind.code)
        kinds += kind.__subclasses__()
    return codes


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Give a state folder with nothing running."""
    found = House(tmp_path)
    yield found
    found.end()


@pytest.mark.req("SV-11.e")
@pytest.mark.parametrize("mode", ["local", "listed", "open"])
def test_the_key_to_the_metrics_opens_them_and_nothing_else(house: House, mode: str) -> None:
    house.settings(json.dumps({"settings": {"auth": {"mode": mode}}}))
    with house.serve(str(house.root)):
        token = metrics_token(house)
        assert stat.S_IMODE((house.state / "metrics.token").stat().st_mode) == 0o600
        assert get_metrics(house).status_code == 200
        assert post(house, authorization=f"Bearer {token}").status_code == 401
        assert httpx2.get(f"{house.url}/api/me", headers={"authorization": f"Bearer {token}"}).status_code == 401
        with pytest.raises(InvalidStatus) as refused:
            connect(f"{house.url.replace('http', 'ws')}/ws", additional_headers={"authorization": f"Bearer {token}"})
        assert refused.value.response.status_code in (401, 403)


@pytest.mark.req("SV-11.e")
@pytest.mark.parametrize("mode", ["local", "open"])
def test_no_other_key_opens_the_metrics(house: House, mode: str) -> None:
    house.settings(json.dumps({"settings": {"auth": {"mode": mode}}}))
    with house.serve(str(house.root)):
        person = (house.state / "person.key").read_text().strip()
        for key in (house.token, person, KEY, metrics_token(house)[:-1], metrics_token(house).upper() + "x"):
            answer = get_metrics(house, key)
            assert answer.status_code == 401, key
            assert "metrics.token" in answer.text
        assert httpx2.get(f"{house.url}/metrics").status_code == 401
        assert get_metrics(house, origin="https://evil.test").status_code == 403
        assert get_metrics(house, host="evil.test").status_code == 421
        assert (
            httpx2.post(f"{house.url}/metrics", headers={"authorization": f"Bearer {metrics_token(house)}"}).status_code
            == 405
        )


@pytest.mark.req("SV-32.a")
def test_a_client_gets_the_format_that_it_accepts(house: House) -> None:
    with house.serve(str(house.root)):
        plain = get_metrics(house)
        open_metrics = get_metrics(house, accept="application/openmetrics-text; version=1.0.0")

        assert plain.headers["content-type"].startswith("text/plain")
        assert open_metrics.headers["content-type"].startswith("application/openmetrics-text")
        assert open_metrics.text.endswith("# EOF\n")
        assert {answer.headers["cache-control"] for answer in (plain, open_metrics)} == {"no-store"}


@pytest.mark.req("SV-32.a")
def test_promtool_finds_nothing_wrong_with_a_scrape_but_the_unit_in_promised_names(house: House) -> None:
    with house.serve(str(house.root)), Agent([house.root], house.state) as agent:
        agent.call("write_file", path=str(house.root / "b.txt"), content="x").ok()
        agent.call("file_write", project="p", path="/a.txt", content="x").ok()
        text = get_metrics(house).text
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    promised = [
        "mcp_files_index_job_latency_ms",
        "mcp_files_index_visibility_lag_ms",
        "mcp_files_lock_wait_ms",
        "mcp_files_search_latency_ms",
    ]

    assert sorted((checked.stdout + checked.stderr).splitlines()) == [
        f"{name} metric names should not contain abbreviated units" for name in promised
    ]


@pytest.mark.req("SV-32.a")
def test_without_metrics_there_is_no_page_and_no_key(house: House) -> None:
    house.settings(json.dumps({"settings": {"observe": {"metrics": {"enabled": False}}}}))
    with house.serve(str(house.root)):
        assert not (house.state / "metrics.token").exists()
        assert httpx2.get(f"{house.url}/metrics", headers={"authorization": f"Bearer {house.token}"}).status_code == 401
        assert post(house).status_code == 200


@pytest.mark.req("SV-32.a")
def test_reviews_changes_children_and_doors_are_counted(house: House) -> None:
    house.settings(
        json.dumps({"settings": {"limits": {"local": {"read_per_minute": 12}}, "review": {"wait_seconds": 0.2}}})
    )
    path = str(house.root / "a.txt")
    with house.serve(str(house.root)), Agent([house.root], house.state) as agent:
        before = scrape(house)
        agent.call("write_file", path=path, content="one\n").ok()
        agent.call("write_file", path=path, content="two\n").ok()
        pending = agent.call("propose_and_review", path=path, old_string="two", new_string="three").ok().data
        (house.root / "b.json").write_text('{"a": 1}')
        agent.call("query_json", file_path=str(house.root / "b.json"), expression=".a").ok()
        opened = scrape(house)
        decided = house.run("review", "reject")
        refusals = {agent.call("read_text_file", path=path).refusals[:1] == ["RATE_LIMITED"] for _ in range(14)}
        after = scrape(house)

    assert pending["user_action"] == "PENDING"
    assert decided.returncode == 0, decided.stderr
    assert True in refusals
    assert growth(before, opened, "holdfast_changes_total", kind="write") == 2
    assert growth(before, opened, "holdfast_history_images_total") == 2
    assert growth(before, opened, "holdfast_journal_commit_seconds_count") >= 2
    assert opened.value("holdfast_history_bytes") > 0
    assert opened.value("holdfast_history_limit_bytes") > opened.value("holdfast_history_bytes")
    assert growth(before, opened, "holdfast_reviews_opened_total") == 1
    assert opened.value("holdfast_reviews_open", state="pending") == 1
    assert growth(before, opened, "holdfast_children_started_total") >= 1
    assert opened.value("holdfast_connections", door="socket") == 1
    assert growth(before, after, "holdfast_reviews_decided_total", action="reject", channel="terminal") == 1
    assert after.value("holdfast_reviews_open") == 0
    assert growth(before, after, "holdfast_calls_rate_limited_total") >= 1
    assert growth(before, after, "holdfast_http_requests_total", route="/metrics", status="200") == 2
    assert after.value("holdfast_connections_opened_total", door="socket") >= 2
    assert after.value("process_resident_memory_bytes") > 10_000_000
    assert after.value("holdfast_build_info") == 1


@pytest.mark.req("SV-32.e")
def test_status_watch_shows_the_same_figures_and_sees_a_server_end(house: House) -> None:
    options = ["status", "--watch", "--interval", "0.2", "--json"]
    with subprocess.Popen(command(*options), env=house.env, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        try:
            assert json.loads(watching.stdout.readline())["running"] is False
            with house.serve(str(house.root)), Agent([house.root], house.state) as agent:
                for _ in range(3):
                    agent.call("list_directory", path=str(house.root)).ok()
                shown = look_until(watching, lambda look: calls_of(look) >= 3)
                assert shown["running"] is True
                assert shown["figures"]["holdfast_database_up"] == [{"labels": {}, "value": 1.0}]
                assert calls_of(shown) == scrape(house).value("holdfast_calls_total")
                text = watch_text(house)
            assert look_until(watching, lambda look: not look["running"])["figures"] == {}
        finally:
            watching.kill()

    assert re.search(r"^A foreground server .* is running", text)
    assert re.search(r"^calls +\d+\.\d/s, p50", text, re.MULTILINE)
    assert "\x1b" not in text, "what is no terminal gets no control sequences"


@pytest.mark.req("SV-32.e")
def test_status_watch_says_when_nothing_is_counted_and_when_nothing_runs(house: House) -> None:
    assert "No server is running." in watch_text(house)
    house.settings(json.dumps({"settings": {"observe": {"metrics": {"enabled": False}}}}))
    with house.serve(str(house.root)):
        assert "Nothing is counted: settings.observe.metrics.enabled is false." in watch_text(house)


def calls_of(look: dict[str, Any]) -> float:
    return float(sum(found["value"] for found in look["figures"].get("holdfast_calls_total", ())))


def look_until(watching: "subprocess.Popen[str]", holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    assert watching.stdout is not None
    for line in watching.stdout:
        look: dict[str, Any] = json.loads(line)
        if holds(look):
            return look
    raise AssertionError("the command ended")


def watch_text(house: House, looks: int = 2) -> str:
    """Return what `status --watch` prints for a person in its first looks."""
    options = ["status", "--watch", "--interval", "0.2"]
    with subprocess.Popen(command(*options), env=house.env, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        text = ""
        try:
            while len(re.findall("^(?:A|No) ", text, re.MULTILINE)) <= looks and (line := watching.stdout.readline()):
                text += line
        finally:
            watching.kill()
    return text
