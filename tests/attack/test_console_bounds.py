"""The console's doors under load: no path around their keys, and nothing that one page sends costs the others their server."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from starlette.datastructures import Headers

from holdfast.auth.context import AuthContext
from holdfast.console.gate import ConsoleRefusal, Gate
from holdfast.console.sessions import BrowserSessions
from tests.helpers.console import JSON, OWN, Page, page_of, sign_in
from tests.helpers.doors import House

pytestmark = pytest.mark.timeout(90)

TENANT = "a-tenant-with-a-page"
DOORS = ("/metrics", "/mcp", "/ws", "/health", "/api/logs", "/api/me", "/api/events", "/api/openapi.json")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server where every long key is a tenant."""
    served = House(tmp_path_factory.mktemp("bounds"))
    limits = {"tenant": {"read_per_minute": 60}}
    served.settings(json.dumps({"settings": {"auth": {"mode": "open"}, "limits": limits}}))
    with served.serve(str(served.root)):
        yield served


@pytest.fixture(scope="module")
def page(house: House) -> Page:
    """Give a signed-in page of the person."""
    return sign_in(house)


@pytest.mark.req("SV-11.f")
@pytest.mark.parametrize("door", DOORS)
def test_no_spelling_of_a_path_is_a_way_around_the_key_of_a_door(house: House, door: str) -> None:
    spellings = [f"{door}%{code:02x}" for code in (*range(0x21), 0x7F, 0x85, 0xA0)]
    spellings += [f"{door}{end}" for end in ("%E2%80%A8", "%E2%80%A9", "/", "//", "/.", "%2F", ";x", "%00", "%0A%0A")]
    spellings += [f"/{door}", f"/.{door}", f"/x/..{door}", f"/%0A{door[1:]}", door.upper(), f"/%2e{door}"]
    for spelling in spellings:
        for method in ("GET", "POST"):
            answer = httpx2.request(method, house.url + spelling, headers={**JSON, **OWN}, content=b"{}", timeout=10)
            assert answer.status_code in (200, 400, 401, 404, 405), (method, spelling, answer.status_code)
            is_page = answer.headers.get("content-type", "").startswith("text/html") or door == "/health"
            assert is_page or answer.status_code != 200, (method, spelling, answer.text[:200])


@pytest.mark.req("SV-13.c", "SV-13.f")
def test_a_cookie_is_read_in_no_time_whatever_a_stranger_puts_into_it() -> None:
    """http.cookies took five seconds for the first of these, on the event loop, before any key was asked for."""
    gate = Gate(BrowserSessions())
    scope = {"type": "http", "path": "/api/me", "method": "GET", "server": ("127.0.0.1", 80)}
    name = "holdfast_session_80"
    for cookie in (
        'a="' + '\\"' * 30_000 + '"',
        f"{name}=" * 3_000,
        "; " * 30_000,
        " " * 60_000,
        f";{name}" * 3_000,
        f"{name}=x;" * 3_000,
    ):
        began = time.thread_time()
        checked = gate.check(scope, Headers({**OWN, "cookie": cookie}))
        assert time.thread_time() - began < 0.2
        assert isinstance(checked, ConsoleRefusal)
        assert checked.status == 401


@pytest.mark.req("SV-11.c")
def test_our_cookie_is_found_among_others() -> None:
    sessions = BrowserSessions()
    signed = sessions.open(AuthContext("t" * 64, "tenant"))
    scope = {"type": "http", "path": "/api/me", "method": "GET", "server": ("127.0.0.1", 80)}
    own = f"holdfast_session_80={signed.cookie}"
    for cookie in (
        own,
        f"a=b; {own}",
        f"{own};c=d",
        f'a="x; y";{own} ; c=d',
        f"xholdfast_session_80=x; {own}",
        f"holdfast_session_80=planted; {own}",
    ):
        headers = Headers({**OWN, "cookie": cookie, "x-holdfast-key": signed.key})
        assert Gate(sessions).check(scope, headers) is signed.session, cookie


@pytest.mark.req("SV-13.c", "SV-13.f")
@pytest.mark.parametrize("path", ["session", "session/end"])
def test_what_is_parsed_for_the_page_itself_is_small(page: Page, path: str) -> None:
    names = json.dumps({f"name{number}": 1 for number in range(4_000)}).encode()
    answer = httpx2.post(f"{page.url}/api/{path}", headers=page.headers, content=names)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")


@pytest.mark.req("SV-13.c", "SV-13.f")
def test_arguments_of_many_values_are_refused_before_they_are_parsed(page: Page) -> None:
    answer = page.post("list_directory", {f"name{number}": 1 for number in range(30_000)})
    assert answer.status_code == 400
    assert "more than 25000 values" in answer.json()["error"]["message"]


@pytest.mark.req("SV-13.b", "SV-13.f")
def test_signing_in_counts_as_a_call(house: House) -> None:
    headers = {**JSON, **OWN}
    with httpx2.Client() as client:
        answers = [
            client.post(f"{house.url}/api/session", headers=headers, json={"api_key": "a-tenant-who-signs-in"})
            for _ in range(62)
        ]
    assert Counter(answer.status_code for answer in answers) == {200: 60, 429: 2}
    assert int(answers[-1].headers["retry-after"]) > 0


@pytest.mark.req("SV-13.b", "SV-13.f")
def test_many_keys_with_many_sessions_end_none_of_a_quiet_tenant() -> None:
    sessions = BrowserSessions()
    quiet = sessions.open(AuthContext("q" * 64, "quiet"))
    for number in range(40 * 32):
        sessions.open(AuthContext(f"{number % 40:064}", "flood"))
    assert sessions.is_open(quiet.session)


@pytest.mark.req("SV-13.b", "SV-13.f")
def test_a_slow_disk_keeps_nobody_from_signing_in() -> None:
    is_writing, may_end = threading.Event(), threading.Event()

    def write(_text: str) -> None:
        is_writing.set()
        assert may_end.wait(10)

    sessions = BrowserSessions(save=write)
    writer = threading.Thread(target=sessions.save)
    writer.start()
    assert is_writing.wait(10)
    began = time.monotonic()
    signed = sessions.open(AuthContext("t" * 64, "tenant"))
    assert sessions.find(signed.cookie, signed.key) is signed.session
    assert time.monotonic() - began < 1
    may_end.set()
    writer.join()


@pytest.mark.req("SV-13.b", "SV-13.f")
def test_a_tenant_that_signs_in_and_out_writes_nothing_to_the_disk(house: House, page: Page) -> None:
    file = house.state / "browser.sessions"
    before = file.stat().st_mtime_ns, file.stat().st_ino
    tenant = page_of(house.url, {"api_key": TENANT})
    assert httpx2.delete(f"{tenant.url}/api/session", headers=tenant.headers).status_code == 200
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == before
    assert page.get("me").status_code == 200


@pytest.mark.req("SV-14.d")
def test_a_state_folder_that_takes_no_file_of_sessions_keeps_nobody_from_signing_in(tmp_path: Path) -> None:
    house = House(tmp_path)
    (house.state / "browser.sessions").mkdir(parents=True)
    house.state.chmod(0o700)
    with house.serve(str(house.root)):
        page = sign_in(house)
        assert page.get("me").status_code == 200
        assert page.data("list_changes") is not None
        assert httpx2.delete(f"{page.url}/api/session", headers=page.headers).status_code == 200
        assert page.get("me").status_code == 401
