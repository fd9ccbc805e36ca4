"""An agent that wants to slip past a rule of review, with every tool it has, and what is swapped under an approval."""

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import stop_server
from tests.helpers.agent import Agent
from tests.helpers.doors import is_alive, until
from tests.helpers.reviewer import Reviewer, with_settings

pytestmark = [pytest.mark.timeout(120), pytest.mark.req("RV-13.h")]

SETTINGS = {
    "server": {"port": 0},
    "review": {"wait_seconds": 0.1},
    "organiser": {"require_approval": False},
    "policy": {"rules": [{"glob": "watched/**", "access": "review"}, {"glob": "*.guarded", "access": "review"}]},
}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a state folder with the rules."""
    state = with_settings(tmp_path_factory.mktemp("state") / "state", SETTINGS)
    yield state
    stop_server(state)


@pytest.fixture
def desk(root: Path, state: Path) -> Iterator[Reviewer]:
    plant(root)
    with Agent([root], state) as agent:
        yield Reviewer(agent, root, state)


def plant(root: Path) -> None:
    for folder in ("watched/deep", "free", "outer/inner"):
        (root / folder).mkdir(parents=True)
    for path in ("watched/a.txt", "watched/deep/b.txt", "free/c.txt", "outer/inner/d.guarded", "outer/e.txt"):
        (root / path).write_text(f"{path}\n")
    (root / "free" / "link").symlink_to("../watched/a.txt")
    (root / "free" / "folder").symlink_to("../watched")
    os.link(root / "watched" / "a.txt", root / "watched" / "hard.txt")


def snapshot(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


SLIPS: dict[str, tuple[str, dict[str, Any]]] = {
    "move the file out": ("move_file", {"source": "watched/a.txt", "destination": "free/a.txt"}),
    "move a file in": ("move_file", {"source": "free/c.txt", "destination": "watched/c.txt"}),
    "rename it to another name": ("move_file", {"source": "outer/inner/d.guarded", "destination": "outer/d.txt"}),
    "rename a free file to a watched name": ("move_file", {"source": "free/c.txt", "destination": "free/c.guarded"}),
    "rename its directory": ("move_file", {"source": "watched", "destination": "unwatched"}),
    "rename a directory above it": ("move_file", {"source": "outer", "destination": "elsewhere"}),
    "delete a directory above it": ("delete_file", {"path": "outer", "recursive": True}),
    "write through a link": ("write_file", {"path": "free/link", "content": "evil"}),
    "edit through a linked directory": (
        "edit_files",
        {"files": [{"path": "free/folder/a.txt", "edits": [{"old_string": "watched", "new_string": "evil"}]}]},
    ),
    "append through a linked directory": ("append_text", {"path": "free/folder/deep/b.txt", "content": "evil"}),
    "create through a linked directory": ("create_directory", {"path": "free/folder/new"}),
    "delete through a linked directory": ("delete_file", {"path": "free/folder/a.txt"}),
    "write in another case": ("write_file", {"path": "free/new.GUARDED", "content": "evil"}),
    "write a hard link's other name": ("write_file", {"path": "watched/hard.txt", "content": "evil"}),
    "write with dots": ("write_file", {"path": "free/../watched/a.txt", "content": "evil"}),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_no_call_goes_around_the_rule(desk: Reviewer, slip: str) -> None:
    before = snapshot(desk.root)
    tool, arguments = SLIPS[slip]
    reply = desk.agent.call(tool, **arguments).ok()
    assert "PENDING" in reply.text, reply.text
    (review,) = desk.waiting()
    assert desk.agent.call(tool, **arguments).ok().text.count("PENDING") == 1
    steps = [{"id": "a", "tool": tool, "arguments": arguments}]
    started = time.monotonic()
    assert "PENDING" in desk.agent.call("mcp_pipe", steps=steps).ok().text
    assert time.monotonic() - started < 20
    assert snapshot(desk.root) == before
    desk.decide(review, "reject", reason="no")


def test_the_organiser_is_no_way_around_and_its_plan_needs_a_person(root: Path, tmp_path: Path) -> None:
    state = with_settings(tmp_path / "state", SETTINGS)
    (root / "watched").mkdir()
    for folder in ("Invoices", "Letters"):
        (root / folder).mkdir()
        for number in range(6):
            (root / folder / f"{folder} {number}.txt").write_text(f"{folder} about money and paper {number}\n")
    for number in range(3):
        (root / f"Invoices extra {number}.guarded").write_text("Invoices about money and paper\n")
    try:
        with Agent([root], state) as agent:
            desk = Reviewer(agent, root, state)
            plan = agent.call("create_organization_plan", folder_path=".").ok().data
            assert plan["totals"].get("moves"), plan
            before = snapshot(root)
            refused = agent.call("execute_plan", plan_id=plan["plan_id"])
            assert refused.code == "PERMISSION_DENIED"
            assert "holdfast organise approve" in refused.text
            assert snapshot(root) == before
            shown = agent.call("get_plan", plan_id=plan["plan_id"]).ok().data
            desk.person("approve_plan", plan_id=plan["plan_id"], plan_hash=shown["plan_hash"])
            agent.call("execute_plan", plan_id=plan["plan_id"]).ok()
            moved = snapshot(root)
            assert moved != before
            for tool, name in (("undo_plan", "plan_id"), ("undo_change", "change_id")):
                undo = agent.call(tool, **{name: plan["plan_id"]})
                assert undo.code == "PERMISSION_DENIED", undo.text
                assert "holdfast organise undo" in undo.text
            assert snapshot(root) == moved
    finally:
        stop_server(state)


def approve(desk: Reviewer, tool: str, **arguments: Any) -> str:
    """Ask for a change, have it approved, and return its session."""
    session = str(desk.agent.call(tool, **arguments).ok().data["session_path"])
    (review,) = desk.waiting()
    desk.decide(review, "approve")
    return session


def exchange_bytes(root: Path) -> None:
    (root / "watched" / "deep" / "b.txt").write_text("another text\n")


def exchange_file(root: Path) -> None:
    """Put another file of the same size and time under the same name."""
    file = root / "watched" / "deep" / "b.txt"
    status = file.stat()
    (root / "other").write_bytes(b"x" * status.st_size)
    os.utime(root / "other", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(root / "other", file)


def keep_size_and_time(root: Path) -> None:
    """Write other bytes into the same file, and set its time back."""
    file = root / "watched" / "deep" / "b.txt"
    status = file.stat()
    file.write_bytes(b"x" * status.st_size)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def add_file(root: Path) -> None:
    (root / "watched" / "deep" / "new.txt").write_text("came later\n")


def exchange_tree(root: Path) -> None:
    os.rename(root / "watched" / "deep", root / "kept")
    (root / "watched" / "deep").mkdir()
    (root / "watched" / "deep" / "b.txt").write_text("watched/deep/b.txt\n")


def exchange_parent(root: Path) -> None:
    os.rename(root / "watched", root / "kept")
    (root / "watched").mkdir()
    os.rename(root / "kept" / "deep", root / "watched" / "deep")


def link_parent(root: Path) -> None:
    os.rename(root / "watched", root / "kept")
    (root / "watched").symlink_to("kept")


def take_away(root: Path) -> None:
    os.rename(root / "watched" / "deep", root / "kept")


SWAPS = [
    exchange_bytes,
    exchange_file,
    keep_size_and_time,
    add_file,
    exchange_tree,
    exchange_parent,
    link_parent,
    take_away,
]
TREES: dict[str, dict[str, Any]] = {
    "delete_file": {"path": "watched/deep", "recursive": True},
    "move_file": {"source": "watched/deep", "destination": "free/deep"},
}


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("tool", TREES)
def test_what_was_swapped_after_the_approval_stays(desk: Reviewer, tool: str, swap: Any) -> None:
    session = approve(desk, tool, **TREES[tool])
    swap(desk.root)
    before = snapshot(desk.root)
    reply = desk.commit(session, "watched/deep")
    assert reply.code in ("CONFLICT", "NOT_FOUND"), reply.text
    assert reply.code == "CONFLICT" or swap is link_parent  # another path by now, of which there is no review
    assert snapshot(desk.root) == before


@pytest.mark.parametrize("tool", TREES)
def test_an_approval_of_what_was_shown_is_refused_once_the_proposal_is_another(desk: Reviewer, tool: str) -> None:
    desk.agent.call(tool, **TREES[tool]).ok()
    (first,) = desk.waiting()
    shown = desk.show(first)
    exchange_bytes(desk.root)
    desk.agent.call(tool, **TREES[tool]).ok()
    newest, oldest = desk.waiting(2)
    assert desk.show(newest)["shown_hash"] != shown["shown_hash"]
    decision = {"decision": "approve", "shown_hash": shown["shown_hash"]}
    assert desk.person("decide_review", review_id=newest["review_id"], **decision)["code"] == "CONFLICT"
    assert desk.person("decide_review", review_id=oldest["review_id"], **decision)["user_action"] == "APPROVE"


def test_a_destination_that_was_taken_or_exchanged_is_a_conflict(desk: Reviewer) -> None:
    session = approve(desk, "move_file", source="watched/a.txt", destination="free/moved.txt")
    (desk.root / "free" / "moved.txt").write_text("mine\n")
    assert desk.commit(session, "watched/a.txt").code == "CONFLICT"
    os.rename(desk.root / "free", desk.root / "kept")
    (desk.root / "free").mkdir()
    assert desk.commit(session, "watched/a.txt").code == "CONFLICT"
    os.rmdir(desk.root / "free")
    os.rename(desk.root / "kept", desk.root / "free")
    (desk.root / "free" / "moved.txt").unlink()
    desk.commit(session, "watched/a.txt").ok()
    assert (desk.root / "free" / "moved.txt").read_text() == "watched/a.txt\n"


def test_directories_that_others_made_meanwhile_are_a_conflict(desk: Reviewer) -> None:
    session = approve(desk, "create_directory", path="watched/new/below")
    (desk.root / "watched" / "new").mkdir()
    assert desk.commit(session, "watched/new/below").code == "CONFLICT"
    assert os.listdir(desk.root / "watched" / "new") == []


def test_a_rule_that_became_stricter_after_the_approval_is_obeyed(root: Path, tmp_path: Path) -> None:
    state = with_settings(tmp_path / "state", SETTINGS)
    plant(root)
    try:
        with Agent([root], state) as agent:
            desk = Reviewer(agent, root, state)
            session = approve(desk, "delete_file", path="watched/deep", recursive=True)
            with_settings(
                state, {**SETTINGS, "policy": {"rules": [{"glob": "watched/deep/**", "access": "read-only"}]}}
            )
            until(
                "the rule holds",
                lambda: agent.call("write_file", path="watched/deep/b.txt", content="x").is_error,
            )
            assert desk.commit(session, "watched/deep").code == "PERMISSION_DENIED"
            with_settings(state, {**SETTINGS, "policy": {"rules": [{"glob": "watched/deep", "access": "deny"}]}})
            until("the rule holds", lambda: agent.call("read_text_file", path="watched/deep/b.txt").is_error)
            assert desk.commit(session, "watched/deep").code == "NOT_FOUND"
            assert "deep" not in agent.call("list_reviews").ok().text
            assert (root / "watched" / "deep" / "b.txt").exists()
    finally:
        stop_server(state)


@pytest.mark.parametrize("tool", ["write_file", "delete_file"])
def test_an_undo_of_its_own_change_is_asked_too(root: Path, tmp_path: Path, tool: str) -> None:
    free = {**SETTINGS, "policy": {"rules": []}}
    state = with_settings(tmp_path / "state", free)
    plant(root)
    try:
        with Agent([root], state) as agent:
            desk = Reviewer(agent, root, state)
            arguments = {"path": "watched/a.txt", **({"content": "mine\n"} if tool == "write_file" else {})}
            agent.call(tool, **arguments).ok()
            change = agent.call("list_changes").ok().data["changes"][0]["change_id"]
            with_settings(state, SETTINGS)
            until(
                "the rule holds",
                lambda: "PENDING" in agent.call("append_text", path="watched/hard.txt", content="x").text,
            )
            (review,) = desk.waiting()
            desk.decide(review, "reject")
            before = snapshot(root)
            answer = agent.call("undo_change", change_id=change).ok().data
            assert (answer["user_action"], answer["kind"]) == ("PENDING", "undo")
            assert snapshot(root) == before
            (review,) = desk.waiting()
            shown = desk.show(review)["statement"]
            assert ("+watched/a.txt" in shown) if tool == "write_file" else ("comes back" in shown), shown
            desk.decide(review, "approve")
            desk.commit(answer["session_path"], str(root / "watched" / "a.txt")).ok()
            assert (root / "watched" / "a.txt").read_text() == "watched/a.txt\n"
    finally:
        stop_server(state)


def test_a_client_without_the_review_tools_is_refused(root: Path, state: Path) -> None:
    plant(root)
    with Agent([root], state, options=["--tools", "files"]) as agent:
        for tool, arguments in (SLIPS["move the file out"], SLIPS["write with dots"]):
            reply = agent.call(tool, **arguments)
            assert reply.code == "PERMISSION_DENIED"
            assert "approval" in reply.text
        assert all(
            review["root"] != str(root) for review in Reviewer(agent, root, state).person("pending_reviews")["reviews"]
        )


def test_a_server_killed_between_approval_and_commit_loses_nothing(root: Path, tmp_path: Path) -> None:
    state = with_settings(tmp_path / "state", SETTINGS)
    plant(root)
    try:
        with Agent([root], state) as agent:
            desk = Reviewer(agent, root, state)
            deletion = approve(desk, "delete_file", path="watched/deep", recursive=True)
            pid = int(json.loads((state / "server.json").read_text())["pid"])
            os.kill(pid, signal.SIGKILL)
            until("the server is gone", lambda: not is_alive(pid))
        with Agent([root], state) as agent:
            desk = Reviewer(agent, root, state)
            listed = agent.call("list_reviews").ok().data["reviews"]
            assert [(one["kind"], one["user_action"]) for one in listed] == [("delete", "APPROVE")]
            done = desk.commit(deletion, "watched/deep").ok().data
            assert not (root / "watched" / "deep").exists()
            assert done["change_id"] == agent.call("list_changes").ok().data["changes"][0]["change_id"]
    finally:
        stop_server(state)


def test_hostile_names_are_shown_so_that_they_forge_nothing(desk: Reviewer) -> None:
    names = ["$(touch evil)", "-rf", 'quote"s', "new\nline", "esc\x1b[2J", "\u202etxt.exe"]
    folder = desk.root / "watched" / "names"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("x")
    desk.agent.call("delete_file", path="watched/names", recursive=True).ok()
    (review,) = desk.waiting()
    statement = desk.show(review)["statement"]
    assert len(statement.splitlines()) == len(names) + 1
    assert statement.isprintable() or set(filter(lambda char: not char.isprintable(), statement)) == {"\n"}
    shown = desk.command("show", review["review_id"][:8])
    assert shown.returncode == 0
    assert "\x1b" not in shown.stdout
    assert f"delete {folder}: directory (6 files" in shown.stdout
    code = desk.code(review["review_id"])
    assert desk.command("approve", review["review_id"], code, "--yes").returncode == 0
    session = desk.agent.call("list_reviews").ok().data["reviews"][0]["session_path"]
    desk.commit(session, "watched/names").ok()
    assert not folder.exists()


def test_a_move_to_another_device_is_made_as_approved_and_undone(root: Path, state: Path, tmp_path: Path) -> None:
    other = Path("/dev/shm") / f"holdfast-{os.getpid()}-{tmp_path.name}"
    plant(root)
    other.mkdir()
    try:
        assert other.stat().st_dev != root.stat().st_dev
        with Agent([root, other], state) as agent:
            desk = Reviewer(agent, root, state)
            arguments = {"source": "watched/deep", "destination": str(other / "deep")}
            session = approve(desk, "move_file", **arguments)
            add_file(root)
            assert desk.commit(session, "watched/deep").code == "CONFLICT"
            assert list(other.iterdir()) == []
            (root / "watched" / "deep" / "new.txt").unlink()
            done = desk.commit(session, "watched/deep").ok().data
            assert (other / "deep" / "b.txt").read_text() == "watched/deep/b.txt\n"
            assert not (root / "watched" / "deep").exists()
            undo = agent.call("undo_change", change_id=done["change_id"]).ok().data
            with Agent([root], state) as narrow:
                assert narrow.call("list_reviews").ok().data["reviews"] == []
            (review,) = [one for one in desk.person("pending_reviews")["reviews"] if one["kind"] == "undo"]
            desk.decide(review, "approve")
            desk.commit(undo["session_path"], review["path"]).ok()
            assert (root / "watched" / "deep" / "b.txt").read_text() == "watched/deep/b.txt\n"
    finally:
        shutil.rmtree(other)
