"""The person's commands on changes: list, show, compare, undo, redo and prune, with a server and without one."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.agent import Agent, command
from tests.helpers.changing import change_of, edit
from tests.helpers.doors import House, is_alive, until
from tests.helpers.terminal import answered, output_of
from tests.helpers.trees import harvest, plant

pytestmark = pytest.mark.timeout(240)

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
HOSTILE = "lo\x1b[31mose\u202e\x9b1m\r.txt"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Give a house whose project is empty; its server ends with the test."""
    made = House(tmp_path)
    (made.root / "a.txt").unlink()
    yield made
    made.run("stop")
    made.end()


@pytest.fixture
def desk(house: House) -> Iterator[Agent]:
    """Give a client that calls itself desk."""
    with Agent([house.root], house.state, name="desk", version="1.2") as agent:
        yield agent


@pytest.fixture
def rival(house: House, desk: Agent) -> Iterator[Agent]:
    """Give another client beside it."""
    with Agent([house.root], house.state, name="rival", version="3") as agent:
        yield agent


def data(house: House, *words: str, status: int = 0) -> Any:
    """Run a command with --json and return what it printed."""
    ran = house.run(*words, "--json", timeout=120)
    assert ran.returncode == status, ran.stdout + ran.stderr
    return json.loads(ran.stdout)


def text(house: House, *words: str, status: int = 0) -> str:
    """Run a command and return what it printed."""
    ran = house.run(*words, timeout=120)
    assert ran.returncode == status, ran.stdout + ran.stderr
    assert not STEERING.search(ran.stdout + ran.stderr)
    return ran.stdout


def kinds(listed: dict[str, Any]) -> list[tuple[str, str]]:
    return [("you" if change["is_yours"] else change["client"], change["kind"]) for change in listed["changes"]]


def write(agent: Agent, path: str, content: str) -> str:
    return change_of(agent.call("write_file", path=path, content=content))


@pytest.mark.req("FS-38.e", "FS-39.b")
def test_the_list_says_who_when_and_what_and_takes_filters(house: House, desk: Agent, rival: Agent) -> None:
    assert "No program has changed a file" in text(house, "changes")
    plant(house.root, {"src": {"a.py": "1\n"}, "doc.txt": "1\n"})
    first = write(desk, "src/a.py", "2\n")
    write(rival, "doc.txt", "2\n")
    desk.call("delete_file", path="doc.txt").ok()
    assert kinds(data(house, "changes")) == [("desk", "delete"), ("rival", "write"), ("desk", "write")]
    lines = text(house, "changes", str(house.root)).splitlines()
    assert len(lines) == 3
    assert re.fullmatch(rf"{first[:8]}  just now  desk 1\.2  write     src/a\.py  \(2 B\)", lines[2])
    assert kinds(data(house, "changes", "--client", "RIVAL")) == [("rival", "write")]
    assert kinds(data(house, "changes", "--client", "desk 1.2", "--kind", "delete")) == [("desk", "delete")]
    assert kinds(data(house, "changes", "--path", "*.py")) == [("desk", "write")]
    assert kinds(data(house, "changes", str(house.root), "--path", "src/*")) == [("desk", "write")]
    assert kinds(data(house, "changes", str(house.root / "src"))) == [("desk", "write")]
    assert data(house, "changes", "--until", "2001-01-01")["changes"] == []
    assert len(data(house, "changes", "--since", "2h")["changes"]) == 3
    assert data(house, "changes", str(house.state.parent / "nowhere"))["changes"] == []
    assert "No changes match" in text(house, "changes", "--kind", "move")
    error = data(house, "changes", "--client", "rivl", status=1)["error"]
    assert "rival" in error["message"]
    assert "--since takes a time" in data(house, "changes", "--since", "soon", status=2)["error"]["message"]


@pytest.mark.req("FS-38.e")
def test_times_are_local_in_text_and_utc_in_json(house: House, desk: Agent) -> None:
    write(desk, "a.txt", "1\n")
    house.environment["TZ"] = "Pacific/Kiritimati"
    change = data(house, "changes")["changes"][0]
    assert change["at"].endswith("Z")
    local = datetime.fromisoformat(change["at"]).astimezone(UTC).timestamp() + 14 * 3600
    shown_at = datetime.fromtimestamp(local, UTC).strftime("%Y-%m-%d %H:%M:%S")
    assert f"write by desk 1.2, {shown_at}, EXECUTED" in text(house, "changes", "show", change["change_id"][:8])


@pytest.mark.req("FS-38.e")
def test_one_change_is_shown_as_its_diff_or_by_type_and_size_or_as_a_list(house: House, desk: Agent) -> None:
    plant(house.root, {"a.txt": "one\ntwo\n", "b.bin": b"\0\1", "tree": {"x": "1", "sub": {"y": "2"}}})
    edited = edit(desk, "a.txt", ("two", "three"))["change_id"]
    assert text(house, "changes", "show", edited).splitlines()[2:8] == [
        f"changed  {house.root}/a.txt  (8 B → 10 B)",
        f"--- a{house.root}/a.txt",
        f"+++ b{house.root}/a.txt",
        "@@ -1,2 +1,2 @@",
        " one",
        "-two",
    ]
    binary = change_of(desk.call("delete_file", path="b.bin"))
    assert f"deleted  {house.root}/b.bin  (2 B, binary)" in text(house, "changes", "show", binary)
    moved = change_of(desk.call("move_file", source="tree", destination="wood"))
    assert f"moved    {house.root}/tree → {house.root}/wood/" in text(house, "changes", "show", moved)
    deleted = change_of(desk.call("delete_file", path="wood", recursive=True))
    listed = text(house, "changes", "show", deleted)
    assert [line for line in listed.splitlines() if line.startswith("deleted")] == [
        f"deleted  {house.root}/wood/",
        f"deleted  {house.root}/wood/sub/",
        f"deleted  {house.root}/wood/sub/y  (1 B)",
        f"deleted  {house.root}/wood/x  (1 B)",
    ]
    colours = output_of(house.state, "changes", "show", edited)
    assert b"\x1b[31m-two\x1b[0m" in colours
    assert b"\x1b[32m+three\x1b[0m" in colours
    assert data(house, "changes", "show", "zzzz", status=1)["error"]["code"] == "NOT_FOUND"


@pytest.mark.req("FS-38.e")
def test_no_name_and_no_text_steers_the_terminal(house: House, desk: Agent) -> None:
    plant(house.root, {HOSTILE: "old \x1b[2J\n", b"caf\xe9".decode(errors="surrogateescape"): "1"})
    with Agent([house.root], house.state, name="e\u202evil", version="\x1b[2J") as evil:
        write(evil, HOSTILE, "new \x1b]0;owned\x07\u202e\n--- a/forged\n")
    moved = change_of(desk.call("move_file", source=HOSTILE, destination=f"x{HOSTILE}"))
    os.rename(house.root / "caf\udce9", house.root / "folder\udce9")
    desk.call("create_directory", path="d").ok()
    for words in (
        ["changes"],
        ["changes", "show", moved],
        ["changes", "diff", "--since", "1h"],
        ["undo", "--since", "1h", "--dry-run"],
        ["undo", "--since", "1h", "--yes"],
    ):
        text(house, *words)
    assert (house.root / HOSTILE).read_text() == "old \x1b[2J\n"


@pytest.mark.req("FS-38.e")
def test_a_tree_with_names_that_are_not_utf8_comes_back(house: House, desk: Agent) -> None:
    plant(house.root, {"tree": {b"caf\xe9".decode(errors="surrogateescape"): {"x": "1"}}})
    original = harvest(house.root)
    deleted = change_of(desk.call("delete_file", path="tree", recursive=True))
    text(house, "changes", "show", deleted)
    text(house, "changes", "diff", "--since", "1h")
    text(house, "undo", "--yes")
    assert harvest(house.root) == original


@pytest.mark.req("FS-38.e")
def test_the_net_effect_of_many_changes_is_one_diff(house: House, desk: Agent, rival: Agent) -> None:
    plant(house.root, {"kept.txt": "same\n", "b.txt": "one\n", "gone.txt": "bye\n", "m.txt": "move\n"})
    write(desk, "kept.txt", "other\n")
    write(desk, "kept.txt", "same\n")
    write(desk, "b.txt", "two\n")
    write(rival, "b.txt", "three\n")
    write(desk, "new.txt", "new\n")
    desk.call("delete_file", path="gone.txt").ok()
    desk.call("move_file", source="m.txt", destination="n.txt").ok()
    files = {Path(file["path"]).name: file for file in data(house, "changes", "diff", "--since", "1h")["files"]}
    assert {name: file["effect"] for name, file in files.items()} == {
        "b.txt": "changed",
        "gone.txt": "deleted",
        "n.txt": "moved",
        "new.txt": "created",
    }
    assert "-one\n+three\n" in files["b.txt"]["diff"]
    assert files["gone.txt"]["diff"].endswith("+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n")
    assert files["n.txt"]["former_path"] == f"{house.root}/m.txt"
    of_rival = data(house, "changes", "diff", "--client", "rival", str(house.root))["files"]
    assert [(file["effect"], "-two\n+three\n" in file["diff"]) for file in of_rival] == [("changed", True)]
    assert house.run("changes", "diff").returncode == 2


@pytest.mark.req("FS-38.e", "FS-39.b")
def test_everything_of_one_client_is_undone_and_what_others_changed_since_stays(
    house: House, desk: Agent, rival: Agent
) -> None:
    plant(house.root, {"a.txt": "a\n", "b.txt": "b\n", "c.txt": "c\n"})
    write(desk, "a.txt", "desk\n")
    write(desk, "b.txt", "desk\n")
    write(rival, "c.txt", "rival\n")
    newer = write(rival, "b.txt", "rival\n")
    (house.root / "d.txt").write_text("mine\n")
    made = write(desk, "d.txt", "desk\n")
    (house.root / "d.txt").write_text("by hand\n")
    preview = data(house, "undo", "--client", "desk", "--dry-run")["steps"]
    problems = {step["change"]["change_id"]: step.get("blocked_by") for step in preview if not step["can_be_done"]}
    assert set(problems.values()) == {newer, None}
    assert problems[made] is None
    done = data(house, "undo", "--client", "desk", "--yes", status=1)
    assert len(done["undone"]) == 1
    assert {Path(left["path"]).name for left in done["stayed"]} == {"b.txt", "d.txt"}
    after = {"a.txt": b"a\n", "b.txt": b"rival\n", "c.txt": b"rival\n", "d.txt": b"by hand\n"}
    assert harvest(house.root) == after
    assert kinds(data(house, "changes", "--client", "you")) == [("you", "undo")]


@pytest.mark.req("FS-38.e")
def test_everything_since_a_time_is_undone_once_and_redone(house: House, desk: Agent, rival: Agent) -> None:
    plant(house.root, {"a.txt": "a\n", "tree": {"x": "1", "sub": {"y": "2"}}})
    original = harvest(house.root)
    write(desk, "a.txt", "1\n")
    write(rival, "a.txt", "2\n")
    desk.call("move_file", source="tree", destination="wood").ok()
    desk.call("create_directory", path="new/deep").ok()
    write(rival, "new/deep/f.txt", "f\n")
    rival.call("delete_file", path="wood/sub", recursive=True).ok()
    changed = harvest(house.root)
    assert len(data(house, "undo", "--since", "10m", "--yes")["undone"]) == 6
    assert harvest(house.root) == original
    assert not (house.root / "new").exists()
    again = data(house, "undo", "--since", "10m", "--yes", status=1)
    assert again == {"steps": []}
    assert harvest(house.root) == original
    assert len(data(house, "redo", "--since", "10m", "--yes")["undone"]) == 6
    assert harvest(house.root) == changed
    assert len(data(house, "undo", "--since", "10m", "--yes")["undone"]) == 6
    assert harvest(house.root) == original


@pytest.mark.req("FS-38.e")
def test_an_undo_of_an_agent_is_undone_with_its_other_changes(house: House, desk: Agent, rival: Agent) -> None:
    plant(house.root, {"a.txt": "a\n", "b.txt": "b\n"})
    written = write(desk, "a.txt", "desk\n")
    rival.call("undo_change", change_id=written).ok()
    own = write(rival, "b.txt", "rival\n")
    rival.call("undo_change", change_id=own).ok()
    data(house, "undo", "--client", "rival", "--yes")
    assert harvest(house.root) == {"a.txt": b"desk\n", "b.txt": b"b\n"}


@pytest.mark.req("FS-38.e")
def test_undo_and_redo_step_through_time_like_an_editor(house: House, desk: Agent) -> None:
    for number in range(4):
        write(desk, "a.txt", f"{number}\n")
    read = (house.root / "a.txt").read_text
    seen = []
    for verb in ("undo", "undo", "redo", "undo", "undo", "redo", "redo", "redo"):
        text(house, verb, "--yes")
        seen.append(read())
    assert seen == [f"{number}\n" for number in (2, 1, 2, 1, 0, 1, 2, 3)]
    assert house.run("redo", "--yes").returncode == 1


@pytest.mark.req("FS-38.e")
def test_the_person_is_asked_and_shown_what_will_happen(house: House, desk: Agent) -> None:
    plant(house.root, {"a.txt": "a\n"})
    change = write(desk, "a.txt", "b\n")
    status, seen = answered(house.state, b"n\n", "undo")
    assert status == 1
    assert change[:8].encode() in seen
    assert b"gets back its earlier content" in seen
    assert (house.root / "a.txt").read_text() == "b\n"
    status, seen = answered(house.state, b"y\n", "undo", change[:8])
    assert status == 0
    assert (house.root / "a.txt").read_text() == "a\n"
    refused = house.run("redo")
    assert refused.returncode == 2
    assert "--yes" in refused.stderr


@pytest.mark.req("FS-38.e")
def test_a_moved_plan_is_undone_as_far_as_it_can_be_and_says_what_stays(house: House, desk: Agent) -> None:
    plant(house.root, {"a.txt": "a\n", "b.txt": "b\n"})
    made = desk.call("create_organization_plan", folder_path=".").ok().data
    changes = [{"path": name, "folder": "texts"} for name in ("a.txt", "b.txt")]
    desk.call("revise_plan", plan_id=made["plan_id"], changes=changes).ok()
    assert answered(house.state, b"y\n", "organise", "approve")[0] == 0
    desk.call("execute_plan", plan_id=made["plan_id"]).ok()
    (house.root / "texts" / "a.txt").write_text("changed since\n")
    preview = text(house, "undo", made["plan_id"][:8], "--dry-run")
    assert "b.txt  goes back to" in preview
    assert "a.txt  stays:" in preview
    done = data(house, "undo", made["plan_id"], "--yes", status=1)
    assert [Path(left["path"]).name for left in done["stayed"]] == ["a.txt"]
    assert harvest(house.root) == {"texts/a.txt": b"changed since\n", "b.txt": b"b\n"}


@pytest.mark.req("FS-38.e")
def test_a_thousand_changes_come_in_pages_and_are_undone(house: House, desk: Agent) -> None:
    for start in range(0, 1000, 50):
        steps = [
            {"id": f"s{n}", "tool": "write_file", "arguments": {"path": f"f{n % 100}.txt", "content": str(n)}}
            for n in range(start, start + 50)
        ]
        desk.call("mcp_pipe", steps=steps).ok()
    pages: list[str] = []
    older: list[str] = []
    while True:
        page = data(house, "changes", "--limit", "300", *older)
        pages += [change["change_id"] for change in page["changes"]]
        if not page["has_more"]:
            break
        older = ["--older", pages[-1][:12]]
    assert len(pages) == len(set(pages)) == 1000
    assert "Older ones: add --older" in text(house, "changes")
    assert len(data(house, "undo", "--since", "1h", "--yes")["undone"]) == 1000
    assert harvest(house.root) == {}


@pytest.mark.req("FS-38.e")
def test_without_a_server_the_commands_do_the_work_themselves(house: House) -> None:
    plant(house.root, {"a.txt": "a\n"})
    with Agent([house.root], house.state, name="desk", version="1.2") as agent:
        write(agent, "a.txt", "b\n")
    assert house.run("stop").returncode == 0
    assert kinds(data(house, "changes")) == [("desk", "write")]
    data(house, "undo", "--yes")
    assert (house.root / "a.txt").read_text() == "a\n"
    data(house, "redo", "--yes")
    assert (house.root / "a.txt").read_text() == "b\n"
    assert house.facts().get("pid") is None or not is_alive(house.facts()["pid"])


def begun(house: House, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command(*words), env=house.env, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def many(agent: Agent, count: int) -> None:
    for start in range(0, count, 50):
        steps: Sequence[dict[str, Any]] = [
            {"id": f"s{n}", "tool": "write_file", "arguments": {"path": f"f{n}.txt", "content": "new"}}
            for n in range(start, start + 50)
        ]
        agent.call("mcp_pipe", steps=steps).ok()


@pytest.mark.req("FS-38.e")
def test_a_server_killed_in_the_middle_loses_nothing_and_the_command_can_be_repeated(house: House, desk: Agent) -> None:
    many(desk, 300)
    running = begun(house, "undo", "--since", "1h", "--yes")
    until("some are undone", lambda: len(harvest(house.root)) < 290)
    os.kill(house.facts()["pid"], signal.SIGKILL)
    _, errors = running.communicate(timeout=60)
    left = len(harvest(house.root))
    assert 0 < left < 300
    assert running.returncode == 75, errors
    assert re.search(r"\d+ changes of 300 undone\.", errors)
    ran = house.run("undo", "--since", "1h", "--yes", timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert harvest(house.root) == {}
    listed = data(house, "changes", "--limit", "1000")["changes"]
    assert sum(change["status"] == "UNDONE" for change in listed) == 300


@pytest.mark.req("FS-38.e")
def test_ctrl_c_in_the_middle_says_what_was_done(house: House, desk: Agent) -> None:
    many(desk, 300)
    running = begun(house, "undo", "--since", "1h", "--yes")
    until("some are undone", lambda: len(harvest(house.root)) < 290)
    running.send_signal(signal.SIGINT)
    output, _ = running.communicate(timeout=60)
    left = len(harvest(house.root))
    assert running.returncode == 130
    assert f"{300 - left} changes of 300 undone." in output
    assert "To go on: repeat the command" in output
    assert house.run("undo", "--since", "1h", "--yes", timeout=120).returncode == 0
    assert harvest(house.root) == {}


@pytest.mark.req("FS-38.e")
def test_bytes_that_are_pruned_are_named_first_and_then_gone(house: House, desk: Agent, tmp_path: Path) -> None:
    plant(house.root, {"a.txt": "a\n", "big.txt": "x" * 200_000})
    other = tmp_path / "other"
    plant(tmp_path, {"other": {"o.txt": "o\n"}})
    first = write(desk, "a.txt", "b\n")
    big = write(desk, "big.txt", "y\n")
    with Agent([other], house.state, name="desk") as elsewhere:
        write(elsewhere, "o.txt", "p\n")
    status, seen = answered(house.state, b"n\n", "changes", "prune", "--to-bytes", "0", "--root", str(house.root))
    assert status == 1
    assert first[:8].encode() in seen
    assert b"2 before-images" in seen
    assert data(house, "undo", first, "--dry-run")["steps"][0]["can_be_done"]
    done = data(house, "changes", "prune", "--to-bytes", "0", "--root", str(house.root), "--yes")
    assert (done["images"], done["changes"]) == (2, 2)
    assert not list((house.state / "images").glob("*/*"))
    (step,) = data(house, "undo", big, "--yes", status=1)["steps"]
    assert step["problem"] == "Its earlier bytes are no longer kept."
    data(house, "undo", "--dir", str(other), "--yes")
    assert (other / "o.txt").read_text() == "o\n"
    assert "nothing to remove" in text(house, "changes", "prune", "--before", "1d")
    assert house.run("changes", "prune").returncode == 2


@pytest.mark.req("FS-38.e", "SV-02.b")
def test_no_agent_can_call_the_persons_tools_of_changes(desk: Agent) -> None:
    change = write(desk, "a.txt", "1\n")
    for tool, arguments in (
        ("all_changes", {}),
        ("show_change", {"change_id": change}),
        ("net_changes", {}),
        ("preview_undo", {}),
        ("undo_for_person", {"change_id": change}),
        ("prune_images", {"to_bytes": 0}),
    ):
        assert desk.call(tool, **arguments).code == "NOT_FOUND"
        assert tool not in {listed.name for listed in desk.tools()}


@pytest.mark.req("FS-38.e")
def test_a_folder_that_is_away_is_said_to_be_and_works_when_it_is_back(house: House, desk: Agent) -> None:
    write(desk, "a.txt", "1\n")
    other = house.root.parent / "other"
    other.mkdir()
    with Agent([other], house.state, name="desk") as elsewhere:
        write(elsewhere, "b.txt", "1\n")
    house.root.rename(house.root.parent / "away")
    done = data(house, "undo", "--since", "1h", "--yes", status=1)
    assert [left["reason"] for left in done["stayed"]] == [f"Its folder {house.root} is not there any more."]
    assert harvest(other) == {}
    (house.root.parent / "away").rename(house.root)
    data(house, "undo", "--since", "1h", "--yes")
    assert harvest(house.root) == {}


@pytest.mark.req("FS-38.e")
def test_a_file_whose_directory_is_gone_is_not_restored_and_the_person_is_told_what_to_do(
    house: House, desk: Agent
) -> None:
    plant(house.root, {"docs": {"a.txt": "first"}})
    first = write(desk, "docs/a.txt", "second")
    removed = change_of(desk.call("delete_file", path="docs", recursive=True))
    refused = house.run("changes", "restore", first, timeout=120)
    assert refused.returncode == 1
    assert f"The directory of {house.root}/docs/a.txt is gone. Undo the change that removed it first" in refused.stderr
    assert "create_directory" not in refused.stderr
    text(house, "undo", removed, "--yes")
    text(house, "changes", "restore", first)
    assert (house.root / "docs/a.txt").read_text() == "first"
