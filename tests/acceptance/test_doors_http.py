"""The HTTP and WebSocket doors: both protocol eras, and who is turned away with which status."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import websockets.exceptions
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from websockets.sync.client import connect

from tests.helpers.agent import LEGACY, MODERN
from tests.helpers.doors import ACCEPT, INITIALIZE, LIST, MODERN_META, House, post, until

pytestmark = pytest.mark.timeout(90)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server with one root, one configured host and one configured origin, a small body and a short patience."""
    found = House(tmp_path_factory.mktemp("http"))
    found.settings(
        "settings:\n  server:\n    allowed_hosts: [files.example]\n    allowed_origins: ['https://app.example']\n"
        "    max_body_bytes: 300000\n    slow_client_seconds: 0.7\n    max_connections: 40\n"
    )
    with found.serve(str(found.root)):
        yield found


def result(response: httpx2.Response) -> Any:
    assert response.status_code == 200, response.text
    if response.headers["content-type"].startswith("application/json"):
        return response.json()
    data = [line[6:] for line in response.text.splitlines() if line.startswith("data: {")]
    return json.loads(data[-1])


@pytest.mark.req("SV-05.a")
@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "[::1]:8124", "files.example", "LOCALHOST:99"])
def test_our_own_host_names_are_served(house: House, host: str) -> None:
    assert post(house, host=host).status_code == 200


@pytest.mark.req("SV-05.a")
@pytest.mark.parametrize(
    "host", ["evil.test", "127.0.0.1.evil.test", "files.example.evil.test", "localhost@evil.test", ""]
)
def test_any_other_host_is_misdirected(house: House, host: str) -> None:
    assert post(house, host=host).status_code == 421
    assert httpx2.get(f"{house.url}/health", headers={"host": host}).status_code == 421


@pytest.mark.req("SV-05.a")
@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.test",
        "null",
        "http://localhost:1",
        "http://127.0.0.1.evil.test",
        "file://",
        "https://app.example.evil",
    ],
)
def test_a_foreign_origin_is_forbidden(house: House, origin: str) -> None:
    answer = post(house, origin=origin)
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.req("SV-05.a")
def test_two_origins_are_none_of_ours_even_if_the_first_one_is(house: House) -> None:
    headers = [("authorization", f"Bearer {house.token}"), ("origin", house.url), ("origin", "https://evil.test")]
    assert httpx2.post(f"{house.url}/mcp", json=LIST, headers=headers).status_code == 403


@pytest.mark.req("SV-11.c")
def test_the_agents_token_does_not_open_the_persons_page(house: House) -> None:
    answer = httpx2.get(f"{house.url}/api/me", headers={"authorization": f"Bearer {house.token}"})
    assert answer.status_code == 401
    assert "holdfast open" in answer.text


@pytest.mark.req("SV-05.a")
def test_our_own_origin_and_the_configured_one_are_served(house: House) -> None:
    assert post(house, origin=house.url).status_code == 200
    assert post(house, origin=house.url.replace("127.0.0.1", "localhost")).status_code == 200
    configured = post(house, origin="https://app.example")
    assert configured.headers["access-control-allow-origin"] == "https://app.example"
    assert "access-control-allow-origin" not in post(house, origin=house.url).headers


@pytest.mark.req("SV-05.a")
def test_preflights_are_answered_for_configured_origins_only(house: House) -> None:
    def preflight(origin: str) -> httpx2.Response:
        asked = {"origin": origin, "access-control-request-method": "POST"}
        return httpx2.options(f"{house.url}/mcp", headers=asked)

    assert preflight("https://app.example").status_code == 204
    assert preflight(house.url).status_code == 403
    assert preflight("https://evil.test").status_code == 403


@pytest.mark.req("SV-05.c", "SV-10", "SV-11.a")
@pytest.mark.parametrize("value", ["", "Bearer", "Bearer wrong", "Basic dXNlcjpwYXNz", "Bearer \u00ff", "Bearer  "])
def test_no_key_or_a_wrong_one_is_unauthorized_even_on_loopback(house: House, value: str) -> None:
    answer = post(house, authorization=value)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert post(house, authorization=f"bearer {house.token}").status_code == 200


@pytest.mark.req("SV-11.a")
def test_the_persons_key_does_not_open_the_agents_door(house: House) -> None:
    key = (house.state / "person.key").read_text().strip()
    assert post(house, authorization=f"Bearer {key}").status_code == 401


@pytest.mark.req("SV-01.a", "SV-05.b")
def test_a_body_over_the_limit_is_too_large_announced_or_not(house: House) -> None:
    big = {**LIST, "params": {"cursor": "x" * 400_000}}
    assert post(house, big).status_code == 413

    def pieces() -> Iterator[bytes]:
        for _piece in range(10):
            yield b"x" * 50_000

    headers = {"authorization": f"Bearer {house.token}"}
    assert httpx2.post(f"{house.url}/mcp", content=pieces(), headers=headers).status_code == 413
    assert post(house).status_code == 200


@pytest.mark.req("SV-01.b", "SV-11.a")
def test_health_is_open_and_tells_no_secret(house: House) -> None:
    answer = httpx2.get(f"{house.url}/health")
    assert answer.json()["status"] == "ok"
    assert house.token not in answer.text
    assert str(house.root) not in answer.text


@pytest.mark.req("SV-01.a", "SV-04.a")
def test_a_handshake_client_gets_a_session_and_a_request_without_one_is_served(house: House) -> None:
    opened = post(house, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE})
    session = opened.headers["mcp-session-id"]
    assert result(opened)["result"]["protocolVersion"] == "2025-11-25"
    notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert post(house, notice, mcp_session_id=session).status_code == 202
    assert result(post(house, mcp_session_id=session))["result"]["tools"]
    assert result(post(house))["result"]["tools"]
    assert post(house, mcp_session_id="unknown").status_code == 404


@pytest.mark.req("SV-01.a", "SV-04.a")
def test_the_sessionless_protocol_is_served(house: House) -> None:
    message = {**LIST, "params": {"_meta": MODERN_META}}
    answer = post(house, message, mcp_protocol_version="2026-07-28", mcp_method="tools/list")
    assert "mcp-session-id" not in answer.headers
    assert result(answer)["result"]["tools"]


@pytest.mark.req("SV-01.a", "SV-04.a", "SV-02.b")
@pytest.mark.parametrize("mode", [LEGACY, MODERN, "auto"])
def test_the_official_client_works_over_http_in_both_eras(house: House, mode: str) -> None:
    async def visit() -> tuple[list[str], str]:
        headers = {"authorization": f"Bearer {house.token}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(f"{house.url}/mcp", http_client=http), mode=mode, cache=None) as client,
        ):
            names = [tool.name for tool in (await client.list_tools()).tools]
            return names, str(await client.call_tool("list_allowed_directories", {}))

    names, text = anyio.run(visit)
    assert "list_allowed_directories" in names
    assert str(house.root) in text


@pytest.mark.req("SV-01.a")
def test_a_lone_surrogate_over_http_is_answered(house: House) -> None:
    body = b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"read_text_file","arguments":{"path":"\\ud800"}}}'
    headers = {"authorization": f"Bearer {house.token}", "accept": ACCEPT, "content-type": "application/json"}
    assert httpx2.post(f"{house.url}/mcp", content=body, headers=headers).status_code in (200, 400)


@pytest.mark.req("SV-01.b", "SV-05.b")
def test_a_websocket_carries_one_message_a_frame(house: House) -> None:
    address = house.url.replace("http", "ws") + "/ws"
    headers = {"authorization": f"Bearer {house.token}"}
    with connect(address, additional_headers=headers, subprotocols=["mcp"], compression=None) as line:  # type: ignore[list-item]
        assert line.subprotocol == "mcp"
        line.send(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}))
        assert json.loads(line.recv(10))["result"]["serverInfo"]["name"] == "holdfast"
        line.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        call = {"name": "list_allowed_directories", "arguments": {}}
        line.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}))
        assert str(house.root) in str(line.recv(10))
        line.send("{broken")
        assert json.loads(line.recv(10))["error"]["code"] == -32700
        line.send("x" * 400_000)
        with pytest.raises(websockets.exceptions.ConnectionClosedError) as closed:
            line.recv(10)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


@pytest.mark.req("SV-01.b")
def test_a_websocket_outlives_the_time_that_a_request_may_take_to_arrive(house: House) -> None:
    headers = {"authorization": f"Bearer {house.token}"}
    with connect(house.url.replace("http", "ws") + "/ws", additional_headers=headers) as line:
        line.send(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}))
        assert json.loads(line.recv(10))["id"] == 0
        time.sleep(2)
        line.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))
        assert json.loads(line.recv(10))["id"] == 1


@pytest.mark.req("SV-05.a", "SV-05.c")
@pytest.mark.parametrize(
    ("extra", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"origin": "https://evil.test"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "evil.test"}, 421),
    ],
)
def test_a_websocket_is_guarded_like_every_request(house: House, extra: dict[str, str], status: int) -> None:
    port = int(house.url.rsplit(":", 1)[1])
    head = {"host": "localhost", "upgrade": "websocket", "connection": "Upgrade", "sec-websocket-version": "13"}
    head |= {"sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", **extra}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    with socket.create_connection(("127.0.0.1", port), 10) as line:
        line.sendall(f"GET /ws HTTP/1.1\r\n{lines}\r\n".encode())
        assert line.recv(4096).startswith(f"HTTP/1.1 {status} ".encode())


@pytest.mark.req("SV-05.b")
def test_slow_heads_and_slow_bodies_are_cut_off(house: House) -> None:
    port = int(house.url.rsplit(":", 1)[1])
    begun = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\n"
    body = begun + f"authorization: Bearer {house.token}\r\ncontent-length: 9\r\n\r\n{{".encode()
    lines = [socket.create_connection(("127.0.0.1", port), 10) for _line in range(3)]
    for line, sent in zip(lines, (b"", begun, body), strict=True):
        line.sendall(sent)
    assert post(house).status_code == 200
    assert lines[0].recv(100) == b""
    assert lines[1].recv(100) == b""
    assert lines[2].recv(100).startswith(b"HTTP/1.1 408 ")
    for line in lines:
        line.close()


@pytest.mark.req("SV-05.b")
def test_a_head_over_64_kib_is_refused(house: House) -> None:
    assert post(house, x_filler="x" * 100_000).status_code == 431


@pytest.mark.req("SV-05.b")
def test_silent_connections_are_bounded_and_give_way_to_one_that_sends_a_request(house: House) -> None:
    port = int(house.url.rsplit(":", 1)[1])
    crowd = [socket.create_connection(("127.0.0.1", port), 10) for _line in range(40)]
    assert post(house).status_code == 200
    with house.relay() as relay:
        assert "result" in relay.initialize()
    until("the oldest ones were closed", lambda: _is_closed(crowd[0]))
    for line in crowd:
        line.close()
    until("there is room again", lambda: _is_served(house))


def _is_closed(line: socket.socket) -> bool:
    line.setblocking(False)
    try:
        return line.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def _is_served(house: House) -> bool:
    try:
        return post(house).status_code == 200
    except httpx2.HTTPError:
        return False


@pytest.mark.req("SV-11.b", "SV-10")
def test_in_open_mode_any_long_key_is_a_tenant_without_folder_tools(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.settings("settings:\n  auth:\n    mode: open\n")
    with house.serve(str(house.root)):
        assert post(house, authorization="Bearer short").status_code == 401
        tenant = result(post(house, authorization="Bearer sixteen-chars-or-more"))["result"]["tools"]
        assert "list_allowed_directories" not in [tool["name"] for tool in tenant]
        mine = result(post(house))["result"]["tools"]
        assert "list_allowed_directories" in [tool["name"] for tool in mine]
        opened = post(
            house,
            {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE},
            authorization="Bearer sixteen-chars-or-more",
        )
        session = opened.headers["mcp-session-id"]
        assert post(house, mcp_session_id=session, authorization="Bearer another-key-of-16").status_code == 404


@pytest.mark.req("SV-02.b")
def test_without_directories_there_are_no_folder_tools_over_http(tmp_path: Path) -> None:
    house = House(tmp_path)
    with house.serve():
        listed = {entry["name"] for entry in result(post(house))["result"]["tools"]}
        assert "file_stat" in listed
        assert listed.isdisjoint({"read_text_file", "list_directory", "write_file", "list_changes"})
        with house.relay() as relay:
            relay.initialize()
            assert relay.ask(1, "tools/list")["result"]["tools"]


@pytest.mark.req("SV-04.a")
def test_a_lone_surrogate_in_a_call_is_answered_by_the_tool(house: House) -> None:
    body = (
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"file_write","arguments":'
        b'{"project":"p","path":"/a","content":"\\ud800"}}}'
    )
    headers = {"authorization": f"Bearer {house.token}", "accept": "application/json, text/event-stream"}
    answer = httpx2.post(f"{house.url}/mcp", content=body, headers={**headers, "content-type": "application/json"})
    assert (answer.status_code, answer.json()["id"]) == (200, 7)
    assert answer.json()["result"]["structuredContent"]["code"] == "INVALID_QUERY"


@pytest.mark.req("SV-05.b")
@pytest.mark.parametrize(("length", "status"), [(8_000, 401), (8_200, 431), (30_000, 431)])
def test_a_long_line_in_a_websockets_handshake_is_answered_at_once(house: House, length: int, status: int) -> None:
    answer = httpx2.get(
        f"{house.url}/ws",
        headers={
            "upgrade": "websocket",
            "connection": "Upgrade",
            "sec-websocket-version": "13",
            "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
            "authorization": f"Bearer {'x' * length}",
        },
    )
    assert answer.status_code == status
