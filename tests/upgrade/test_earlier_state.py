"""What an earlier release left behind opens, migrates and works: changes, reviews, plans, stored files, on both databases."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.agent import Agent
from tests.helpers.databases import postgres_database
from tests.helpers.doors import House
from tests.upgrade.earlier import (
    COMMIT,
    PROJECT,
    Earlier,
    answer,
    committed_text,
    extract_source,
    fill,
    person,
    serve,
)

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("upgrade")]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def earlier(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres_server_url: str
) -> Iterator[Earlier]:
    """Give what the earlier code made, its last server killed while a plan was under way."""
    source = extract_source(COMMIT, tmp_path_factory.mktemp("source"))
    folder = tmp_path_factory.mktemp("earlier")
    if request.param == "sqlite":
        yield fill(House(folder), source)
    else:
        with postgres_database(postgres_server_url, migrated=False) as url:
            yield fill(House(folder, DATABASE_URL=url), source)


@pytest.fixture(scope="module")
def agent(earlier: Earlier) -> Iterator[Agent]:
    """Give a client of this checkout's server on the same state."""
    with serve(earlier.house) as connected:
        yield connected


def test_every_change_is_listed_and_each_kind_is_undone(earlier: Earlier, agent: Agent) -> None:
    root = earlier.house.root
    listed = {change["change_id"] for change in answer(agent, "list_changes", limit=200)["changes"]}
    assert set(earlier.change_ids.values()) <= listed
    for change_id in earlier.change_ids.values():
        agent.call("undo_change", change_id=change_id).ok()
    assert (root / "deleted.txt").read_text() == "precious\n"
    assert (root / "moved.txt").read_text() == "travels\n"
    assert not (root / "made").exists()
    assert not (root / "elsewhere.txt").exists()
    assert not (root / "edited.txt").exists()


def test_reviews_stand_where_they_stood_and_go_on(earlier: Earlier, agent: Agent) -> None:
    root, desk = earlier.house.root, person(earlier, agent)
    actions = {review["session_path"]: review["user_action"] for review in answer(agent, "list_reviews")["reviews"]}
    standing = {name: actions.get(path) for name, path in earlier.sessions.items()}
    assert standing["open"] == "PENDING"
    assert standing["approved"] == "APPROVE"
    desk.commit(earlier.sessions["approved"], "approved.txt").ok()
    (waiting,) = desk.waiting()
    desk.decide(waiting, "approve")
    desk.commit(earlier.sessions["open"], "open.txt").ok()
    again = desk.commit(earlier.sessions["rejected"], "rejected.txt")
    assert again.is_error
    for name in ("open", "approved", "committed"):
        assert (root / f"{name}.txt").read_text() == committed_text(name)
    assert "line 7\n" in (root / "rejected.txt").read_text()


def test_plans_of_every_state_go_on_from_there(earlier: Earlier, agent: Agent) -> None:
    root, desk = earlier.house.root, person(earlier, agent)

    def files(name: str) -> list[str]:
        return sorted(path.name for path in (root / name).glob("*.mp3"))

    plan_data = answer(agent, "get_plan", plan_id=earlier.plans["proposed"])
    desk.person("approve_plan", plan_id=earlier.plans["proposed"], plan_hash=plan_data["plan_hash"])
    for name in ("proposed", "approved"):
        assert len(files(name)) == 3
        agent.call("execute_plan", plan_id=earlier.plans[name]).ok()
        assert files(name) == []
    for name in ("proposed", "approved", "executed"):
        agent.call("undo_plan", plan_id=earlier.plans[name]).ok()
        assert files(name) == [f"{name}{number}.mp3" for number in range(3)]
    assert files("undone") == [f"undone{number}.mp3" for number in range(3)]


def test_a_plan_that_was_killed_under_way_is_finished_and_undone(earlier: Earlier, agent: Agent) -> None:
    folder: Path = earlier.house.root / "running"

    def names() -> Counter[str]:
        return Counter(path.name for path in folder.rglob("*.mp3"))

    everything = Counter(f"song{number}.mp3" for number in range(earlier.song_count))
    assert names() == everything
    agent.call("execute_plan", plan_id=earlier.plans["running"]).ok()
    assert names() == everything
    assert list(folder.glob("*.mp3")) == []
    agent.call("undo_plan", plan_id=earlier.plans["running"]).ok()
    assert len(list(folder.glob("*.mp3"))) == earlier.song_count


def test_what_is_held_is_counted(earlier: Earlier, agent: Agent) -> None:
    sizes = {name: len(f"{name}\n") for name in ("the heron waits", "the heron flies", "an owl")}
    usage = answer(agent, "project_list")["usage"]
    assert usage["file_bytes"] == sizes["the heron flies"]
    assert usage["history_bytes"] == sizes["the heron waits"] + sizes["an owl"]
    answer(agent, "file_delete", project=PROJECT, path="/birds.md")
    usage = answer(agent, "project_list")["usage"]
    assert (usage["file_bytes"], usage["history_bytes"]) == (0, sum(sizes.values()))
    newest = answer(agent, "file_history", project=PROJECT, path="/birds.md")["versions"][0]["version"]
    answer(agent, "file_restore", project=PROJECT, path="/birds.md", version=newest)


def test_stored_files_are_read_searched_and_restored(earlier: Earlier, agent: Agent) -> None:
    assert answer(agent, "file_read", project=PROJECT, path="/birds.md")["content"] == "the heron flies\n"
    hits = answer(agent, "file_search", project=PROJECT, query="heron flies")["chunks"]
    assert [hit["file_path"] for hit in hits] == ["/birds.md"]
    versions = answer(agent, "file_history", project=PROJECT, path="/birds.md")["versions"]
    agent.call("file_restore", project=PROJECT, path="/birds.md", version=versions[-1]["version"]).ok()
    assert answer(agent, "file_read", project=PROJECT, path="/birds.md")["content"] == "the heron waits\n"
    versions = answer(agent, "file_history", project=PROJECT, path="/gone.md")["versions"]
    agent.call("file_restore", project=PROJECT, path="/gone.md", version=versions[-1]["version"]).ok()
    assert answer(agent, "file_read", project=PROJECT, path="/gone.md")["content"] == "an owl\n"
