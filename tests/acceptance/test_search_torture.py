"""Some hundred races between searches and changes: old text is never shown, and faults that would show it are noticed.

`python -m tests.torture.races` does the same for as many rounds as you like, and hunts every mutant on both databases.
"""

import pytest

from tests.torture.races import Plan, run


@pytest.mark.req("SE-15.c")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_old_text_is_never_shown_however_searches_and_changes_race(engine: str, request: pytest.FixtureRequest) -> None:
    server_url = request.getfixturevalue("postgres_server_url") if engine == "postgres" else None
    report = run(Plan(engine, rounds=400), server_url)
    assert report.problems == [], str(report)
    assert report.rounds == 400
    assert report.overlapping > 5 and report.hits > 200, str(report)


@pytest.mark.req("SE-15.c")
@pytest.mark.parametrize("mutant", ["finds what is deleted", "trusts the index", "remembers passages"])
def test_a_search_that_shows_old_text_is_caught(mutant: str) -> None:
    reports = (run(Plan("sqlite", rounds=2000, seed=seed, mutant=mutant)) for seed in range(2026, 2030))
    assert any(report.problems for report in reports), "no seed met the race, however busy the machine"
