"""The short form of `benchmarks/fairness.py`: floods beside a quiet client, who hardly notices."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.fairness import DOORS, FloodResult, prepare, run_flood
from benchmarks.measure.floods import Target
from tests.helpers.databases import postgres_database
from tests.helpers.doors import House
from tests.helpers.valkey import valkey_server

pytestmark = [pytest.mark.alone, pytest.mark.timeout(240), pytest.mark.req("SV-13.a")]

SECONDS = 0.6
WORST_MS = 1000.0
ROOM_MS = 300.0
"""What the middle answer may take beside a flood, on a machine that may be busy with other work as well."""
PEAK_MB, LEFT_MB = 400.0, 200.0
"""What a flood may add to a server's memory while it lasts, and what of it may be left after it."""


Servers = tuple[dict[int, Target], Path]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Give one server for all floods, on SQLite."""
    folder = tmp_path_factory.mktemp("floods")
    house = prepare(folder / "house", {}, directories=20, csv_rows=100_000)
    with house.serve(str(house.root)):
        yield targets_of(house), folder


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, postgres_server_url: str) -> Iterator[Servers]:
    """Give two servers on one PostgreSQL and one Valkey."""
    folder = tmp_path_factory.mktemp("pair")
    with ExitStack() as stack:
        url = stack.enter_context(postgres_database(postgres_server_url))
        shared = {"DATABASE_URL": url, "REDIS_URL": stack.enter_context(valkey_server()).url}
        first = prepare(folder / "first", shared, directories=20, csv_rows=1000)
        second = prepare(folder / "second", shared, directories=20, csv_rows=1000, is_store_filled=True)
        for house in (first, second):
            stack.enter_context(house.serve(str(house.root)))
        yield targets_of(first, second), folder


def targets_of(*houses: House) -> dict[int, Target]:
    """Return what to flood, by process id."""
    return {
        int(house.facts()["pid"]): Target(int(house.facts()["port"]), str(house.state), str(house.root), house.token)
        for house in houses
    }


@pytest.mark.parametrize(
    "name",
    [
        "jq_loops", "searches", "appends", "names", "names_local", "initializes", "websockets", "half_sent",
        "documents", "proposals", "cancels", "tool_lists", "tiny_chunks", "many_fields", "websocket_pings", "local_writes",
        "page_names", "page_slices", "page_documents", "page_streams_reopened", "sign_ins", "quoted_cookies", "shells",
    ],
)  # fmt: skip
def test_a_flood_by_one_client_leaves_the_others_their_answers(server: Servers, name: str) -> None:
    assert_fair(name, server)


@pytest.mark.parametrize("name", ["searches", "appends", "initializes", "slices"])
def test_a_flood_at_two_servers_of_one_database_leaves_the_others_their_answers_at_both(
    pair: Servers, name: str
) -> None:
    assert_fair(name, pair)


def assert_fair(name: str, servers: Servers) -> None:
    """Run a flood, once more when the machine was busy with something else, and expect the bar to be met."""
    targets, folder = servers
    results = run_flood(name, targets, SECONDS, folder)
    if not all(map(is_fair, results)):
        results = run_flood(name, targets, SECONDS, folder)
    assert all(map(is_fair, results)), "\n".join(result.row("", door) for result in results for door in DOORS)


def is_fair(result: FloodResult) -> bool:
    """Return whether the quiet client was answered at both doors, rightly and soon, and the memory was bounded and given back."""
    before, peak, after = result.memory
    is_bounded = peak <= before + PEAK_MB and after <= before + LEFT_MB
    return is_bounded and all(
        not result.parts[door, "during"].wrong
        and result.parts[door, "during"].percentile(1) <= max(WORST_MS, 2 * result.parts[door, "before"].percentile(1))
        and result.parts[door, "during"].percentile(0.5) <= ROOM_MS + 2 * result.parts[door, "before"].percentile(0.5)
        for door in DOORS
    )
