"""A minute of torture of the changes: kills, errors and power cuts at a sample of all system calls; nothing is lost.

`make torture` strikes at every one of them. A failure names the command that repeats it.
"""

import pytest

from tests.torture.changes import hunt, torture
from tests.torture.changes_campaign import ERROR, KILL, POWER, RECOVERY
from tests.torture.changes_editor import race
from tests.torture.changes_scenarios import SCENARIOS

SEED = 2026
ACROSS = ["plan-across", "undo-plan-across", "move-across", "folder-across"]
ON_ONE = ["replace", "delete-tree", "plan", "undo-delete"]


def problems(part: str, names: list[str], sample: int) -> list[tuple[str, str]]:
    tally = torture(part, names, sample=sample, seed=SEED)
    assert tally.points >= sample, str(tally)
    return tally.failures


@pytest.mark.timeout(300)
@pytest.mark.req("OR-41.a", "FS-17.b", "FS-38.a")
def test_a_kill_before_any_system_call_loses_nothing_and_the_next_start_goes_on() -> None:
    assert problems(KILL, list(SCENARIOS), 2) == []


@pytest.mark.timeout(300)
@pytest.mark.req("OR-41.a")
def test_a_kill_of_the_recovery_from_a_kill_changes_nothing_of_that() -> None:
    assert problems(RECOVERY, ["plan-across", "replace"], 1) == []


@pytest.mark.timeout(300)
@pytest.mark.req("OR-41.b")
def test_an_error_from_any_system_call_is_told_and_loses_nothing() -> None:
    assert problems(ERROR, list(SCENARIOS), 2) == []


@pytest.mark.timeout(300)
@pytest.mark.req("OR-41.c")
def test_a_power_cut_at_any_point_loses_nothing_whichever_disk_commits_first() -> None:
    assert problems(POWER, [*ACROSS, *ON_ONE], 1) == []


@pytest.mark.timeout(300)
@pytest.mark.req("OR-41.e")
def test_the_torture_notices_faults_that_are_put_in() -> None:
    faults = [
        "no-directory-sync",
        "no-file-sync-across",
        "gone-before-published",
        "published-over",
        "intent-not-durable",
    ]
    assert hunt([*faults, "outcome-first-plan", "copy-not-compared"], SEED) == []


@pytest.mark.timeout(300)
@pytest.mark.req("FS-36.c")
def test_no_save_of_another_program_is_lost_to_an_edit() -> None:
    races = race(300, SEED)
    assert races.lost == [], str(races)
    assert races.applied, str(races)
