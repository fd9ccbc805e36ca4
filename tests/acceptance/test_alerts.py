"""Every alert fires on a real fault and clears after it, and every query of the dashboard has an answer: a real Prometheus
scrapes real servers, with the rules of the product in windows of seconds."""

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers.agent import Agent
from tests.helpers.databases import stoppable_postgres
from tests.helpers.disks import noise_text, small_disk
from tests.helpers.doors import House, until
from tests.helpers.models import model_server, ranks
from tests.helpers.prometheus import RULES, TOP, WINDOW, Prometheus, Target, prometheus
from tests.helpers.remote import RemoteAgent
from tests.helpers.scraper import scrape

pytestmark = [pytest.mark.timeout(300), pytest.mark.alone]

DASHBOARD = TOP / "deploy" / "grafana" / "holdfast.json"
FIRES_SECONDS = 60.0
SLO_SECONDS = 2
KEY = "a-tenant-of-the-alerts-test"


def alerts() -> set[str]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"] for rule in group["rules"]}


def target(house: House, job: str = "holdfast") -> Target:
    return Target(job, house.url.removeprefix("http://"), house.state / "metrics.token")


@contextmanager
def served(folder: Path, settings: dict[str, Any], **environment: str) -> Iterator[House]:
    """Run a server that indexes words alone."""
    folder.mkdir(exist_ok=True)
    house = House(folder, **environment)
    files = {"search": {"embedder": {"kind": "none"}}, **settings.pop("files", {})}
    unlimited = {"local": dict.fromkeys(("read_per_minute", "write_per_minute", "search_per_minute"), 0)}
    house.settings(json.dumps({"settings": {"limits": unlimited, "mcp": {"files": files}, **settings}}))
    with house.serve(str(house.root)):
        yield house


def keep_until(
    what: str, holds: Callable[[], bool], work: Callable[[], object], seconds: float = FIRES_SECONDS
) -> None:
    """Repeat some work until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"never came true within {seconds} s: {what}"
        work()
        time.sleep(0.05)


def fires(watcher: Prometheus, *names: str) -> Callable[[], bool]:
    return lambda: set(names) <= watcher.firing()


def is_silent(watcher: Prometheus, *names: str) -> Callable[[], bool]:
    return lambda: not set(names) & watcher.firing()


@pytest.mark.req("SV-32.c")
def test_the_rules_are_sound_and_each_has_its_figures_and_its_sentence_in_the_documentation() -> None:
    for check in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]):
        ran = subprocess.run(["promtool", *check], cwd=RULES.parent, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    tested = {case["name"] for case in yaml.safe_load((RULES.parent / "alerts.test.yml").read_text())["tests"]}
    page = (TOP / "docs" / "how-to" / "observe.md").read_text()

    assert tested == alerts()
    assert {name for name in alerts() if f"`{name}`" not in page} == set()


@pytest.mark.req("SV-32.c")
def test_every_alert_is_made_to_fire_here() -> None:
    assert {name for name in alerts() if f'"{name}"' not in Path(__file__).read_text()} == set()


@pytest.mark.req("SV-32.c")
def test_a_worker_that_was_killed_is_noticed_and_so_is_what_it_left_undone(tmp_path: Path) -> None:
    index = {"workers": 0, "slo_p95_seconds": SLO_SECONDS}
    with ExitStack() as stack:
        house = stack.enter_context(served(tmp_path / "house", {"files": {"index": index}}))
        agent = stack.enter_context(Agent([house.root], house.state))
        worker = start_worker(house, 0)
        stack.callback(end_process, worker)
        port = metrics_port(worker)
        beside = Target("holdfast-worker", f"127.0.0.1:{port}", house.state / "metrics.token")
        watcher = stack.enter_context(prometheus(tmp_path / "prometheus", [target(house), beside]))
        write(agent, "before", 3)
        until("the worker indexes", lambda: watcher.query("mcp_files_index_visibility_lag_ms_count > 0"))
        assert not watcher.firing()

        worker.kill()
        worker.wait()
        write(agent, "after", 3)
        until("alerts fire", fires(watcher, "HoldfastWorkerDown", "HoldfastIndexJobOld", "HoldfastDown"), FIRES_SECONDS)

        worker = start_worker(house, port)
        stack.callback(end_process, worker)
        until("the worker is back", is_silent(watcher, "HoldfastWorkerDown", "HoldfastDown"), FIRES_SECONDS)
        worker.send_signal(signal.SIGSTOP)
        write(agent, "late", 3)
        time.sleep(2 * SLO_SECONDS)
        worker.send_signal(signal.SIGCONT)
        until("the late writes are seen", fires(watcher, "HoldfastIndexLag"), FIRES_SECONDS)
        numbers = iter(range(10_000))
        keep_until(
            "all is well again",
            is_silent(watcher, *alerts()),
            lambda: write(agent, f"fresh-{next(numbers)}", 1),
        )
        assert not watcher.unhealthy_rules()


def start_worker(house: House, port: int) -> "subprocess.Popen[str]":
    from tests.helpers.agent import command

    return subprocess.Popen(
        command("worker", "--metrics-port", str(port), "--settings", str(house.state / "settings.yml")),
        env=house.env,
        stderr=subprocess.PIPE,
        text=True,
    )


def end_process(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    assert process.stderr is not None
    process.stderr.close()


def metrics_port(worker: "subprocess.Popen[str]") -> int:
    assert worker.stderr is not None
    for line in worker.stderr:
        if told := re.search(r"metrics are at http://127\.0\.0\.1:(\d+)/", line):
            return int(told[1])
    raise AssertionError("the worker never said where its metrics are")


def write(agent: Agent, name: str, count: int) -> None:
    for number in range(count):
        agent.call("file_write", project="p", path=f"/{name}-{number}.txt", content=f"a falcon {name} dives").ok()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, Agent, Prometheus, Any]]:
    """Give a server with a reranker and a small undo history, a client, and a Prometheus that watches it."""
    folder = tmp_path_factory.mktemp("shop")
    with model_server() as models, ExitStack() as stack:
        search = {"embedder": {"kind": "none"}, "rerank": {"endpoint": f"{models.url}/rerank", "timeout_ms": 2_000}}
        settings = {
            "files": {"lock_timeout_ms": 50, "search": search},
            "journal": {"max_bytes": 500_000},
            "review": {"wait_seconds": 0.1},
        }
        house = stack.enter_context(served(folder / "house", settings))
        agent = stack.enter_context(Agent([house.root], house.state))
        watcher = stack.enter_context(prometheus(folder / "prometheus", [target(house)]))
        yield house, agent, watcher, models


Shop = tuple[House, Agent, Prometheus, Any]


@pytest.mark.req("SV-32.c")
def test_a_reranker_that_is_down_is_noticed(shop: Shop) -> None:
    _, agent, watcher, models = shop

    def search() -> None:
        agent.call("file_search", project="p", query="falcon").ok()

    write(agent, "ranked", 2)
    keep_until("searches are reranked", lambda: bool(models.requests), search)
    models.behave(lambda request: request.answer({}, 503))
    keep_until("the alert fires", fires(watcher, "HoldfastRerankFailing"), search)
    models.behave(ranks)
    keep_until("the alert clears", is_silent(watcher, "HoldfastRerankFailing"), search)


@pytest.mark.req("SV-32.c")
def test_a_project_lock_that_is_held_is_noticed(shop: Shop) -> None:
    from holdfast.auth.context import LOCAL_TENANT
    from tests.helpers.databases import sqlite_backend

    house, agent, watcher, _ = shop

    def write_once() -> str:
        reply = agent.call("file_write", project="held", path="/a.txt", content="x", mode="TRUNCATE")
        return reply.code if reply.is_error else ""

    assert write_once() == ""
    with sqlite_backend(house.state / "store") as beside, beside.database().mutation(LOCAL_TENANT, "held", 3_000):
        assert write_once() == "RESOURCE_BUSY"
        keep_until("the alert fires", fires(watcher, "HoldfastResourceBusy"), write_once)
    keep_until("the alert clears", is_silent(watcher, "HoldfastResourceBusy"), write_once)


@pytest.mark.req("SV-32.c")
def test_an_undo_history_that_is_nearly_full_is_noticed(shop: Shop) -> None:
    house, agent, watcher, _ = shop
    numbers = iter(range(10_000))

    def overwrite_one() -> None:
        number = next(numbers)
        path = str(house.root / f"large-{number}.txt")
        (house.root / f"large-{number}.txt").write_text(noise_text(20_000, number))
        assert {*agent.call("write_file", path=path, content="").refusals} <= {"QUOTA_EXCEEDED"}

    keep_until("the alert fires", fires(watcher, "HoldfastHistoryNearlyFull"), overwrite_one)
    pruned = house.run("changes", "prune", "--to-bytes", "1KB", "--yes")
    assert pruned.returncode == 0, pruned.stderr
    until("the alert clears", is_silent(watcher, "HoldfastHistoryNearlyFull"), FIRES_SECONDS)


@pytest.mark.req("SV-32.d")
def test_every_query_of_the_dashboard_has_an_answer(shop: Shop) -> None:
    house, agent, watcher, models = shop
    queries = dashboard_queries()
    assert len(queries) > 50
    models.behave(lambda request: request.answer({}, 503))
    everyday = everyday_work(house, agent)
    empty = set(queries)

    def work() -> None:
        next(everyday)
        empty.difference_update([query for query in empty if has_answer(watcher, query)])

    deadline = time.monotonic() + 150
    while empty:
        assert time.monotonic() < deadline, f"queries without an answer: {sorted(empty)}"
        work()


def has_answer(watcher: Prometheus, query: str) -> bool:
    return any(found["value"][1] != "NaN" for found in watcher.query(query))


def dashboard_queries() -> list[str]:
    board = json.loads(DASHBOARD.read_text())
    queries = [found["expr"] for panel in board["panels"] for found in panel.get("targets", [])]
    return [query.replace("$instance", ".*").replace("$__rate_interval", WINDOW) for query in queries]


def everyday_work(house: House, agent: Agent) -> Iterator[None]:
    """Do a bit of everything, again and again."""
    folder = house.root / "messy"
    folder.mkdir(exist_ok=True)
    number = 0
    while True:
        number += 1
        path = house.root / f"daily-{number}.txt"
        agent.call("write_file", path=str(path), content=f"{number}\n").ok()
        agent.call("propose_and_review", path=str(path), old_string=str(number), new_string="new").ok()
        house.run("review", "reject")
        write(agent, f"daily-{number}", 1)
        agent.call("file_search", project="p", query="falcon").ok()
        assert agent.call("read_text_file", path=str(house.root / "missing")).is_error
        (folder / f"scan-{number}.txt").write_text(f"invoice {number}\n")
        agent.call("create_organization_plan", folder_path=str(folder)).ok()
        yield


@pytest.mark.req("SV-32.c")
def test_a_database_that_is_stopped_is_noticed_and_so_is_what_fails_without_it(tmp_path: Path) -> None:
    with stoppable_postgres() as database, ExitStack() as stack:
        house = stack.enter_context(served(tmp_path / "house", {"auth": {"mode": "open"}}, DATABASE_URL=database.url))
        agent = stack.enter_context(RemoteAgent(house.url, KEY))
        write(agent, "kept", 1)
        watcher = stack.enter_context(prometheus(tmp_path / "prometheus", [target(house)]))
        threads = stack.enter_context(ThreadPoolExecutor(8))
        database.stop()
        try:
            searches = [threads.submit(agent.call, "file_search", project="p", query="falcon") for _ in range(40)]
            fired: set[str] = set()
            wanted = {"HoldfastDatabaseDown", "HoldfastErrors", "HoldfastCallLogDropping"}

            def look() -> bool:
                fired.update(watcher.firing())
                return wanted <= fired

            until("the alerts fire", look, 120)
            began = time.monotonic()
            assert scrape(house).value("holdfast_database_up") == 0
            assert time.monotonic() - began < 3, "a scrape does not wait for a database that is down"
        finally:
            database.start()
        assert all(search.result(60) for search in searches)
        keep_until(
            "the alerts clear",
            is_silent(watcher, *wanted),
            lambda: agent.call("file_stat", project="p", path="/kept-0.txt"),
            90,
        )
        assert not agent.call("file_search", project="p", query="falcon").is_error


@pytest.mark.req("SV-32.c")
def test_a_disk_that_is_nearly_full_is_noticed(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 60_000) as disk, ExitStack() as stack:
        house = stack.enter_context(served(disk.folder / "house", {}))
        watcher = stack.enter_context(prometheus(tmp_path / "prometheus", [target(house)]))
        until("it is watched", lambda: watcher.query("holdfast_disk_bytes < 70000000"))
        with disk.filled():
            until("the alert fires", fires(watcher, "HoldfastDiskFull"), FIRES_SECONDS)
        until("the alert clears", is_silent(watcher, "HoldfastDiskFull"), FIRES_SECONDS)
