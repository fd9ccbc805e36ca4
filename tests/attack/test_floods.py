"""The short form of `benchmarks/fairness.py`: floods beside a quiet client, who hardly notices."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.fairness import DOORS, FloodResult, prepare, run_flood
from benchmarks.measure.floods import Target
from tests.helpers.doors import House

pytestmark = [pytest.mark.alone, pytest.mark.timeout(240), pytest.mark.req("SV-13")]

SECONDS = 0.6
WORST_MS = 1000.0
ROOM_MS = 300.0
"""What the middle answer may take beside a flood, on a machine that may be busy with other work as well."""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, Target, Path]]:
    """Give one server for all floods, on SQLite."""
    folder = tmp_path_factory.mktemp("floods")
    house = prepare(folder / "house", None, directories=20, csv_rows=100_000)
    with house.serve(str(house.root)):
        yield house, Target(int(house.facts()["port"]), str(house.state), str(house.root), house.token), folder


@pytest.mark.parametrize(
    "name",
    [
        "jq_loops", "searches", "appends", "names", "names_local", "initializes", "websockets", "half_sent",
        "documents", "proposals", "cancels", "tool_lists",
    ],
)  # fmt: skip
def test_a_flood_by_one_client_leaves_the_others_their_answers(target: tuple[House, Target, Path], name: str) -> None:
    house, facts, folder = target
    result = run_flood(name, int(house.facts()["pid"]), facts, SECONDS, folder)
    if not is_fair(result):
        result = run_flood(name, int(house.facts()["pid"]), facts, SECONDS, folder)
    assert is_fair(result), "\n".join(result.row("sqlite", door) for door in DOORS)


def is_fair(result: FloodResult) -> bool:
    """Return whether the quiet client was answered through both doors: rightly, soon, and never after more than a second."""
    return all(
        not result.parts[door, "during"].wrong
        and result.parts[door, "during"].percentile(1) <= max(WORST_MS, 2 * result.parts[door, "before"].percentile(1))
        and result.parts[door, "during"].percentile(0.5) <= ROOM_MS + 2 * result.parts[door, "before"].percentile(0.5)
        for door in DOORS
    )
