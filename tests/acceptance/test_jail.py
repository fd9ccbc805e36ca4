"""The jail as a client meets it: which roots are served, what is denied in every verb, and what is never waited for."""

import json
import os
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import stop_server
from tests.helpers.agent import Agent
from tests.helpers.pipe import OPENING, Pipe
from tests.helpers.trees import harvest, plant

SECRET = "OUTSIDE-4c1d"

Verb = Callable[[str], tuple[str, dict[str, Any]]]

VERBS: dict[str, Verb] = {
    "read_text_file": lambda path: ("read_text_file", {"path": path}),
    "read_files": lambda path: ("read_files", {"files": [{"path": path}]}),
    "read_multiple_files": lambda path: ("read_multiple_files", {"paths": [path]}),
    "read_media_file": lambda path: ("read_media_file", {"path": path}),
    "get_file_info": lambda path: ("get_file_info", {"path": path}),
    "list_directory": lambda path: ("list_directory", {"path": path}),
    "list_directory_with_sizes": lambda path: ("list_directory_with_sizes", {"path": path}),
    "directory_tree": lambda path: ("directory_tree", {"path": path}),
    "search_files": lambda path: ("search_files", {"path": path, "pattern": "**/*"}),
    "grep_content": lambda path: ("grep_content", {"pattern": ".", "search_path": path}),
    "query_json": lambda path: ("query_json", {"file_path": path, "expression": "."}),
    "query_yaml": lambda path: ("query_yaml", {"file_path": path, "expression": "."}),
    "write_file": lambda path: ("write_file", {"path": path, "content": "x"}),
    "append_text": lambda path: ("append_text", {"path": path, "content": "x"}),
    "create_directory": lambda path: ("create_directory", {"path": path}),
    "delete_file": lambda path: ("delete_file", {"path": path, "recursive": True}),
    "edit_file": lambda path: ("edit_file", {"path": path, "edits": [{"oldText": SECRET, "newText": "x"}]}),
    "edit_files": lambda path: (
        "edit_files",
        {"files": [{"path": path, "edits": [{"old_string": SECRET, "new_string": "x"}]}]},
    ),
    "move_file from": lambda path: ("move_file", {"source": path, "destination": "stolen"}),
    "move_file to": lambda path: ("move_file", {"source": "mine.txt", "destination": path}),
}

WRITE_VERBS = {"write_file", "append_text", "create_directory", "edit_file", "edit_files"}
WRITE_REFUSALS = {"NOT_FOUND", "PERMISSION_DENIED", "IS_DIRECTORY"}


@pytest.fixture
def outside(root: Path, tmp_path: Path) -> Path:
    """Give a folder beside the root whose name begins like the root's, with links from the root into it."""
    folder = plant(
        tmp_path / "project-secret", {"s.txt": SECRET, "s.json": json.dumps(SECRET), "sub": {"t.txt": SECRET}}
    )
    plant(root, {"mine.txt": "mine", "dir": {"a.txt": "inside"}})
    (root / "out_dir").symlink_to(folder)
    (root / "out_file").symlink_to("../project-secret/s.txt")
    (root / "out_new").symlink_to(folder / "new.txt")
    (root / "returns").symlink_to("../project/dir/a.txt")
    (root / "proc").symlink_to("/proc/self/root")
    return folder


def ways_out(folder: Path, root: Path) -> list[str]:
    return [
        str(folder / "s.txt"),
        str(folder),
        "../project-secret/s.txt",
        "dir/../../project-secret/s.txt",
        f"{root}/../project-secret/s.txt",
        f"{root}-secret/s.txt",
        str(root).upper() + "/dir/a.txt",
        "out_dir/s.txt",
        "out_dir/sub",
        "out_dir/new/deep.txt",
        "out_file",
        "out_new",
        "returns",
        f"proc{folder}/s.txt",
        "/etc/passwd",
        "/proc/self/environ",
        "/dev/fd/0",
        "~/x",
    ]


@pytest.mark.req("FS-02.a", "FS-02.b", "FS-03.a", "FS-03.b")
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_no_path_leads_out_of_the_roots(verb: str, agent: Agent, root: Path, outside: Path) -> None:
    before = harvest(outside)
    links = {path.name for path in root.iterdir() if path.is_symlink()}
    for path in ways_out(outside, root):
        name, arguments = VERBS[verb](path)
        reply = agent.call_with(name, arguments)
        said = reply.result.model_dump_json()
        assert SECRET not in said, (path, said)
        assert "t.txt" not in said, (path, said)
        if path == "~/x" or (path in links and name in {"delete_file", "move_file"}):
            continue
        assert f"Access denied: {path} is outside allowed directories" in said, (path, said)
    assert harvest(outside) == before
    assert sorted(entry.name for entry in outside.iterdir()) == ["s.json", "s.txt", "sub"]


@pytest.mark.req("FS-02.a")
def test_a_nul_byte_and_overlong_names_are_bad_paths(agent: Agent) -> None:
    for path in ("a\0b", "x" * 300, "y/" * 3000):
        assert agent.call("read_text_file", path=path).code == "INVALID_PATH"


@pytest.mark.req("FS-03.a")
def test_links_that_stay_inside_work_for_reading_and_writing(agent: Agent, root: Path) -> None:
    plant(root, {"dir": {"a.txt": "inside\n"}})
    (root / "rel").symlink_to("dir/a.txt")
    (root / "abs").symlink_to(root / "dir")
    assert agent.call("read_text_file", path="rel").ok().texts[0] == "inside\n"
    assert agent.call("read_text_file", path="abs/a.txt").ok().texts[0] == "inside\n"
    agent.call("write_file", path="rel", content="changed\n").ok()
    assert (root / "dir" / "a.txt").read_text() == "changed\n"
    assert (root / "rel").is_symlink()


@pytest.mark.req("FS-03.b")
def test_a_denial_does_not_tell_whether_the_target_exists(agent: Agent, outside: Path) -> None:
    there = agent.call("read_text_file", path=str(outside / "s.txt")).error["message"]
    missing = agent.call("read_text_file", path=str(outside / "nope")).error["message"]
    assert there.replace("s.txt", "*") == missing.replace("nope", "*")


@pytest.mark.req("FS-02.d")
def test_writing_to_a_hard_link_leaves_the_file_outside_as_it_was(agent: Agent, root: Path, outside: Path) -> None:
    os.link(outside / "s.txt", root / "linked.txt")
    agent.call("write_file", path="linked.txt", content="mine").ok()
    os.link(outside / "s.txt", root / "linked2.txt")
    agent.call("append_text", path="linked2.txt", content="more").ok()
    os.link(outside / "s.txt", root / "linked3.txt")
    agent.call("edit_file", path="linked3.txt", edits=[{"oldText": SECRET, "newText": "edited"}]).ok()
    assert (outside / "s.txt").read_text() == SECRET
    assert [(root / name).read_text() for name in ("linked.txt", "linked2.txt", "linked3.txt")] == [
        "mine",
        SECRET + "more",
        "edited",
    ]


@pytest.mark.req("FS-01.a")
def test_empty_dot_and_relative_paths_mean_the_first_root(state_dir: Path, tmp_path: Path) -> None:
    plant(tmp_path, {"one": {"a.txt": "first"}, "two": {"b.txt": "second"}})
    with Agent([tmp_path / "one", tmp_path / "two"], state_dir) as agent:
        for path in ("", ".", str(tmp_path / "one")):
            assert "a.txt" in agent.call("list_directory", path=path).ok().text
        assert agent.call("read_text_file", path="a.txt").ok().texts[0] == "first"
        assert agent.call("read_text_file", path=str(tmp_path / "two" / "b.txt")).ok().texts[0] == "second"
        assert str(tmp_path / "two") in agent.call("list_allowed_directories").ok().text


@pytest.mark.req("FS-01.b")
def test_an_invalid_root_is_skipped_with_a_warning_and_the_others_serve(state_dir: Path, tmp_path: Path) -> None:
    plant(tmp_path, {"one": {"a.txt": "first"}})
    with Agent([tmp_path / "missing-root", tmp_path / "one"], state_dir) as agent:
        assert agent.call("read_text_file", path="a.txt").ok().texts[0] == "first"
    log = (state_dir / "server.log").read_text()
    assert "allowed directory 1 of 2 skipped: No such file or directory" in log
    assert "missing-root" not in log


@pytest.mark.req("FS-01.b")
def test_roots_of_which_none_can_be_used_are_an_error(state_dir: Path, tmp_path: Path) -> None:
    with Pipe([tmp_path / "missing"], state_dir) as pipe:
        error = pipe.ask(1, "initialize", OPENING)["error"]
        assert "None of the given directories can be used" in error["message"]
    assert pipe.process.returncode == 2


@pytest.mark.req("FS-01.c")
def test_slash_and_the_home_folder_are_no_roots_unless_named(state_dir: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for cwd in (Path("/"), Path.home()):
        with Pipe([], state_dir, cwd=cwd) as pipe:
            assert "too wide" in pipe.ask(1, "initialize", OPENING)["error"]["message"]
        assert pipe.process.returncode == 2


@pytest.mark.req("FS-01.d")
def test_a_root_inside_the_state_folder_is_refused(state_dir: Path) -> None:
    inside = state_dir / "a folder"
    inside.mkdir(exist_ok=True)
    for root in (state_dir, inside):
        with Pipe([root], state_dir) as pipe:
            assert "inside the state folder" in pipe.ask(1, "initialize", OPENING)["error"]["message"]


@pytest.mark.req("FS-01.c")
def test_without_roots_the_working_directory_is_served(state_dir: Path, tmp_path: Path) -> None:
    plant(tmp_path, {"here": {"a.txt": "first"}})
    with Agent([], state_dir, cwd=tmp_path / "here") as agent:
        assert agent.call("read_text_file", path="a.txt").ok().texts[0] == "first"


@pytest.mark.req("FS-01.a")
def test_a_tilde_in_a_path_is_a_letter(agent: Agent, root: Path) -> None:
    assert agent.call("read_text_file", path="~/a.txt").code == "NOT_FOUND"
    plant(root, {"~": {"a.txt": "a folder called tilde"}})
    assert agent.call("read_text_file", path="~/a.txt").ok().texts[0] == "a folder called tilde"


@pytest.mark.req("FS-01.d")
def test_the_state_folder_beneath_a_root_is_invisible_to_every_verb(tmp_path: Path, ended_state: Path) -> None:
    plant(tmp_path, {"visible.txt": "inside token"})
    with Agent([tmp_path], ended_state) as agent:
        agent.call("list_allowed_directories").ok()
        token = (ended_state / "agent.token").read_text().strip()
        for name, make in VERBS.items():
            for path in (ended_state.name, f"{ended_state.name}/agent.token", str(ended_state / "person.key"), "."):
                if path == "." and name in {"delete_file", "move_file from"}:
                    continue
                tool, arguments = make(path)
                reply = agent.call_with(tool, arguments)
                said = reply.result.model_dump_json()
                assert token not in said
                assert "agent.token" not in said.replace(path, "")
                assert "person.key" not in said.replace(path, "")
                if path != ".":
                    (code,) = reply.refusals
                    assert code in (WRITE_REFUSALS if name in WRITE_VERBS else {"NOT_FOUND"}), (name, path, said)
        assert "visible.txt" in agent.call("grep_content", pattern="inside").ok().text
    assert (ended_state / "agent.token").read_text().strip() == token
    assert (ended_state / "server.lock").exists()


@pytest.mark.req("FS-01.d")
def test_what_the_state_folder_lies_in_can_be_neither_moved_nor_deleted(tmp_path: Path) -> None:
    state = tmp_path / "data" / "share" / "holdfast"
    state.mkdir(parents=True, mode=0o700)
    plant(tmp_path, {"data": {"other.txt": "x"}, "free": {"y.txt": "y"}})
    try:
        with Agent([tmp_path], state) as agent:
            for path in ("data", "data/share", "data/share/holdfast"):
                assert agent.call("move_file", source=path, destination="elsewhere").is_error, path
                assert agent.call("delete_file", path=path, recursive=True).is_error, path
            agent.call("move_file", source="free", destination="data/free").ok()
            agent.call("delete_file", path="data/free", recursive=True).ok()
            listed = agent.call("list_directory", path="data").ok().text.splitlines()
            assert sorted(listed) == ["[DIR] share", "[FILE] other.txt"]
    finally:
        stop_server(state)
    assert (state / "server.lock").exists()


def special(root: Path, kind: str) -> str:
    if kind == "fifo":
        os.mkfifo(root / kind)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            os.symlink(root, f"/tmp/hf-{os.getpid()}")
            listener.bind(f"/tmp/hf-{os.getpid()}/{kind}")
            os.unlink(f"/tmp/hf-{os.getpid()}")
    else:
        os.mknod(root / kind, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    return kind


@pytest.mark.req("FS-04.a")
@pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
def test_fifos_sockets_and_devices_are_refused_at_once(kind: str, agent: Agent, root: Path) -> None:
    name = special(root, kind)
    for tool, arguments in (
        ("read_text_file", {"path": name}),
        ("read_media_file", {"path": name}),
        ("query_json", {"file_path": name, "expression": "."}),
        ("edit_file", {"path": name, "edits": [{"oldText": "a", "newText": "b"}]}),
        ("write_file", {"path": name, "content": "x"}),
        ("append_text", {"path": name, "content": "x"}),
    ):
        started = time.monotonic()
        assert agent.call_with(tool, arguments).is_error, tool
        assert time.monotonic() - started < 10, tool
    assert name in agent.call("list_directory", path=".").ok().text
    agent.call("grep_content", pattern="x").ok()


@pytest.mark.req("FS-04.b")
def test_a_file_of_thirty_gigabytes_never_fills_memory(agent: Agent, root: Path, state_dir: Path) -> None:
    with (root / "huge").open("wb") as huge:
        huge.write(b"first line\n")
        huge.truncate(30 * 1024**3)
        huge.seek(0, os.SEEK_END)
        huge.write(b"\nlast line\n")
    agent.call("get_file_info", path="huge").ok()
    agent.call("read_text_file", path="huge")
    agent.call("read_text_file", path="huge", head=1)
    agent.call("read_files", files=[{"path": "huge", "start_line": 1, "end_line": 2}])
    for tool, arguments in (
        ("edit_file", {"path": "huge", "edits": [{"oldText": "first", "newText": "x"}]}),
        ("append_text", {"path": "huge", "content": "x"}),
        ("read_media_file", {"path": "huge"}),
        ("query_json", {"file_path": "huge", "expression": "."}),
    ):
        assert agent.call_with(tool, arguments).is_error, tool
    server = json.loads((state_dir / "server.json").read_text())["pid"]
    peak = next(line for line in Path(f"/proc/{server}/status").read_text().splitlines() if line.startswith("VmHWM"))
    assert int(peak.split()[1]) < 600_000, peak
