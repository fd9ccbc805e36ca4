"""Whom a command trusts with its state: folders that cannot be written, that others could write to, and foreign sockets."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from holdfast.cli.main import cli
from holdfast.transport.client.dial import connect
from holdfast.transport.state_folder import StateFault, StateFolder
from tests.helpers.agent import Agent, command
from tests.helpers.doors import House, until
from tests.helpers.restricted import NOBODY, as_user, like_an_owner, may_change_user
from tests.helpers.terminal import answered
from tests.helpers.trees import plant

pytestmark = pytest.mark.timeout(120)

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"test","version":"1"}}}\n'
)
COMMANDS: dict[str, list[str]] = {
    "serve": ["--port", "0"],
    "stdio": [],
    "status": [],
    "open": ["--print"],
    "stop": [],
    "calls": [],
    "changes": [],
    "undo": ["--yes"],
    "redo": ["--yes"],
    "policy": ["show"],
    "review": ["list"],
    "organise": ["list"],
    "search": ["word", "."],
    "files": ["ls", "-p", "notes"],
    "index": ["status"],
    "worker": ["--help"],  # it runs on, with or without work
    "keys": ["create"],
    "backup": ["create", "backup.tar"],
    "restore": ["backup.tar", "--yes"],
    "config": ["show"],
    "doctor": [],
    "migrate": [],
    "tools": [],
    "call": ["list_directory", "--json", '{"path": "."}'],
    "install": [],
    "uninstall": ["--help"],
}
"""Every command, as it is run on a state folder that cannot be used."""
CANNOT_WORK = (
    "serve",
    "stdio",
    "open",
    "changes",
    "undo",
    "redo",
    "review",
    "organise",
    "search",
    "files",
    "keys",
    "doctor",
)
"""Commands that write to the state folder, or are asked whether it is in order."""
TRACES = ("Traceback", 'File "', "site-packages")


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    with Agent([made.root], made.state) as agent:
        agent.call("write_file", path="a.txt", content="new\n").ok()
    made.run("stop")
    yield made
    made.state.chmod(0o700)
    made.end()


def run_restricted(house: House, *words: str, given: bytes = INITIALIZE) -> "subprocess.CompletedProcess[bytes]":
    """Run a command that permissions hold for."""
    return subprocess.run(
        [*like_an_owner(), *command(*words)],
        env=house.env,
        cwd=house.root,
        input=given,
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.req("SV-14.d")
def test_every_command_answers_plainly_when_the_state_folder_cannot_be_written(house: House) -> None:
    assert set(COMMANDS) == set(cli.list_commands(click.Context(cli))), "a command without a case"
    house.state.chmod(0o500)
    for name, arguments in COMMANDS.items():
        done = run_restricted(house, name, *arguments)
        said = (done.stdout + done.stderr).decode()
        assert not any(trace in said for trace in TRACES), (name, said)
        if name in CANNOT_WORK:
            assert done.returncode != 0, (name, said)
            assert "state" in said, (name, said)
    assert (house.root / "a.txt").read_text() == "new\n"


@pytest.mark.req("SV-14.d")
@pytest.mark.parametrize("options", [[], ["--in-process"]])
@pytest.mark.parametrize("mode", [0o500, 0o000])
def test_a_client_gets_an_answer_when_the_state_folder_cannot_be_used(
    house: House, options: list[str], mode: int
) -> None:
    house.state.chmod(mode)
    done = run_restricted(house, "stdio", *options, str(house.root))
    answer = json.loads(done.stdout)
    assert (answer["id"], done.returncode != 0) == (1, True)
    assert "state" in answer["error"]["message"]
    assert answer["error"]["message"] in done.stderr.decode()
    assert not any(trace in done.stderr.decode() for trace in TRACES)


LISTENER = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
listener.listen()
print("listening", flush=True)
while True:
    client, _ = listener.accept()
    client.settimeout(3)
    try:
        print("heard", len(client.recv(65536)), flush=True)
    except OSError:
        print("heard 0", flush=True)
    client.close()
"""


@pytest.fixture
def planted(house: House) -> Iterator["subprocess.Popen[str]"]:
    """Give the process of another user that listens at the socket of this state folder, planted while it was open."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-shared-"))
    folder.chmod(0o777)
    interpreter = shutil.which("python3", path="/usr/bin") or sys.executable
    words = [*as_user(NOBODY), interpreter, "-I", "-c", LISTENER, str(folder / "server.sock")]
    own, process = house.state, subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "listening\n"
        house.state = folder
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        process.stdout.close()
        house.state = own
        shutil.rmtree(folder)


@pytest.mark.req("SV-11.c")
@pytest.mark.skipif(not may_change_user(), reason="only root can start a process of another user")
def test_a_socket_that_another_user_planted_is_not_spoken_to(
    house: House, planted: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (["stdio", str(house.root)], ["review", "list"], ["status"], ["search", "word", "."]):
        done = subprocess.run(
            command(*words),
            env=house.env,
            cwd=house.root,
            input=INITIALIZE,
            capture_output=True,
            timeout=60,
            check=False,
        )
        said = done.stderr.decode()
        assert done.returncode == 78, (words, said)
        assert f"'server.sock' in it belongs to user {NOBODY}" in said
        assert "Remove what is not yours" in said
    assert house.state.stat().st_mode & 0o777 == 0o700, "the folder is closed"
    # Even where the file is owned by the user, the process that listens must be.
    os.chown(house.state / "server.sock", 0, 0)
    StateFolder(str(house.state)).prepare()
    with pytest.raises(StateFault, match=f"A process of user {NOBODY} listens at .*Nothing was sent"):
        connect(StateFolder(str(house.state)))
    done = subprocess.run(
        command("stdio", str(house.root)),
        env=house.env,
        input=INITIALIZE,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert f"A process of user {NOBODY} listens" in json.loads(done.stdout)["error"]["message"]
    assert planted.stdout is not None
    planted.send_signal(signal.SIGTERM)
    assert "heard" not in planted.stdout.read().replace("heard 0", "")


@pytest.mark.req("SV-11.c")
def test_a_folder_that_was_open_is_closed_and_used_when_nothing_in_it_is_anothers(house: House) -> None:
    house.state.chmod(0o777)
    assert house.run("review", "list").returncode == 0
    assert house.state.stat().st_mode & 0o777 == 0o700


@pytest.mark.req("SV-11.c")
def test_a_socket_of_ones_own_is_spoken_to(house: House) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(house.state / "server.sock"))
        listener.listen()
        connect(StateFolder(str(house.state))).close()
    (house.state / "server.sock").unlink()


@pytest.fixture
def home(tmp_path: Path) -> House:
    """Give a house whose project is the whole home folder."""
    made = House(tmp_path)
    plant(made.root, {"movie.mp4": "m", "song.mp3": "s", "Downloads": {"movie.mp4": "m"}})
    made.environment["HOME"] = str(made.root)
    return made


@pytest.mark.req("OR-06.a")
def test_an_agent_organises_neither_the_system_nor_a_whole_home_folder(home: House) -> None:
    with Agent(["/", home.root], home.state, env={"HOME": str(home.root)}) as agent:
        for path, words in (
            ("/", "belongs to the system"),
            ("/etc", "belongs to the system"),
            ("/usr/share", "belongs to the system"),
            (str(home.root), "whole home folder"),
            (f"{home.root}/Downloads/..", "whole home folder"),
        ):
            refused = agent.call("create_organization_plan", folder_path=path)
            assert (refused.code, words in refused.error["message"]) == ("PERMISSION_DENIED", True), path
        agent.call("create_organization_plan", folder_path=f"{home.root}/Downloads").ok()
    home.end()


@pytest.mark.req("OR-06.a")
def test_a_person_is_asked_about_a_whole_home_folder_and_refused_the_system(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = home.run("organise", "scan", "/etc")
    assert (refused.returncode, refused.stderr) == (
        13,
        "holdfast: /etc belongs to the system and is not organised. Name a folder with files of yours.\n",
    )
    unasked = home.run("organise", "scan", str(home.root))
    assert (unasked.returncode, "add --yes to mean the whole home folder" in unasked.stderr) == (2, True)
    monkeypatch.setenv("HOME", str(home.root))
    status, seen = answered(home.state, b"n\n", "organise", "scan", str(home.root))
    assert (status, b"is your whole home folder. Make a plan for all of it?" in seen) == (1, True)
    assert answered(home.state, b"y\n", "organise", "scan", str(home.root))[0] == 0
    done = home.run("organise", "scan", str(home.root), "--yes", "--json")
    assert json.loads(done.stdout)["totals"]["moves"] > 0
    until(
        "nothing was scanned but when it was meant",
        lambda: len(json.loads(home.run("organise", "list", "--json").stdout)["plans"]) == 2,
    )
