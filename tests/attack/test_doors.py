"""The doors under attack: connections, sessions and half-sent requests of one caller never shut out another."""

import json
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from tests.helpers.doors import INITIALIZE, LIST, House, post, until
from tests.helpers.raw_http import dial, request_bytes, status_of, websocket

pytestmark = pytest.mark.timeout(90)

TENANT = "a-tenant-who-floods"
OTHER = "another-quiet-tenant"
SETTINGS = {
    "auth": {"mode": "open"},
    "limits": {"tenant": {"read_per_minute": 60}},
    "server": {"max_connections": 64, "max_sessions": 20, "slow_client_seconds": 20.0},
}
START = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server with few connections and sessions, where every long key is a tenant."""
    found = House(tmp_path_factory.mktemp("doors"))
    found.settings(json.dumps({"settings": SETTINGS}))
    with found.serve(str(found.root)):
        yield found


def status(house: House, key: str) -> int:
    return post(house, authorization=f"Bearer {key}").status_code


def open_session(client: httpx2.Client, house: House, key: str) -> httpx2.Response:
    head = {"authorization": f"Bearer {key}", "accept": "application/json, text/event-stream"}
    return client.post(f"{house.url}/mcp", json=START, headers=head)


def use_session(client: httpx2.Client, house: House, key: str, session: str) -> int:
    head = {
        "authorization": f"Bearer {key}",
        "accept": "application/json, text/event-stream",
        "mcp-session-id": session,
    }
    head["mcp-protocol-version"] = str(INITIALIZE["protocolVersion"])
    return client.post(f"{house.url}/mcp", json=LIST, headers=head).status_code


@pytest.mark.req("SV-13.b")
def test_half_sent_requests_are_dropped_before_anybody_is_refused(house: House) -> None:
    with ExitStack() as stack:
        begun = [stack.enter_context(dial(house)) for _ in range(60)]
        for line in begun:
            with_key = request_bytes(TENANT, b"", length=100).partition(b"authorization")[0]
            line.sendall(with_key)
        assert {status(house, key) for key in (TENANT, OTHER, house.token)} == {200}
        assert httpx2.get(f"{house.url}/health").status_code == 200
        with house.relay() as relay:
            assert "result" in relay.initialize()


@pytest.mark.req("SV-13.b")
def test_websockets_and_half_sent_bodies_of_one_tenant_leave_room_for_the_others(house: House) -> None:
    with ExitStack() as stack:
        sockets = Counter(stack.enter_context(websocket(house, TENANT)) for _ in range(40))
        assert sockets == {101: 27, 503: 13}
        half_sent = [stack.enter_context(dial(house)) for _ in range(40)]
        for line in half_sent:
            line.sendall(request_bytes(TENANT, b"{", length=100))
        assert status_of(half_sent[-1]) == 503
        assert {status(house, key) for key in (OTHER, house.token)} == {200}
        with house.relay() as relay:
            assert "result" in relay.initialize()
    until("the tenant has room again", lambda: status(house, TENANT) == 200)


@pytest.mark.req("SV-13.b")
def test_a_tenant_with_too_many_idle_connections_loses_its_oldest_one_and_is_served(house: House) -> None:
    with ExitStack() as stack:
        lines: list[socket.socket] = []
        for _ in range(30):
            lines.append(line := stack.enter_context(dial(house)))
            line.sendall(request_bytes("a-tenant-who-keeps-alive", LIST))
            assert status_of(line) == 200
        assert _is_over(lines[0])
        lines[-1].sendall(request_bytes("a-tenant-who-keeps-alive", LIST))
        assert status_of(lines[-1]) == 200


def _is_over(line: socket.socket) -> bool:
    try:
        while line.recv(65_536):
            pass
    except ConnectionResetError:
        return True
    return True


@pytest.mark.req("SV-13.b")
def test_a_tenant_over_its_sessions_loses_its_oldest_idle_one_and_others_keep_theirs(house: House) -> None:
    with httpx2.Client() as client:
        (mine,) = [open_session(client, house, OTHER).headers["mcp-session-id"]]
        theirs = [open_session(client, house, TENANT).headers["mcp-session-id"] for _ in range(25)]
        assert use_session(client, house, OTHER, mine) == 200
        assert {use_session(client, house, TENANT, session) for session in theirs[-9:]} == {200}
        assert use_session(client, house, TENANT, theirs[0]) == 404
        local = open_session(client, house, house.token)
        assert local.status_code == 200


@pytest.mark.req("SV-13.b")
def test_initialize_counts_as_a_call(house: House) -> None:
    with httpx2.Client() as client:
        answers = [open_session(client, house, "a-tenant-who-initializes") for _ in range(62)]
    assert Counter(answer.status_code for answer in answers) == {200: 60, 429: 2}
    assert int(answers[-1].headers["retry-after"]) > 0


@pytest.mark.req("SV-13.b")
@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({"transfer_encoding": "chunked"}, 400),
        ({"version": "2.0"}, 505),
        ({"version": "0.9"}, 505),
        ({"version": "1.2"}, 505),
        ({"version": "1.0"}, 200),
    ],
)
def test_requests_of_two_lengths_or_strange_versions_are_refused_and_the_connection_closed(
    house: House, sent: dict[str, str], expected: int
) -> None:
    with dial(house) as line:
        line.sendall(request_bytes(house.token, LIST, **sent))  # type: ignore[arg-type]
        assert status_of(line) == expected
        assert _is_over(line)


@pytest.mark.req("SV-13.c")
def test_a_body_of_many_values_is_refused_before_it_is_parsed(house: House) -> None:
    arguments = {f"name{number}": 1 for number in range(300_000)}
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "file_read", "arguments": arguments}}
    answer = post(house, call)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "Invalid request: more than 25000 values in one message"
    assert answer.json()["id"] == 7


@pytest.mark.req("SV-13.b")
def test_half_sent_requests_of_one_address_behind_a_trusted_proxy_do_not_drop_those_of_another(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.settings(json.dumps({"settings": {"server": {"max_connections": 40, "trusted_proxies": ["127.0.0.0/8"]}}}))
    with house.serve(str(house.root)), dial(house) as kept, ExitStack() as stack:
        for line, address in [
            (kept, "192.0.2.1"),
            *((stack.enter_context(dial(house)), "192.0.2.9") for _ in range(6)),
        ]:
            line.sendall(f"GET /health HTTP/1.1\r\nhost: localhost\r\nx-forwarded-for: {address}\r\n\r\n".encode())
            assert status_of(line) == 200
        for _ in range(3):
            stack.enter_context(dial(house)).sendall(b"GET /")
        kept.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-forwarded-for: 192.0.2.1\r\n\r\n")
        assert status_of(kept) == 200
