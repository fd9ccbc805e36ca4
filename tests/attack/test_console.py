"""The console under attack: other sites, other ports, rebinding, forged and stolen secrets, and tenants among each other."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.auth.context import CallerKind
from holdfast.tools.registry import Group
from holdfast.tools.table import TOOLS
from tests.helpers.console import JSON, OWN, Page, link_of, page_of, sign_in
from tests.helpers.doors import House, post
from tests.helpers.events import EventReader

pytestmark = pytest.mark.timeout(90)

APP = "https://app.example"
"""An origin that the settings allow at the other doors."""
WRITE = {"path": "planted.txt", "content": "by an attacker"}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server with a root, a configured host and origin, and tenants."""
    served = House(tmp_path_factory.mktemp("attack"))
    server = {"allowed_hosts": ["files.example"], "allowed_origins": [APP]}
    served.settings(json.dumps({"settings": {"server": server, "auth": {"mode": "open"}}}))
    with served.serve(str(served.root)):
        yield served


@pytest.fixture(scope="module")
def page(house: House) -> Page:
    """Give a signed-in page of the person."""
    return sign_in(house)


def attempt(page: Page, headers: dict[str, str | None], body: Any = None, method: str = "POST") -> httpx2.Response:
    """Send a call with a page's headers, some of them changed or, where None, left out."""
    sent = {name: text for name, text in {**page.headers, **headers}.items() if text is not None}
    content = json.dumps(WRITE if body is None else body) if not isinstance(body, bytes) else body
    return httpx2.request(method, f"{page.url}/api/write_file", headers=sent, content=content)


def assert_nothing_was_planted(house: House) -> None:
    assert not (house.root / "planted.txt").exists()


@pytest.mark.req("SV-11.f")
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.test", "sec-fetch-site": "cross-site"},
        {"origin": "https://evil.test", "sec-fetch-site": None},
        {"origin": "https://evil.test"},
        {"origin": "null", "sec-fetch-site": "cross-site"},
        {"origin": "null"},
        {"origin": APP, "sec-fetch-site": "cross-site"},
        {"origin": APP, "sec-fetch-site": None},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": None, "origin": None},
        {"origin": "http://localhost:1", "sec-fetch-site": "same-site"},
        {"host": "evil.test"},
        {"host": "files.example.evil.test"},
    ],
)
def test_another_site_or_port_calls_nothing_even_with_both_secrets(
    house: House, page: Page, headers: dict[str, str | None]
) -> None:
    answer = attempt(page, headers)
    assert answer.status_code in (403, 421), answer.text
    assert_nothing_was_planted(house)


@pytest.mark.req("SV-11.f")
def test_the_origin_of_another_name_for_this_machine_is_another_origin(house: House, page: Page) -> None:
    port = house.facts()["port"]
    answer = attempt(page, {"origin": f"http://localhost:{port}", "sec-fetch-site": None})
    assert answer.status_code == 403
    assert_nothing_was_planted(house)
    own = attempt(page, {"origin": house.url, "sec-fetch-site": None}, {"path": "own.txt", "content": "mine"})
    assert own.status_code == 200


@pytest.mark.req("SV-11.f")
@pytest.mark.parametrize(
    "content_type",
    [
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain",
        "text/plain; application/json",
        "",
    ],
)
def test_a_form_posts_nothing(house: House, page: Page, content_type: str) -> None:
    """What a form can send has no header of ours; here it even has, and its type alone refuses it."""
    assert attempt(page, {"content-type": content_type}).status_code == 400
    assert attempt(page, {"content-type": content_type, "x-holdfast-key": None}).status_code in (400, 401)
    assert_nothing_was_planted(house)


@pytest.mark.req("SV-11.f")
def test_a_page_elsewhere_gets_no_leave_to_send_what_a_call_takes(house: House) -> None:
    for origin in ("https://evil.test", APP):
        asked = {
            "origin": origin,
            "access-control-request-method": "POST",
            "access-control-request-headers": "content-type, x-holdfast-key",
        }
        answer = httpx2.options(f"{house.url}/api/write_file", headers=asked)
        assert "x-holdfast-key" not in answer.headers.get("access-control-allow-headers", "").lower()
        assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.req("SV-11.f")
def test_a_cookie_alone_opens_nothing_as_any_server_of_this_machine_is_sent_it(house: House, page: Page) -> None:
    assert attempt(page, {"x-holdfast-key": None}).status_code == 401
    assert attempt(page, {"x-holdfast-key": ""}).status_code == 401
    assert attempt(page, {"x-holdfast-key": page.cookie.partition("=")[2]}).status_code == 401
    for path in ("me", "events", "tools", "workspace", "session", "media?path=a.txt", "openapi.json"):
        headers = {**OWN, "cookie": page.cookie}
        assert httpx2.get(f"{house.url}/api/{path}", headers=headers).status_code == 401, path
    assert post(house, authorization="", cookie=page.cookie).status_code == 401
    assert_nothing_was_planted(house)


@pytest.mark.req("SV-11.f")
def test_the_second_key_alone_or_with_another_cookie_opens_nothing(house: House, page: Page) -> None:
    other = sign_in(house)
    name, _, value = page.cookie.partition("=")
    for cookie in (
        "",
        f"{name}=",
        f"{name}={value}x",
        f"holdfast_session_1={value}",
        f"holdfast_session={value}",
        other.cookie,
    ):
        assert attempt(page, {"cookie": cookie}).status_code == 401, cookie
    assert attempt(page, {"cookie": f'{name}="{"a" * 9_000}"'}).status_code == 401
    assert attempt(page, {"cookie": f"x=1; {name}={value}\x01"}).status_code in (400, 401)
    assert_nothing_was_planted(house)


@pytest.mark.req("SV-11.f")
def test_no_token_of_the_state_folder_signs_in_or_calls(house: House, page: Page) -> None:
    tokens = [(house.state / name).read_text().strip() for name in ("agent.token", "person.key", "metrics.token")]
    for token in tokens:
        for body in ({"link": token}, {"api_key": token}):
            answer = httpx2.post(f"{house.url}/api/session", headers={**JSON, **OWN}, json=body)
            if body.get("api_key") == tokens[1]:
                assert answer.json()["me"]["kind"] == "tenant", (
                    "an open server knows no key, and takes any as a tenant's"
                )
                continue
            assert answer.status_code == 403, answer.text
            assert "set-cookie" not in answer.headers
        bearer = {**JSON, **OWN, "authorization": f"Bearer {token}"}
        assert httpx2.post(f"{house.url}/api/write_file", headers=bearer, json=WRITE).status_code == 401
        assert (
            attempt(page, {"cookie": None, "x-holdfast-key": token, "authorization": f"Bearer {token}"}).status_code
            == 401
        )
    assert_nothing_was_planted(house)


@pytest.mark.req("SV-11.c")
def test_a_stolen_link_works_for_whoever_is_first_and_for_nobody_else(house: House) -> None:
    token = link_of(house).partition("#")[2]
    answers = [
        httpx2.post(f"{house.url}/api/session", headers={**JSON, **OWN}, json={"link": token}).status_code
        for _ in range(5)
    ]
    assert answers == [200, 403, 403, 403, 403]
    for guess in ("", "x", "../person.key", "\x00", token + " ", token.upper()):
        answer = httpx2.post(f"{house.url}/api/session", headers={**JSON, **OWN}, json={"link": guess})
        assert answer.status_code == 403


@pytest.mark.req("SV-11.f")
@pytest.mark.parametrize(
    "headers", [{"origin": "https://evil.test"}, {"sec-fetch-site": "cross-site"}, {"origin": APP}]
)
def test_no_other_site_signs_a_browser_in_or_out(house: House, headers: dict[str, str]) -> None:
    """Signing in to an attacker's session is an attack as well: what the person does there would be the attacker's."""
    token = link_of(house).partition("#")[2]
    refused = httpx2.post(f"{house.url}/api/session", headers={**JSON, **headers}, json={"link": token})
    assert refused.status_code == 403
    assert "set-cookie" not in refused.headers
    page = page_of(house.url, {"link": token})
    out = httpx2.delete(f"{house.url}/api/session", headers={**page.headers, "sec-fetch-site": "cross-site"})
    assert out.status_code == 403
    assert page.get("me").status_code == 200


@pytest.mark.req("SV-11.f")
def test_the_pages_cannot_be_framed_and_let_no_script_in(house: House) -> None:
    for path in ("/", "/reviews/x", "/open"):
        headers = httpx2.get(f"{house.url}{path}").headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers
    probe = httpx2.get(f"{house.url}/reviews/<script>alert(1)</script>")
    assert "<script>alert" not in probe.text


@pytest.mark.req("SV-11.f")
@pytest.mark.parametrize("path", ["/", "/api/events", "/api/me", "/ws"])
def test_no_websocket_is_opened_with_what_a_browser_sends_by_itself(house: House, page: Page, path: str) -> None:
    head = {
        "host": "localhost",
        "upgrade": "websocket",
        "connection": "Upgrade",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        "origin": "https://evil.test",
        "cookie": page.cookie,
        "x-holdfast-key": page.key,
    }
    for left_out in ((), ("origin",)):
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items() if name not in left_out)
        with socket.create_connection(("127.0.0.1", house.facts()["port"]), 10) as line:
            line.sendall(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
            assert line.recv(4096).split(b" ")[1] in (b"401", b"403")


@pytest.mark.req("SV-11.f")
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.test"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"x-holdfast-key": ""},
        {"cookie": ""},
    ],
)
def test_an_event_stream_is_for_its_own_page_alone(page: Page, headers: dict[str, str]) -> None:
    assert page.get("events", **headers).status_code in (401, 403)


@pytest.mark.req("SV-11.d", "SV-11.f")
def test_a_tenant_reaches_no_entry_of_the_person(house: House) -> None:
    tenant = page_of(house.url, {"api_key": "some-long-key-of-a-tenant"})
    own = {"list_calls"} | {tool.name for tool in TOOLS if tool.group is Group.STORE}
    for tool in TOOLS:
        if tool.name in own or (tool.audience is CallerKind.AGENT and tool.group is Group.CORE):
            continue
        answer = tenant.post(tool.name, {})
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND"), tool.name
    assert {tool["name"] for tool in tenant.get("tools").json()["tools"]} <= own | {"mcp_pipe"}
    assert tenant.get(f"media?path={house.root / 'a.txt'}").status_code == 404
    steps = [
        {"id": "a", "tool": "known_roots", "arguments": {}},
        {"id": "b", "tool": "read_text_file", "arguments": {"path": "a.txt"}},
    ]
    piped = tenant.post("mcp_pipe", {"steps": steps, "continue_on_error": True})
    assert "hello" not in piped.text
    assert str(house.root) not in piped.text


@pytest.mark.req("SV-11.d", "SV-11.f")
def test_a_tenant_hears_nothing_of_the_person_nor_of_another_tenant(house: House, page: Page) -> None:
    tenant, other = (
        page_of(house.url, {"api_key": key}) for key in ("tenant-who-listens-here", "tenant-who-works-here")
    )
    with EventReader(tenant) as heard, EventReader(page) as own:
        heard.wait_for("hello")
        own.wait_for("hello")
        page.post("write_file", path="told.txt", content="x")
        other.data("file_write", project="p", path="/x.md", content="x")
        own.wait_for("change.made")
        assert {event.name for event in heard.collect(0.6)} <= {"hello"}


@pytest.mark.req("SV-11.f")
def test_strangers_cannot_make_the_server_hold_large_bodies(house: House) -> None:
    body = b'{"link": "' + b"x" * 200_000 + b'"}'
    assert httpx2.post(f"{house.url}/api/session", headers={**JSON, **OWN}, content=body).status_code == 413


@pytest.mark.req("SV-11.f")
def test_paths_lead_to_no_file_but_the_built_ones(house: House, tmp_path: Path) -> None:
    for path in (
        "/assets/../__init__.py",
        "/assets/%2e%2e/console.py",
        "/assets/..%5cx",
        "/assets//etc/passwd",
        "/../../etc/passwd",
    ):
        with socket.create_connection(("127.0.0.1", house.facts()["port"]), 10) as line:
            line.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
            answer = b""
            while piece := line.recv(65_536):
                answer += piece
        assert b"root:" not in answer
        assert b"import " not in answer
