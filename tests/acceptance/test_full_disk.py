"""A full disk is STORAGE_FULL everywhere, with nothing half done, and all is well once there is room again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import StorageFull
from tests.helpers.agent import Agent
from tests.helpers.disks import SmallDisk, noise, small_disk
from tests.helpers.doors import House
from tests.helpers.trees import harvest

_TEXT = noise(60_000).hex()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """Give a disk of 12 MB."""
    with small_disk(tmp_path / "disk", 12_000) as made:
        yield made


@pytest.mark.req("SV-14.c")
def test_a_full_disk_of_the_state_folder_refuses_every_change_and_loses_nothing(
    disk: SmallDisk, tmp_path: Path
) -> None:
    root, state = tmp_path / "project", disk.folder / "state"
    root.mkdir()
    (root / "a.txt").write_text(_TEXT)
    (root / "tree").mkdir()
    (root / "tree" / "b.txt").write_text(_TEXT)
    with Agent([root], state) as agent:
        agent.call("file_write", project="p", path="/kept.txt", content="kept").ok()
        agent.call("write_file", path=str(root / "made.txt"), content="made").ok()
        before = harvest(root)
        with disk.filled():
            calls: list[tuple[str, dict[str, Any]]] = [
                ("write_file", {"path": str(root / "a.txt"), "content": "new"}),
                (
                    "edit_files",
                    {"files": [{"path": str(root / "a.txt"), "edits": [{"old_string": _TEXT, "new_string": "x"}]}]},
                ),
                ("delete_file", {"path": str(root / "tree"), "recursive": True}),
                (
                    "propose_and_review",
                    {"path": str(root / "a.txt"), "edits": [{"old_string": _TEXT, "new_string": "x"}]},
                ),
                ("file_write", {"project": "p", "path": "/new.txt", "content": _TEXT}),
            ]
            _use_up_the_log(agent, root / "log.txt")
            replies = [(tool, agent.call(tool, **arguments)) for tool, arguments in calls]
            refused = {tool: reply for tool, reply in replies if reply.refusals and set(reply.refusals) <= disk.codes}
            assert len(refused) == len(calls), [(tool, reply.text) for tool, reply in replies if tool not in refused]
            (root / "log.txt").unlink()
            assert harvest(root) == before
            assert agent.call("file_read", project="p", path="/kept.txt").text == "kept"
            assert agent.call("read_text_file", path=str(root / "made.txt")).text == "made"
        assert not StorageFull.retryable
        assert agent.call("file_write", project="p", path="/new.txt", content=_TEXT).ok()
        assert agent.call("write_file", path=str(root / "a.txt"), content="new").ok()
    assert harvest(root) == {**before, "a.txt": b"new"}


@pytest.mark.req("SV-14.c")
def test_a_full_disk_of_a_root_leaves_its_files_as_they_were(disk: SmallDisk, tmp_path: Path) -> None:
    root, elsewhere = disk.folder / "project", tmp_path / "elsewhere"
    root.mkdir()
    elsewhere.mkdir()
    (root / "a.txt").write_text("a" * 1000)
    (elsewhere / "big").mkdir()
    (elsewhere / "big" / "one.bin").write_bytes(noise(2_000_000))
    with Agent([root, elsewhere], tmp_path / "state") as agent:
        before = harvest(root)
        with disk.filled():
            refused = [
                agent.call("write_file", path=str(root / "a.txt"), content="b" * 1_000_000),
                agent.call("write_file", path=str(root / "n.txt"), content="b" * 1_000_000),
                agent.call("move_file", source=str(elsewhere / "big"), destination=str(root / "big")),
            ]
            assert all(set(reply.refusals) <= disk.codes and reply.refusals for reply in refused), [
                reply.text for reply in refused
            ]
        assert harvest(root) == before
        assert (elsewhere / "big" / "one.bin").stat().st_size == 2_000_000
        agent.call("move_file", source=str(elsewhere / "big"), destination=str(root / "big")).ok()


@pytest.mark.req("SV-14.c")
def test_a_server_that_cannot_start_on_a_full_disk_says_so_in_a_line(disk: SmallDisk, tmp_path: Path) -> None:
    house = House(tmp_path)
    house.state = disk.folder / "state"
    house.state.mkdir(mode=0o700)
    with disk.filled():
        done = house.run("review")
        assert done.returncode == StorageFull.exit_status or disk.codes != {"STORAGE_FULL"}, done.stderr
        assert "full" in done.stderr or disk.codes != {"STORAGE_FULL"}
        assert "Traceback" not in done.stderr
        with house.relay() as pipes:
            answer = pipes.ask(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})
    assert "Traceback" not in str(answer)
    assert ".py" not in str(answer)


def _use_up_the_log(agent: Agent, path: Path) -> None:
    """Write small files until the room that the write-ahead log has already is used up."""
    for number in range(400):
        if agent.call("write_file", path=str(path), content=noise(25_000, number).hex()).refusals:
            return
    raise AssertionError("the disk did not fill up")
