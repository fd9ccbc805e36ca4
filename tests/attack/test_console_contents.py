"""What the console's API gives out cannot run in a browser, and no session turns into another one or sees what is another's."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from holdfast.auth.context import CallerKind
from holdfast.tools.table import TOOLS
from tests.helpers.console import JSON, Page, link_of, page_of, sign_in
from tests.helpers.documents import picture
from tests.helpers.doors import House
from tests.helpers.events import EventReader

pytestmark = [pytest.mark.timeout(90), pytest.mark.req("SV-11.f")]

PROXIED = "files.example"
HTML = b"<!doctype html><script>alert(1)</script>"
SCRIPTED_PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R/OpenAction<</S/JavaScript/JS(app.alert\\(1\\))>>>>endobj\n"
    b"2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
)
PAYLOADS = {
    "page.html": HTML,
    "page.png": HTML,
    "page.mp4": HTML,
    "page.svg": b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
    "page.xml": b"<?xml version='1.0'?><x xmlns:h='http://www.w3.org/1999/xhtml'><h:script>alert(1)</h:script></x>",
    "page.js": b"alert(1)",
    "page.pdf": SCRIPTED_PDF,
    "page.css": b"body{background:url(//evil.test)}",
    "gif.html": b"GIF89a/*" + HTML,
    "none": HTML,
}
ACTIVE = ("html", "xml", "svg", "javascript", "ecmascript", "css", "pdf", "text/")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server with a root, tenants, and a proxy's name."""
    served = House(tmp_path_factory.mktemp("contents"))
    settings = {"server": {"allowed_hosts": [PROXIED]}, "auth": {"mode": "open"}}
    served.settings(json.dumps({"settings": settings}))
    with served.serve(str(served.root)):
        yield served


@pytest.fixture(scope="module")
def page(house: House) -> Page:
    """Give a signed-in page of the person."""
    return sign_in(house)


@pytest.mark.parametrize("name", PAYLOADS)
def test_no_file_comes_as_what_a_browser_runs(house: House, page: Page, name: str) -> None:
    (house.root / name).write_bytes(PAYLOADS[name])
    answer = page.get(f"media?path={house.root / name}")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    if answer.status_code == 200:
        assert not any(word in answer.headers["content-type"] for word in ACTIVE), answer.headers["content-type"]
        assert answer.headers["content-disposition"] == "attachment"
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("wanted", ["bytes=0-3", "bytes=-1", "bytes=9999999-", "bytes=" + "0-," * 2_000 + "0-", "x=1"])
def test_a_range_makes_no_answer_larger_or_wrong(house: House, page: Page, wanted: str) -> None:
    (house.root / "dot.png").write_bytes(picture(4, 4))
    answer = page.get(f"media?path={house.root / 'dot.png'}", range=wanted)
    assert (answer.status_code, answer.content) == (200, picture(4, 4))
    assert answer.headers["content-type"] == "image/png"


@pytest.mark.parametrize(
    "path",
    [
        "tools/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "tools/edit_files?as=%3Cscript%3E",
        "media?path=%3Cscript%3E.png",
        "nothing%3Cscript%3E",
    ],
)
def test_an_error_that_repeats_markup_is_no_page(page: Page, path: str) -> None:
    answer = page.get(path)
    assert answer.status_code in (400, 403, 404, 405)
    assert not answer.headers.get("content-type", "").startswith("text/html")


def test_what_a_call_answers_is_json_whatever_is_in_it(house: House, page: Page) -> None:
    (house.root / "markup.txt").write_bytes(HTML)
    answer = page.post("read_text_file", path="markup.txt")
    assert answer.json()["text"] == [HTML.decode()]
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]


def test_signing_in_takes_over_no_session_that_the_browser_was_given(house: House) -> None:
    """Who plants a session of its own in a browser is not let into what the person opens there."""
    planted = page_of(house.url, {"api_key": "the-key-of-the-attacker"})
    token = link_of(house).partition("#")[2]
    opened = page_of(house.url, {"link": token}, cookie=planted.cookie, x_holdfast_key=planted.key)
    assert opened.me["kind"] == "person"
    assert (opened.cookie, opened.key) != (planted.cookie, planted.key)
    assert planted.get("me").json()["kind"] == "tenant"
    mixed = [{"cookie": planted.cookie, "x_holdfast_key": opened.key}, {"x_holdfast_key": planted.key}]
    assert [opened.get("me", **headers).status_code for headers in mixed] == [401, 401]
    both = f"{planted.cookie}; {opened.cookie}"
    assert opened.get("me", cookie=both).json()["kind"] == "person"


def test_behind_tls_the_cookie_is_for_tls_alone(house: House) -> None:
    token = link_of(house).partition("#")[2]
    headers = {**JSON, "host": PROXIED, "origin": f"https://{PROXIED}"}
    answer = httpx2.post(f"{house.url}/api/session", headers=headers, json={"link": token})
    assert answer.status_code == 200
    assert "; secure" in answer.headers["set-cookie"].lower()


def test_no_page_calls_what_is_for_panels(page: Page) -> None:
    panels = [tool.name for tool in TOOLS if tool.audience is CallerKind.PANEL]
    assert panels
    for name in panels:
        answer = page.post(name, {})
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND"), name


def test_a_tenant_ends_and_lists_no_session_of_the_person(house: House, page: Page) -> None:
    own_ids = {each["id"] for each in page.get("session").json()["sessions"]}
    tenant = page_of(house.url, {"api_key": "a-tenant-who-ends-sessions"})
    assert not own_ids & {each["id"] for each in tenant.get("session").json()["sessions"]}
    for session_id in own_ids:
        ended = httpx2.post(f"{house.url}/api/session/end", headers=tenant.headers, json={"id": session_id})
        assert ended.status_code == 404
    assert page.get("me").status_code == 200


def test_a_tenant_that_resumes_from_the_beginning_hears_nothing_of_others(house: House, page: Page) -> None:
    page.data("save_file", path=str(house.root / "news.txt"), text="x")
    tenant = page_of(house.url, {"api_key": "a-tenant-who-resumes"})
    with EventReader(tenant, last_id=f"{page.me['server_id']}-0") as heard, EventReader(page, last_id="x") as own:
        own.wait_for("resync")
        heard.wait_for("hello")
        page.data("save_file", path=str(house.root / "news2.txt"), text="x")
        own.wait_for("change.made")
        assert {event.name for event in heard.collect(0.6)} <= {"hello"}


def test_the_calls_of_the_person_are_in_no_answer_to_a_tenant(house: House, page: Page) -> None:
    page.post("read_text_file", path="secret-name-of-the-person.txt")
    tenant = page_of(house.url, {"api_key": "a-tenant-who-reads-calls"})
    tenant.data("project_list")
    for arguments in ({}, {"kind": "person"}, {"kind": "agent"}, {"client": "console"}, {"tool": "read_text_file"}):
        answer = tenant.post("list_calls", arguments)
        assert "secret-name" not in answer.text
        assert "read_text_file" not in json.dumps(answer.json().get("data", {}))


@pytest.mark.parametrize("path", ["/proc/self/environ", "../state/agent.token", "~/.ssh/id_rsa", "a.txt\x00.png"])
def test_media_come_from_known_directories_alone(house: House, page: Page, path: str) -> None:
    answer = httpx2.get(f"{house.url}/api/media", params={"path": path}, headers=page.headers)
    assert answer.status_code in (400, 403, 404), path
    token = (house.state / "agent.token").read_text().strip()
    assert token not in answer.text
    link = Path(house.root / "link.png")
    if not link.is_symlink():
        link.symlink_to(house.state / "agent.token")
    assert page.get(f"media?path={link}").status_code in (403, 404)
