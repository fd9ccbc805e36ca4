"""The list of changes and undo through a real client."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.text.budget import encode_cursor
from tests.helpers.agent import LEGACY, MODERN, Agent
from tests.helpers.changing import change_of, changes, edit
from tests.helpers.disks import noise_text
from tests.helpers.trees import harvest, plant


@pytest.mark.req("FS-38.a", "FS-38.b")
def test_every_verb_is_listed_and_taken_back_newest_first(agent: Agent, root: Path) -> None:
    plant(root, {"keep.txt": "keep", "tree": {"x": "1", "sub": {"y": b"\xff\x00"}}})
    original = harvest(root)
    agent.call("create_directory", path="new/deep").ok()
    agent.call("write_file", path="new/deep/a.txt", content="one").ok()
    agent.call("write_file", path="new/deep/a.txt", content="two").ok()
    edit(agent, "new/deep/a.txt", ("two", "three"))
    agent.call("append_text", path="new/deep/a.txt", content="!").ok()
    agent.call("move_file", source="new/deep/a.txt", destination="b.txt").ok()
    agent.call("delete_file", path="b.txt").ok()
    assert agent.call("delete_file", path="tree").code == "NOT_EMPTY"
    agent.call("delete_file", path="tree", recursive=True).ok()
    agent.call("move_file", source="new", destination="renamed").ok()
    listed = changes(agent)
    assert [change["kind"] for change in listed] == [
        "move",
        "delete",
        "delete",
        "move",
        "append",
        "edit",
        "write",
        "write",
        "mkdir",
    ]
    assert all(change["undoable"] for change in listed)
    for change in listed:
        agent.call("undo_change", change_id=change["change_id"]).ok()
    assert harvest(root) == original
    assert not (root / "new").exists()


@pytest.mark.req("FS-38.b")
def test_the_list_of_changes_comes_in_pages(agent: Agent, root: Path) -> None:
    for number in range(5):
        agent.call("write_file", path="a.txt", content=str(number)).ok()
    first = agent.call("list_changes", limit=3).ok().data
    second = agent.call("list_changes", limit=3, cursor=first["next_cursor"]).ok().data
    assert (len(first["changes"]), len(second["changes"])) == (3, 2)
    assert second.get("next_cursor") is None
    assert agent.call("list_changes", cursor="nonsense").code == "INVALID_ARGUMENT"


@pytest.mark.req("FS-38.b")
def test_an_undo_can_be_undone(agent: Agent, root: Path) -> None:
    plant(root, {"a.txt": "one"})
    change = change_of(agent.call("write_file", path="a.txt", content="two"))
    undone = change_of(agent.call("undo_change", change_id=change))
    assert harvest(root) == {"a.txt": b"one"}
    agent.call("undo_change", change_id=undone).ok()
    assert harvest(root) == {"a.txt": b"two"}


@pytest.mark.req("FS-38.b", "SV-02.b")
def test_changes_of_other_roots_are_not_found(agent: Agent, root: Path, state_dir: Path) -> None:
    plant(root, {"a.txt": "one"})
    change = change_of(agent.call("write_file", path="a.txt", content="two"))
    other = root.parent / "project-secret"
    other.mkdir()
    with Agent([other], state_dir) as stranger:
        assert changes(stranger) == []
        assert stranger.call("undo_change", change_id=change).code == "NOT_FOUND"
    assert harvest(root) == {"a.txt": b"two"}


@pytest.mark.req("FS-38.c")
def test_undo_never_overwrites_a_newer_change(agent: Agent, root: Path) -> None:
    plant(root, {"a.txt": "one"})
    first = change_of(agent.call("write_file", path="a.txt", content="two"))
    second = change_of(agent.call("write_file", path="a.txt", content="three"))
    reply = agent.call("undo_change", change_id=first)
    assert reply.code == "CONFLICT"
    assert second in reply.error["message"]
    (root / "a.txt").write_text("by hand")
    assert agent.call("undo_change", change_id=second).code == "CONFLICT"
    assert harvest(root) == {"a.txt": b"by hand"}


@pytest.mark.req("FS-38.d")
def test_over_the_cap_images_in_between_go_and_too_large_a_change_is_refused(root: Path, ended_state: Path) -> None:
    (ended_state / "settings.yml").write_text("settings: {journal: {max_bytes: 250000}}\n")
    texts = [noise_text(100_000, number) for number in range(7)]
    plant(root, {"big.bin": b"x" * 300_000, "a.txt": texts[0]})
    with Agent([root], ended_state) as agent:
        assert agent.call("delete_file", path="big.bin").code == "PAYLOAD_TOO_LARGE"
        assert agent.call("write_file", path="big.bin", content="").code == "PAYLOAD_TOO_LARGE"
        for text in texts[1:6]:
            agent.call("write_file", path="a.txt", content=text).ok()
    with Agent([root], ended_state) as agent:
        agent.call("write_file", path="a.txt", content=texts[6]).ok()
        listed = _when_evicted(agent)
        assert listed[0]["undoable"]
        assert listed[-1]["undoable"]
        assert not listed[-2]["undoable"]
    assert (root / "big.bin").stat().st_size == 300_000


@pytest.mark.req("FS-38.d")
def test_too_large_a_change_is_made_without_undo_where_that_is_allowed(root: Path, ended_state: Path) -> None:
    (ended_state / "settings.yml").write_text("settings: {journal: {max_bytes: 1000, allow_unjournalled: true}}\n")
    plant(root, {"big.bin": b"x" * 3_000})
    with Agent([root], ended_state) as agent:
        change = change_of(agent.call("delete_file", path="big.bin"))
        assert not changes(agent)[0]["undoable"]
        assert agent.call("undo_change", change_id=change).code == "NOT_FOUND"
    assert harvest(root) == {}


def _when_evicted(agent: Agent) -> list[dict[str, Any]]:
    """Eviction goes on in the background: ask until the second change says that it cannot be undone."""
    give_up_at = time.monotonic() + 20
    while (listed := changes(agent))[-2]["undoable"] and time.monotonic() < give_up_at:
        pass
    return listed


@pytest.mark.req("FS-38.a")
def test_a_change_beneath_a_name_that_is_no_text_is_listed_and_undone(agent: Agent, root: Path) -> None:
    odd = os.fsencode(root) + b"/d\xff"
    os.mkdir(odd)
    (root / "link").symlink_to(os.fsdecode(odd))
    agent.call("write_file", path="link/f", content="one").ok()
    change = agent.call("write_file", path="link/f", content="two").ok().text.split("change ")[1].strip()
    listed = agent.call("list_changes", limit=1).ok().data["changes"][0]
    assert (listed["change_id"], listed["path"]) == (change, f"{root}/d\ufffd/f")
    agent.call("undo_change", change_id=change).ok()
    assert (root / "link/f").read_text() == "one"


@pytest.mark.req("FS-13.a")
@pytest.mark.parametrize("tool", ["list_directory", "directory_tree", "search_files", "grep_content", "list_changes"])
def test_a_forged_cursor_is_refused_in_words(agent: Agent, tool: str) -> None:
    forged = encode_cursor({"after": "\ud800", "in": "\ud800/", "path": "\ud800", "line": 1, "seq": 2**80})
    needed = {"search_files": {"path": ".", "pattern": "**"}, "grep_content": {"pattern": "x"}, "list_changes": {}}
    reply = agent.call(tool, **needed.get(tool, {"path": "."}), cursor=forged)
    assert reply.code == "INVALID_ARGUMENT"


@pytest.mark.req("FS-39.b")
@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_the_list_of_changes_says_which_client_made_each(era: str, root: Path, state_dir: Path) -> None:
    plant(root, {"a.txt": "one"})
    with (
        Agent([root], state_dir, mode=era, name="desk", version="1.2") as desk,
        Agent([root], state_dir, mode=era, name="rival\x1b[2J\n", version="3") as rival,
    ):
        written = change_of(desk.call("write_file", path="a.txt", content="two"))
        rival.call("undo_change", change_id=written).ok()
        reply = desk.call("list_changes").ok()
    clients = [(change["kind"], change["client"]) for change in reply.data["changes"]]
    assert clients == [("undo", "rival[2J 3"), ("write", "desk 1.2")]
    in_text = [line.partition(" by ")[2].partition(" (")[0] for line in reply.text.splitlines()]
    assert in_text == ["rival[2J 3", "desk 1.2"]
