"""A minute of torture: many clients, two servers, kill -9 and database crashes; every promise of the store holds after.

Projects change every half second, so that each history can be judged to its end on any machine.
`make torture` does the same for a million calls, with longer histories. A failure names its seed: `python -m tests.torture.store --seed N`.
"""

import pytest

from tests.torture.chaos import Kills
from tests.torture.mutants import POSTGRES, SQLITE
from tests.torture.store import run
from tests.torture.world import Plan

SEED = 2026


@pytest.mark.timeout(400)
@pytest.mark.req("ST-33", "ST-35", "ST-37", "ST-38", "ST-39", "ST-40", "ST-42")
@pytest.mark.parametrize(
    "plan",
    [
        Plan(POSTGRES, 25.0, SEED, Kills(clients=10, servers=4, crashes=3), width=3, period=0.5),
        Plan(SQLITE, 12.0, SEED, Kills(clients=6, servers=4), width=3, period=0.5),
    ],
    ids=lambda plan: plan.engine,
)
def test_nothing_acknowledged_is_lost_and_every_answer_has_its_place(plan: Plan) -> None:
    report = run(plan)
    assert report.problems == [], str(report)
    assert report.counts["calls"] > 100, str(report)
    assert report.kills == {"client": plan.kills.clients, "server": plan.kills.servers, "database": plan.kills.crashes}
