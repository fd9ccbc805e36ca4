"""Undo history that an agent cannot wash out, over the doors of a real server."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.helpers.agent import Agent, command
from tests.helpers.changing import change_of, changes
from tests.helpers.disks import noise, noise_text
from tests.helpers.doors import House, until
from tests.helpers.reviewer import Reviewer
from tests.helpers.trees import plant


@pytest.mark.req("FS-39.a")
def test_the_state_before_an_agent_began_comes_back_after_it_tried_to_wash_the_history_out(
    root: Path, ended_state: Path
) -> None:
    (ended_state / "settings.yml").write_text("settings: {journal: {max_bytes: 2000000}}\n")
    plant(root, {"thesis.txt": "years of work\n", "large.txt": noise_text(1_000_000)})
    environment = {**os.environ, "HOLDFAST_STATE_DIR": str(ended_state)}
    with Agent([root], ended_state) as agent:
        person = Reviewer(agent, root, ended_state)
        first = change_of(agent.call("write_file", path="thesis.txt", content=""))
        for number in range(12):
            agent.call("write_file", path="thesis.txt", content=noise_text(500_000, number)).ok()
            agent.call("write_file", path="large.txt", content=str(number)).ok()
        agent.call("write_file", path="thesis.txt", content="gone").ok()
        until("contents in between have gone", lambda: not all(change["undoable"] for change in changes(agent)))
        assert agent.call("undo_change", change_id=first).code == "CONFLICT"
        assert agent.call("restore_before", change_id=first).code == "NOT_FOUND"
        restored = person.person("restore_before", change_id=first)
        assert (root / "thesis.txt").read_text() == "years of work\n"
        agent.call("undo_change", change_id=restored["restore_id"]).ok()
        assert (root / "thesis.txt").read_text() == "gone"
        for said in ("is again what it was", "nothing was changed"):
            done = subprocess.run(
                command("changes", "restore", first[:8]), env=environment, capture_output=True, text=True, check=True
            )
            assert said in done.stdout
            assert (root / "thesis.txt").read_text() == "years of work\n"


@pytest.mark.req("FS-39.a", "FS-39.c")
def test_a_full_history_refuses_changes_of_its_own_root_alone_and_the_person_is_warned(tmp_path: Path) -> None:
    house = House(tmp_path)
    other = tmp_path / "other"
    plant(other, {"a.txt": noise(80_000)})
    plant(house.root, {f"{number}.bin": noise(90_000, number) for number in range(10)})
    house.settings("settings: {journal: {max_bytes: 400000}}\n")
    try:
        with Agent([house.root], house.state) as loud, Agent([other], house.state) as quiet:
            replies = [loud.call("delete_file", path=f"{number}.bin") for number in range(10)]
            assert [reply.is_error for reply in replies] == [False] * 4 + [True] * 6
            assert {reply.code for reply in replies[4:]} == {"QUOTA_EXCEEDED"}
            assert "holdfast changes prune" in replies[4].error["message"]
            assert "journal.max_bytes" in replies[4].error["message"]
            assert len(list(house.root.glob("*.bin"))) == 6
            loud.call("write_file", path="new.txt", content="needs no room").ok()
            quiet.call("undo_change", change_id=change_of(quiet.call("delete_file", path="a.txt"))).ok()
            assert (other / "a.txt").read_bytes() == noise(80_000)
            for command in ("status", "doctor"):
                said = house.run(command).stdout
                assert f"The undo history of {house.root} is 100 % full" in said, said
            until("the log warns", lambda: "nearly full" in (house.state / "server.log").read_text())
            for number in range(4):
                deletion = change_of(replies[number])
                loud.call("undo_change", change_id=deletion).ok()
            assert len(list(house.root.glob("*.bin"))) == 10
    finally:
        house.end()
