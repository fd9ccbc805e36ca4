"""Disk shares: what open reviews, before-images and logs may take up, and that it is given back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.agent import Agent
from tests.helpers.disks import disk_use, noise_text
from tests.helpers.doors import House, until
from tests.helpers.reviewer import Reviewer

_SIZE = 3_000_000


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Give a house whose server ends with the test."""
    made = House(tmp_path)
    yield made
    made.end()


@pytest.mark.req("SV-14.b")
def test_open_reviews_have_a_byte_cap_and_rejecting_them_gives_the_disk_back(house: House) -> None:
    house.settings(f"settings: {{review: {{max_open_bytes: {9 * _SIZE}, wait_seconds: 0}}}}\n")
    for number in range(8):
        (house.root / f"{number}.txt").write_text(noise_text(_SIZE, number))
    with Agent([house.root], house.state) as agent:
        person = Reviewer(agent, house.root, house.state)
        agent.call("list_changes").ok()
        before = disk_use(house.state)
        replies = [
            agent.call(
                "propose_and_review",
                path=f"{number}.txt",
                old_string=noise_text(_SIZE, number)[:200],
                new_string=f"edit {number}",
            )
            for number in range(8)
        ]
        assert [reply.is_error for reply in replies] == [False] * 4 + [True] * 4, [reply.text for reply in replies]
        assert {reply.code for reply in replies[4:]} == {"QUOTA_EXCEEDED"}
        assert "holdfast review" in replies[4].error["message"]
        until("the log is given back", lambda: _wal(house) < 16_000_000)
        assert disk_use(house.state) - before < 16_000_000 + 4 * 3 * _SIZE
        for review in person.person("pending_reviews")["reviews"]:
            person.decide(review, "reject")
        assert list((house.state / "reviews").iterdir()) == []
        until("the log is given back", lambda: _wal(house) < 16_000_000)
        assert disk_use(house.state) - before < 16_000_000 + 4 * _SIZE
        again = agent.call("propose_and_review", path="7.txt", old_string=noise_text(_SIZE, 7)[:200], new_string="x")
        assert not again.is_error, again.text


def _wal(house: House) -> int:
    return (house.state / "state.db-wal").stat().st_size
