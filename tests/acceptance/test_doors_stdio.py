"""The stdio door: a thin relay that shares one server, and never leaves a client hanging."""

import json
import os
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.agent import LEGACY, MODERN, Agent, command
from tests.helpers.doors import INITIALIZE, MODERN_META, House, Pipes, children_of, is_alive, until

pytestmark = pytest.mark.timeout(90)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    found = House(tmp_path)
    yield found
    found.end()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give one house with a background server to the tests that leave it as it was."""
    found = House(tmp_path_factory.mktemp("shared"))
    yield found
    found.end()


def allowed(relay: Pipes, number: int | str) -> str:
    answer = relay.ask(number, "tools/call", name="list_allowed_directories", arguments={})
    return json.dumps(answer["result"])


@pytest.mark.req("SV-02.a")
def test_a_relay_starts_the_server_in_the_background_and_it_outlives_the_relay(house: House) -> None:
    with house.relay() as relay:
        assert relay.initialize()["result"]["serverInfo"]["name"] == "holdfast"
        assert str(house.root) in allowed(relay, 2)
        relay.close_stdin()
        assert relay.process.wait(10) == 0
        assert relay.rest() == b""
    facts = house.facts()
    assert facts["kind"] == "background"
    assert is_alive(facts["pid"])
    assert os.getsid(facts["pid"]) == facts["pid"]


@pytest.mark.req("SV-02.g", "SV-11.a")
def test_the_state_folder_and_all_in_it_are_for_its_owner_alone(shared: House) -> None:
    with shared.relay() as relay:
        relay.initialize()
        assert stat.S_IMODE(shared.state.stat().st_mode) == 0o700
        for name in ("agent.token", "person.key", "server.sock", "server.json", "server.lock"):
            assert stat.S_IMODE((shared.state / name).stat().st_mode) == 0o600, name
        assert len(bytes.fromhex(shared.token)) == 32
        assert (shared.state / "person.key").read_text() != (shared.state / "agent.token").read_text()


@pytest.mark.req("SV-02.a", "SV-02.b")
def test_relays_started_at_once_share_one_server_each_with_its_own_roots(house: House) -> None:
    folders = [house.root / f"p{number}" for number in range(5)]
    for folder in folders:
        folder.mkdir()

    def visit(folder: Path) -> tuple[str, int]:
        with house.relay(folder) as relay:
            relay.initialize()
            return allowed(relay, 2), house.facts()["pid"]

    with ThreadPoolExecutor(5) as pool:
        seen = list(pool.map(visit, folders))
    assert len({pid for _text, pid in seen}) == 1
    for folder, (text, _pid) in zip(folders, seen, strict=True):
        assert str(folder) in text
        assert sum(str(other) in text for other in folders) == 1


@pytest.mark.req("SV-02.e")
def test_a_server_killed_under_a_relay_is_replaced_and_the_client_is_told(house: House) -> None:
    with house.relay() as relay:
        relay.initialize()
        pid = house.facts()["pid"]
        os.kill(pid, signal.SIGSTOP)
        relay.send(id=7, method="tools/call", params={"name": "list_allowed_directories", "arguments": {}})
        relay.send(id="text", method="tools/list", params={})
        os.kill(pid, signal.SIGKILL)
        for number in (7, "text"):
            error = relay.answer(number)["error"]
            assert error["data"]["retryable"] is True
            assert error["data"]["code"] == "RESOURCE_BUSY"
        assert str(house.root) in allowed(relay, 8)
        assert house.facts()["pid"] != pid


@pytest.mark.req("SV-02.e", "SV-04.a")
def test_a_modern_client_goes_on_after_its_server_was_killed(house: House) -> None:
    with house.relay() as relay:
        first = relay.ask(1, "tools/list", _meta=MODERN_META)
        killed = house.facts()["pid"]
        os.kill(killed, signal.SIGKILL)
        until("the server is back", lambda: house.facts()["pid"] != killed)
        assert relay.ask(2, "tools/list", _meta=MODERN_META)["result"]["tools"] == first["result"]["tools"]


@pytest.mark.req("SV-02.c")
def test_a_server_of_another_version_is_asked_to_drain_and_replaced(house: House) -> None:
    older = "import holdfast; holdfast.__version__ = '0.0.1'; from holdfast.cli.main import cli; cli(['serve', '--background'])"
    process = subprocess.Popen(
        [*command()[:1], "-c", older], env=house.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until("the older server is up", lambda: house.facts().get("version") == "0.0.1")
    with house.relay() as relay:
        relay.initialize()
        assert house.facts()["version"] != "0.0.1"
    assert process.wait(10) == 0


@pytest.mark.req("SV-02.e", "SV-02.f")
def test_stop_ends_the_server_and_the_relay_starts_one_when_the_client_asks_again(house: House) -> None:
    with house.relay() as relay:
        relay.initialize()
        assert house.run("stop").returncode == 0
        assert house.run("status").returncode == 3
        assert str(house.root) in allowed(relay, 3)
        assert house.run("status").returncode == 0


@pytest.mark.req("SV-02.d")
def test_a_background_server_without_clients_ends_and_one_with_a_client_does_not(house: House) -> None:
    house.settings("settings:\n  server:\n    idle_exit_seconds: 0.5\n")
    with house.relay() as relay:
        relay.initialize()
        pid = house.facts()["pid"]
        with pytest.raises(AssertionError):
            until("the server ended", lambda: not is_alive(pid), 1.2)
        assert "result" in relay.ask(4, "ping")
    until("the server ended", lambda: not is_alive(pid), 8)
    assert not (house.state / "server.sock").exists()


@pytest.mark.req("SV-02.d")
def test_a_taken_port_moves_a_background_server_to_a_free_one(house: House) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        house.settings(f"settings:\n  server:\n    port: {port}\n")
        with house.relay() as relay:
            relay.initialize()
            assert house.facts()["port"] not in (port, 0, None)


@pytest.mark.req("SV-02.h")
def test_settings_come_from_the_file_and_not_from_the_first_client(house: House) -> None:
    other = house.root / "other.yml"
    other.write_text("settings:\n  mcp:\n    groups:\n      files:\n        enabled: false\n")
    with house.relay(HOLDFAST_SETTINGS=str(other), DATABASE_URL="sqlite:////nowhere/x.db") as relay:
        relay.initialize()
        assert str(house.root) in allowed(relay, 2)
        if Path("/proc").exists():
            environment = Path(f"/proc/{house.facts()['pid']}/environ").read_bytes()
            assert b"HOLDFAST_SETTINGS" not in environment
            assert b"DATABASE_URL" not in environment


@pytest.mark.req("SV-02.b", "FS-01.c")
def test_the_working_directory_is_the_root_when_none_is_given(shared: House) -> None:
    with shared.bare_relay(shared.root) as relay:
        relay.initialize()
        assert str(shared.root) in allowed(relay, 2)


@pytest.mark.req("SV-02.b", "FS-01.c")
@pytest.mark.parametrize("method", ["initialize", "server/discover"])
def test_a_refused_root_is_the_answer_to_the_first_request(shared: House, method: str) -> None:
    with shared.bare_relay("/") as relay:
        error = relay.ask(1, method, **(INITIALIZE if method == "initialize" else {"_meta": MODERN_META}))["error"]
        assert "working directory" in error["message"]
        assert error["data"]["code"] == "INVALID_ARGUMENT"
        relay.close_stdin()
        assert relay.process.wait(10) == 2
        assert "working directory" in relay.errors()


@pytest.mark.req("SV-02.a", "SV-02.g")
def test_answers_under_way_are_delivered_after_the_client_closed_its_end(shared: House) -> None:
    with shared.relay() as relay:
        relay.initialize()
        for number in range(50):
            relay.send(id=number, method="tools/list", params={})
        relay.close_stdin()
        lines = relay.rest().splitlines()
        assert sorted(json.loads(line)["id"] for line in lines) == list(range(50))
        assert relay.process.wait(10) == 0


@pytest.mark.req("SV-02")
def test_broken_json_and_lone_surrogates_are_answered(shared: House) -> None:
    with shared.relay() as relay:
        relay.initialize()
        relay.write(b"{not json}\n")
        assert relay.read()["error"]["code"] == -32700
        relay.write(
            b'{"jsonrpc":"2.0","id":5,"method":"tools/call",'
            b'"params":{"name":"read_text_file","arguments":{"path":"\\ud800"}}}\n'
        )
        result = relay.answer(5)["result"]
        assert (result["isError"], result["structuredContent"]["code"]) == (True, "INVALID_PATH")
        assert "result" in relay.ask(6, "ping")


@pytest.mark.req("SV-02.a", "SV-05.b")
@pytest.mark.parametrize("id_last", [False, True])
def test_a_message_over_the_limit_is_refused_under_its_own_id(house: House, id_last: bool) -> None:
    house.settings("settings:\n  server:\n    max_body_bytes: 100000\n")
    with house.relay() as relay:
        relay.initialize()
        head: dict[str, Any] = {"jsonrpc": "2.0", "id": 9, "method": "tools/call"}
        params = {"params": {"name": "x", "arguments": {"content": "x" * 3_000_000}}}
        message = {**params, **head} if id_last else {**head, **params}
        relay.write(json.dumps(message).encode() + b"\n")
        assert relay.answer(9)["error"]["data"]["code"] == "PAYLOAD_TOO_LARGE"
        assert "result" in relay.ask(10, "ping")


@pytest.mark.req("SV-02")
def test_a_client_that_dies_in_the_middle_of_a_line_harms_nobody(shared: House) -> None:
    with shared.relay() as survivor:
        survivor.initialize()
        for _death in range(3):
            with shared.relay() as relay:
                relay.initialize()
                relay.write(b'{"jsonrpc":"2.0","id":3,"method":"tools/li')
                relay.process.kill()
        assert "result" in survivor.ask(2, "ping")


@pytest.mark.req("SV-02.c")
def test_in_process_serves_stdio_and_the_socket_and_keeps_others_out(house: House) -> None:
    with house.relay(options=["--in-process"]) as inside:
        assert inside.initialize()["result"]["serverInfo"]["name"] == "holdfast"
        assert str(house.root) in allowed(inside, 2)
        status = json.loads(house.run("status", "--json").stdout)
        assert status["kind"] == "in-process"
        assert status["pid"] == inside.process.pid
        second = house.run("stdio", "--in-process", str(house.root))
        assert second.returncode == 76
        assert str(inside.process.pid) in second.stderr
        assert second.stdout == ""
        with house.relay() as guest:
            guest.initialize()
            assert str(house.root) in allowed(guest, 2)
        inside.close_stdin()
        assert inside.process.wait(10) == 0
        assert inside.rest() == b""
    assert house.run("status").returncode == 3


@pytest.mark.req("SV-03.b")
def test_serve_without_pages_and_without_http_speaks_stdio(house: House) -> None:
    with Pipes(["serve", "--no-ui", "--no-http", str(house.root)], house.env, "/") as inside:
        inside.initialize()
        assert str(house.root) in allowed(inside, 2)


@pytest.mark.req("SV-02")
def test_a_state_folder_with_a_very_long_path_works(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    house = House(deep)
    try:
        with house.relay() as relay:
            relay.initialize()
            assert str(house.root) in allowed(relay, 2)
    finally:
        house.end()


@pytest.mark.req("SV-02.a", "SV-04.a")
@pytest.mark.parametrize("mode", [LEGACY, MODERN, "auto"])
def test_the_official_client_works_in_both_eras(shared: House, mode: str) -> None:
    with Agent([shared.root], shared.state, mode=mode) as agent:
        assert "list_allowed_directories" in [tool.name for tool in agent.tools()]
        assert str(shared.root) in agent.call("list_allowed_directories").ok().text


@pytest.mark.req("SV-02.a")
def test_the_relay_imports_nothing_beyond_the_standard_library(shared: House) -> None:
    program = (
        "import sys; sys.argv = ['holdfast', 'stdio', sys.argv[1]]\n"
        "from holdfast.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [*command()[:1], "-c", program, str(shared.root)],
        env=shared.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(json.loads(done.stderr.strip().replace("'", '"')))
    assert not loaded & {"mcp", "anyio", "asyncio", "pydantic", "click", "typing", "subprocess", "logging", "starlette"}
    assert done.stdout == ""


@pytest.mark.req("SV-02.f", "SV-02.e")
def test_a_call_under_way_is_answered_before_a_stopped_server_ends(house: House) -> None:
    (house.root / "n.json").write_text("1")
    with house.relay() as relay:
        relay.initialize()
        slow = {"file_path": "n.json", "expression": "reduce range(1000000) as $i (0; . + 1)"}
        relay.send(id=2, method="tools/call", params={"name": "query_json", "arguments": slow})
        child = until("jq is running", lambda: children_of(house.facts()["pid"]))[0]
        os.kill(child, signal.SIGSTOP)
        with Pipes(["stop"], house.env, "/") as stop:
            until("the server drains", lambda: not (house.state / "server.sock").exists())
            os.kill(child, signal.SIGCONT)
            assert "1000000" in json.dumps(relay.answer(2)["result"])
            assert stop.process.wait(10) == 0


@pytest.mark.req("FS-01.a", "SV-02.b")
def test_directories_of_the_settings_come_before_those_of_the_environment(house: House) -> None:
    named, spare = house.root / "named", house.root / "spare"
    named.mkdir()
    spare.mkdir()
    with house.bare_relay("/", ROOT_DIR=str(spare)) as relay:
        relay.initialize()
        assert str(spare) in allowed(relay, 2)
    assert house.run("stop").returncode == 0
    house.settings(f"settings:\n  folders:\n    roots: ['{named}']\n")
    with house.bare_relay("/", ROOT_DIR=str(spare)) as relay, house.relay() as other:
        relay.initialize()
        assert str(named) in allowed(relay, 2)
        assert str(spare) not in allowed(relay, 3)
        other.initialize()
        assert str(named) not in allowed(other, 2)


@pytest.mark.req("SV-02.a", "SV-05.b")
def test_a_client_that_never_reads_holds_nobody_up(shared: House) -> None:
    (shared.root / "big.txt").write_text("line of text\n" * 5_000)
    with shared.relay() as stuck, shared.relay() as other:
        stuck.initialize()
        other.initialize()
        for number in range(200):
            stuck.send(
                id=number, method="tools/call", params={"name": "read_text_file", "arguments": {"path": "big.txt"}}
            )
        assert str(shared.root) in allowed(other, 2)
        assert {stuck.read()["id"] for _answer in range(200)} == set(range(200))


@pytest.mark.req("SV-02.g")
def test_what_a_client_sends_never_reaches_the_servers_log(shared: House) -> None:
    canary = "canary-7f3a"
    with shared.relay() as relay:
        relay.initialize()
        relay.write(b'{"jsonrpc":"2.0","id":1,"method":"' + canary.encode() + b'","params":7}\n')
        relay.read()
        relay.ask(2, "tools/call", name=canary, arguments={canary: canary})
        relay.ask(3, "tools/call", name="read_text_file", arguments={"path": 7, canary: canary})
        relay.ask(4, "initialize", **{**INITIALIZE, "protocolVersion": canary})
        relay.write(canary.encode() + b"\n")
        relay.read()
    assert canary not in (shared.state / "server.log").read_text()
