"""What the person sees and does with reviews: the agent's reason, sizes and ranges, changes of agents that left, the closed ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.agent import Agent
from tests.helpers.doors import House
from tests.helpers.person import Person
from tests.helpers.trees import harvest

pytestmark = pytest.mark.timeout(240)

TEXT = "".join(f"line {number}\n" for number in range(1, 31))
HOSTILE = "because\n\x1b[31m\u202eyou must approve\x07 <script>alert(1)</script>"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Give a house whose reviews do not wait."""
    made = House(tmp_path)
    made.settings("settings:\n  review:\n    wait_seconds: 0.1\n")
    yield made
    made.run("stop")
    made.end()


@pytest.fixture
def agent(house: House) -> Iterator[Agent]:
    """Give an agent that works in the house."""
    (house.root / "a.txt").write_text(TEXT)
    with Agent([house.root], house.state, name="claude-code", version="2.1") as client:
        yield client


@pytest.fixture
def person(agent: Agent, house: House) -> Person:
    """Give the person of the house, once its server runs."""
    agent.call("list_allowed_directories").ok()
    return Person(house.state)


def propose(agent: Agent, **arguments: Any) -> dict[str, Any]:
    return agent.call("propose_and_review", **{"path": "a.txt", **arguments}).ok().data


def edits(*numbers: int) -> list[dict[str, str]]:
    return [{"old_string": f"line {number}\n", "new_string": f"LINE {number}\nmore\n"} for number in numbers]


def the_open(person: Person) -> dict[str, Any]:
    reviews: list[dict[str, Any]] = person.call("pending_reviews")["reviews"]
    (review,) = reviews
    return review


def approve(person: Person) -> dict[str, Any]:
    shown = person.call("show_review", review_id=the_open(person)["review_id"])
    person.call("decide_review", review_id=shown["review_id"], shown_hash=shown["shown_hash"], decision="approve")
    return person.call("show_review", review_id=shown["review_id"])


@pytest.mark.req("SV-41.a")
def test_a_list_says_who_proposed_why_and_how_much_and_a_review_has_its_ranges(agent: Agent, person: Person) -> None:
    propose(agent, edits=edits(3, 20), note="the names\n were  wrong")

    row = the_open(person)
    assert (row["client"], row["client_version"], row["note"]) == ("claude-code", "2.1", "the names were wrong")
    assert (row["added"], row["removed"], row["hunks"]) == (4, 2, 2)
    shown = person.call("show_review", review_id=row["review_id"])
    ranges = ("before_start", "before_lines", "after_start", "after_lines")
    assert [[hunk[name] for name in ranges] for hunk in shown["hunks"]] == [[1, 6, 1, 7], [17, 7, 18, 8]]
    for hunk in shown["hunks"]:
        new = shown["after"].splitlines(keepends=True)[hunk["after_start"] - 1 :][: hunk["after_lines"]]
        assert "".join(line[1:] for line in hunk["body"].splitlines(keepends=True) if line[0] in " +") == "".join(new)
    assert (shown["client"], shown["note"]) == ("claude-code", "the names were wrong")
    (listed,) = agent.call("list_reviews").ok().data["reviews"]
    assert listed["note"] == "the names were wrong"


@pytest.mark.req("SV-41.a")
def test_a_reason_is_bounded_inert_and_part_of_what_is_approved(agent: Agent, person: Person, house: House) -> None:
    assert agent.call("propose_and_review", path="a.txt", edits=edits(1), note="x" * 501).code == "INVALID_ARGUMENT"
    propose(agent, edits=edits(1), note=HOSTILE)
    row = the_open(person)
    said = house.run("review", "show").stdout
    assert "claude-code says: because " in said
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "\x07" not in said
    before = person.call("show_review", review_id=row["review_id"])["shown_hash"]
    person.call("decide_review", review_id=row["review_id"], shown_hash=before, decision="revise", reason="again")
    session = agent.call("list_reviews").ok().data["reviews"][0]["session_path"]
    propose(agent, edits=edits(2), session_path=session, note="another reason")
    assert the_open(person)["note"] == "another reason"
    assert person.call("show_review", review_id=row["review_id"])["shown_hash"] != before


@pytest.mark.req("SV-41.b")
def test_the_person_makes_an_approved_change_of_an_agent_that_left(agent: Agent, person: Person, house: House) -> None:
    propose(agent, edits=edits(3))
    review_id = the_open(person)["review_id"]
    pending = person.call("show_review", review_id=review_id)
    error = person.refused("apply_review", review_id=review_id, shown_hash=pending["shown_hash"])
    assert (error["code"], "not approved" in error["message"]) == ("CONFLICT", True)
    shown = approve(person)
    assert person.refused("apply_review", review_id=review_id, shown_hash="0" * 64)["code"] == "CONFLICT"
    assert (house.root / "a.txt").read_text() == TEXT

    applied = person.call("apply_review", review_id=review_id, shown_hash=shown["shown_hash"])

    assert (house.root / "a.txt").read_text() == TEXT.replace("line 3\n", "LINE 3\nmore\n")
    assert applied["change_id"] == review_id
    assert person.refused("apply_review", review_id=review_id, shown_hash=shown["shown_hash"])["code"] == "CONFLICT"
    (closed,) = person.call("closed_reviews")["reviews"]
    assert (closed["outcome"], closed["change_id"], closed["change_status"]) == ("committed", review_id, "EXECUTED")
    assert (closed["client"], closed["added"], closed["removed"]) == ("claude-code", 2, 1)
    person.call("undo_for_person", change_id=applied["change_id"])
    assert (house.root / "a.txt").read_text() == TEXT
    assert person.call("closed_reviews")["reviews"][0]["change_status"] == "UNDONE"


@pytest.mark.req("SV-41.b")
def test_an_applied_change_is_merged_with_what_happened_since_or_is_a_conflict(
    agent: Agent, person: Person, house: House
) -> None:
    propose(agent, edits=edits(3))
    shown = approve(person)
    (house.root / "a.txt").write_text(TEXT.replace("line 30\n", "by hand\n"))

    merged = person.call("apply_review", review_id=shown["review_id"], shown_hash=shown["shown_hash"])

    assert "+by hand" in merged["merged_diff"]
    text = (house.root / "a.txt").read_text()
    assert "LINE 3\nmore\n" in text
    assert text.endswith("by hand\n")
    propose(agent, edits=edits(5))
    shown = approve(person)
    (house.root / "a.txt").write_text("something else entirely\n")
    before = harvest(house.root)
    error = person.refused("apply_review", review_id=shown["review_id"], shown_hash=shown["shown_hash"])
    assert error["code"] == "CONFLICT"
    assert harvest(house.root) == before


@pytest.mark.req("SV-41.b")
@pytest.mark.parametrize("is_approved", [False, True])
def test_a_withdrawn_review_can_never_be_made(agent: Agent, person: Person, house: House, *, is_approved: bool) -> None:
    session = propose(agent, edits=edits(3))["session_path"]
    review_id = the_open(person)["review_id"]
    if is_approved:
        approve(person)

    person.call("withdraw_review", review_id=review_id, channel="console")

    assert agent.call("commit_review", session_path=session, original_path="a.txt").code == "CONFLICT"
    assert person.refused("withdraw_review", review_id=review_id)["code"] == "CONFLICT"
    assert person.call("pending_reviews")["reviews"] == []
    (closed,) = person.call("closed_reviews")["reviews"]
    assert (closed["outcome"], closed["decided_by"]) == ("rejected", "console")
    assert "change_id" not in closed
    assert (house.root / "a.txt").read_text() == TEXT


@pytest.mark.req("SV-41.b")
def test_the_commands_apply_and_withdraw(agent: Agent, person: Person, house: House) -> None:
    propose(agent, edits=edits(3))
    assert "No review is approved" in house.run("review", "apply").stderr
    approve(person)
    done = house.run("review", "apply")
    assert done.returncode == 0, done.stderr
    assert "Done: " in done.stdout
    assert "holdfast undo" in done.stdout
    assert "LINE 3" in (house.root / "a.txt").read_text()
    propose(agent, edits=edits(5))
    approve(person)
    closed = house.run("review", "withdraw")
    assert closed.returncode == 0, closed.stderr
    assert "LINE 5" not in (house.root / "a.txt").read_text()
    assert house.run("review", "list").stdout == "No reviews are open.\n"


@pytest.mark.req("SV-41.b")
def test_the_closed_reviews_come_by_page(agent: Agent, person: Person) -> None:
    for number in range(1, 6):
        propose(agent, edits=edits(number))
        person.call("withdraw_review", review_id=the_open(person)["review_id"])
    whole = person.call("closed_reviews")["reviews"]
    assert len(whole) == 5
    first = person.call("closed_reviews", limit=2)
    second = person.call("closed_reviews", limit=2, cursor=first["next_cursor"])
    third = person.call("closed_reviews", limit=2, cursor=second["next_cursor"])
    assert first["reviews"] + second["reviews"] + third["reviews"] == whole
    assert "next_cursor" not in third


@pytest.mark.req("SV-41.b")
def test_no_agent_applies_or_withdraws(agent: Agent, person: Person, house: House) -> None:
    propose(agent, edits=edits(3))
    shown = approve(person)
    for tool, arguments in {
        "apply_review": {"review_id": shown["review_id"], "shown_hash": shown["shown_hash"]},
        "withdraw_review": {"review_id": shown["review_id"]},
        "closed_reviews": {},
    }.items():
        assert agent.call(tool, **arguments).code == "NOT_FOUND"
    assert (house.root / "a.txt").read_text() == TEXT
