"""Remote access: refused without TLS or a named proxy, then MCP, WebSocket, console and worker over TLS, and behind a proxy."""

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from websockets.sync.client import connect

from tests.helpers.agent import LEGACY, MODERN
from tests.helpers.certificates import Authority
from tests.helpers.console import JSON, link_of
from tests.helpers.doors import ACCEPT, INITIALIZE, LIST, House, Pipes, free_port, until

pytestmark = pytest.mark.timeout(90)

PUBLIC = "https://files.example"


def own_address() -> str:
    """Return the address that other machines reach this one by; what is sent to it stays on this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("198.51.100.1", 9))  # it only chooses a route; nothing is sent
        return str(probe.getsockname()[0])


def server_settings(**server: Any) -> str:
    return json.dumps({"settings": {"server": server}})


@contextmanager
def serve_tls(tmp_path: Path, *arguments: str, **server: Any) -> Iterator[tuple[House, Authority, str]]:
    """Serve over TLS; yields the house, who signed its certificate, and its address by the name in it."""
    authority, house = Authority(), House(tmp_path)
    certificate, key = authority.write(tmp_path)
    house.settings(server_settings(tls={"certificate": str(certificate), "key": str(key)}, **server))
    with house.serve(str(house.root), *arguments):
        yield house, authority, f"https://localhost:{house.facts()['port']}"


def call_files(url: str, token: str, context: ssl.SSLContext | bool, mode: str = MODERN) -> str:
    """List the allowed directories with the official client."""

    async def visit() -> str:
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, verify=context) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode, cache=None) as client,
        ):
            return str(await client.call_tool("list_allowed_directories", {}))

    return anyio.run(visit)


@pytest.mark.req("SV-05.d")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "own"])
def test_a_server_that_others_reach_is_refused_without_tls_or_a_proxy(tmp_path: Path, host: str) -> None:
    house = House(tmp_path)
    ran = house.run("serve", str(house.root), "--port", "0", "--host", own_address() if host == "own" else host)
    assert ran.returncode == 2
    for word in (
        "plain text",
        "settings.server.tls.certificate",
        "settings.server.trusted_proxies",
        "listen on 127.0.0.1",
    ):
        assert word in ran.stderr
    worker = house.run("worker", "--metrics-host", "0.0.0.0", "--metrics-port", "0")
    assert worker.returncode == 2
    assert "plain text" in worker.stderr


@pytest.mark.req("SV-05.d")
def test_a_background_server_is_refused_in_the_same_words(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.settings(server_settings(host="0.0.0.0", port=0))
    ran = house.run("changes")
    relay = house.relay()
    with relay:
        relay.send(id=1, method="initialize", params=INITIALIZE)
        message = relay.read()
    assert ran.returncode in (0, 2)
    assert "error" in message
    assert "settings.server.trusted_proxies" in json.dumps(message) + (house.state / "server.log").read_text()


@pytest.mark.req("SV-05.d", "SV-04.a")
@pytest.mark.parametrize("mode", [LEGACY, MODERN])
def test_the_official_client_works_over_tls_on_an_address_that_others_reach(tmp_path: Path, mode: str) -> None:
    with serve_tls(tmp_path, "--host", "0.0.0.0") as (house, authority, url):
        assert str(house.root) in call_files(url, house.token, authority.context, mode)
        plain = f"http://localhost:{house.facts()['port']}/health"
        with pytest.raises(httpx2.TransportError):
            httpx2.get(plain)
        with pytest.raises(httpx2.ConnectError, match="certificate"):
            httpx2.get(f"{url}/health")
        old = authority.context
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        assert httpx2.get(f"{url}/health", verify=old).status_code == 200
        address = own_address()
        elsewhere = httpx2.Client(base_url=f"https://{address}:{house.facts()['port']}", verify=False)
        with elsewhere:
            assert elsewhere.get("/health", headers={"host": "localhost"}).status_code == 200
            sent = {"authorization": f"Bearer {house.token}", "accept": ACCEPT, "host": "localhost"}
            assert elsewhere.post("/mcp", json=LIST, headers=sent).status_code == 200


@pytest.mark.req("SV-05.d")
def test_a_websocket_works_over_tls(tmp_path: Path) -> None:
    with serve_tls(tmp_path) as (house, authority, url):
        headers = {"authorization": f"Bearer {house.token}", "origin": url}
        address = url.replace("https", "wss") + "/ws"
        with connect(address, additional_headers=headers, ssl=authority.context, compression=None) as line:
            line.send(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}))
            assert json.loads(line.recv(10))["result"]["serverInfo"]["name"] == "holdfast"


@pytest.mark.req("SV-05.d", "SV-11.c")
def test_the_console_over_tls_has_a_secure_cookie_and_pages_of_plain_http_are_foreign(tmp_path: Path) -> None:
    with (
        serve_tls(tmp_path) as (house, authority, url),
        httpx2.Client(base_url=url, verify=authority.context) as browser,
    ):
        link = link_of(house)
        assert link.startswith("https://127.0.0.1:")
        token = link.partition("#")[2]
        plain_page = browser.post(
            "/api/session", json={"link": token}, headers={"origin": url.replace("https", "http")}
        )
        assert plain_page.status_code == 403
        opened = browser.post("/api/session", json={"link": token}, headers={"origin": url})
        assert opened.status_code == 200
        assert "secure" in opened.headers["set-cookie"].lower()
        me = browser.get("/api/me", headers={"x-holdfast-key": opened.json()["key"], "sec-fetch-site": "same-origin"})
        assert me.json()["kind"] == "person"


@pytest.mark.req("SV-05.d")
def test_a_renewed_certificate_is_used_without_a_restart(tmp_path: Path) -> None:
    with serve_tls(tmp_path) as (house, _old, url):
        port = house.facts()["port"]
        with socket.create_connection(("127.0.0.1", port)):  # a handshake that never comes holds nobody up
            new = Authority()
            new.write(tmp_path)

            def is_renewed() -> bool:
                try:
                    return httpx2.get(f"{url}/health", verify=new.context).status_code == 200
                except httpx2.ConnectError:
                    return False

            until("the new certificate is used", is_renewed, 30)


@pytest.mark.req("SV-05.d", "SV-13.b")
def test_half_a_handshake_counts_as_a_connection_and_the_oldest_stranger_goes_first(tmp_path: Path) -> None:
    with serve_tls(tmp_path, max_connections=16) as (house, authority, url), ExitStack() as stack:
        address = ("127.0.0.1", house.facts()["port"])
        lines = [stack.enter_context(socket.create_connection(address)) for _ in range(40)]
        assert httpx2.get(f"{url}/health", verify=authority.context).status_code == 200
        lines[0].settimeout(10)
        assert lines[0].recv(1) == b"", "the oldest was closed for the newer ones"


@pytest.mark.req("SV-05.d")
@pytest.mark.parametrize("fault", ["missing", "encrypted", "foreign", "half"])
def test_a_certificate_that_cannot_be_used_is_said_before_anything_listens(tmp_path: Path, fault: str) -> None:
    house, authority = House(tmp_path), Authority()
    certificate, key = authority.write(tmp_path, password=b"secret-of-mine" if fault == "encrypted" else b"")
    if fault == "missing":
        key.unlink()
    if fault == "foreign":
        key = authority.write(tmp_path, "other")[1]
    tls = {"certificate": str(certificate)} if fault == "half" else {"certificate": str(certificate), "key": str(key)}
    house.settings(server_settings(tls=tls))
    ran = house.run("serve", str(house.root), "--port", "0")
    assert ran.returncode == 2
    words = {"missing": "No such file", "encrypted": "must not be encrypted", "foreign": "no pair", "half": "name both"}
    assert words[fault] in ran.stderr
    assert "Traceback" not in ran.stderr


@contextmanager
def serve_behind_proxy(tmp_path: Path, proxies: list[str]) -> Iterator[tuple[House, str]]:
    """Serve on every address, for a proxy at one of those; yields the house and an address that is not loopback."""
    house = House(tmp_path)
    house.settings(server_settings(host="0.0.0.0", port=0, trusted_proxies=proxies, public_url=PUBLIC))
    with house.serve(str(house.root), "--host", "0.0.0.0"):
        yield house, f"http://{own_address()}:{house.facts()['port']}"


@pytest.mark.req("SV-05.d")
def test_plain_http_from_another_address_is_for_the_proxy_alone(tmp_path: Path) -> None:
    with serve_behind_proxy(tmp_path, ["203.0.113.0/24"]) as (house, url):
        headers = {"authorization": f"Bearer {house.token}", "accept": ACCEPT, "host": "files.example"}
        refused = httpx2.post(f"{url}/mcp", json=LIST, headers=headers)
        assert refused.status_code == 403
        assert "https" in refused.text
        lies = {"x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "https", "forwarded": "for=127.0.0.1;proto=https"}
        assert httpx2.post(f"{url}/mcp", json=LIST, headers=headers | lies).status_code == 403
        health = httpx2.get(f"{url}/health", headers={"host": "files.example"})
        assert health.status_code == 200, "probes come from anywhere"
        assert httpx2.post(f"{house.url}/mcp", json=LIST, headers=headers).status_code == 200, "this machine's own"


@pytest.mark.req("SV-05.d", "SV-51")
def test_the_command_of_the_image_lets_the_gateway_in_and_no_other_machine(tmp_path: Path) -> None:
    house = House(tmp_path)
    with house.serve(str(house.root), "--host", "0.0.0.0", "--trusted-proxy", "gateway"):
        headers = {"authorization": f"Bearer {house.token}", "accept": ACCEPT, "host": "localhost"}
        elsewhere = f"http://{own_address()}:{house.facts()['port']}"
        assert httpx2.post(f"{elsewhere}/mcp", json=LIST, headers=headers).status_code == 403
        assert httpx2.post(f"{house.url}/mcp", json=LIST, headers=headers).status_code == 200
    wrong = house.run("serve", "--host", "0.0.0.0", "--trusted-proxy", "gatewya")
    assert wrong.returncode == 2
    assert "--trusted-proxy" in wrong.stderr


@pytest.mark.req("SV-05.d", "SV-13.b")
def test_what_a_named_proxy_says_of_a_request_counts(tmp_path: Path) -> None:
    with serve_behind_proxy(tmp_path, [own_address()]) as (house, url):
        assert house.run("status").stdout.count(PUBLIC) == 1
        forwarded = {"x-forwarded-proto": "https", "x-forwarded-for": "198.51.100.9"}
        via = forwarded | {"host": "upstream", "x-forwarded-host": "files.example"}
        mcp = {"authorization": f"Bearer {house.token}", "accept": ACCEPT}
        assert httpx2.post(f"{url}/mcp", json=LIST, headers=mcp | via).status_code == 200
        assert httpx2.post(f"{url}/mcp", json=LIST, headers=mcp | forwarded | {"host": "upstream"}).status_code == 421
        elsewhere = via | {"x-forwarded-host": "files.example, evil.test"}
        assert httpx2.post(f"{url}/mcp", json=LIST, headers=mcp | elsewhere).status_code == 421
        token = link_of(house).removeprefix(f"{PUBLIC}/open#")
        plain = httpx2.post(
            f"{url}/api/session", json={"link": token}, headers=JSON | via | {"origin": "http://files.example"}
        )
        assert plain.status_code == 403
        opened = httpx2.post(f"{url}/api/session", json={"link": token}, headers=JSON | via | {"origin": PUBLIC})
        assert "secure" in opened.headers["set-cookie"].lower()


@pytest.mark.req("SV-05.d")
def test_the_metrics_of_a_worker_are_served_over_tls(tmp_path: Path) -> None:
    house, authority = House(tmp_path), Authority()
    certificate, key = authority.write(tmp_path)
    house.settings(server_settings(tls={"certificate": str(certificate), "key": str(key)}))
    port = free_port()
    with Pipes(["worker", "--metrics-host", "0.0.0.0", "--metrics-port", str(port)], house.env, "/") as worker:
        url = f"https://localhost:{port}"

        def answer() -> int:
            assert worker.process.poll() is None
            try:
                return httpx2.get(f"{url}/health", verify=authority.context).status_code
            except httpx2.ConnectError:
                return 0

        until("the worker answers", answer)
        token = (house.state / "metrics.token").read_text().strip()
        headers = {"authorization": f"Bearer {token}"}
        assert httpx2.get(f"{url}/metrics", headers=headers, verify=authority.context).status_code == 200
