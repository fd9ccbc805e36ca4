"""The console's API over real sockets: signing in, every kind of call, what a tenant may, and what outlives a restart."""

import json
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.auth.context import CallerKind
from holdfast.tools.registry import flat_schema
from holdfast.tools.table import TOOLS
from tests.helpers.console import JSON, OWN, Page, link_of, page_of, sign_in
from tests.helpers.doors import House, until

pytestmark = pytest.mark.timeout(90)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server with one root."""
    given = House(tmp_path_factory.mktemp("console"))
    with given.serve(str(given.root)):
        yield given


@pytest.fixture(scope="module")
def page(house: House) -> Page:
    """Give a signed-in page of the person."""
    return sign_in(house)


@pytest.mark.req("SV-11.c", "SV-02.f")
def test_a_link_is_a_fragment_that_a_page_exchanges_once_for_a_cookie_and_a_second_key(house: House) -> None:
    link = link_of(house)
    assert re.fullmatch(rf"{house.url}/open#[\w-]{{40,}}", link)
    token = link.partition("#")[2]
    assert httpx2.get(link).headers["content-type"].startswith("text/html"), "the fragment never reaches the server"
    opened = httpx2.post(f"{house.url}/api/session", headers={**JSON, **OWN}, json={"link": token})
    cookie = opened.headers["set-cookie"].lower()
    port = house.facts()["port"]
    assert cookie.startswith(f"holdfast_session_{port}=")
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/" in cookie
    assert opened.headers["cache-control"] == "no-store"
    me = opened.json()["me"]
    assert (me["kind"], me["mode"], me["read_only"]) == ("person", "local", False)
    assert me["roots"] == [str(house.root)]
    again = httpx2.post(f"{house.url}/api/session", headers={**JSON, **OWN}, json={"link": token})
    assert again.status_code == 403
    assert "holdfast open" in again.json()["error"]["message"]


@pytest.mark.req("SV-11.c")
@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[]", b"null", b"{", b'{"link": 3}', b'{"link": "x", "api_key": "y"}', b'{"token": "secret-value"}'],
)
def test_a_sign_in_that_is_not_understood_is_told_so_without_an_echo(house: House, body: bytes) -> None:
    answer = httpx2.post(f"{house.url}/api/session", headers={**JSON, **OWN}, content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "INVALID_ARGUMENT"
    assert "secret-value" not in answer.text


@pytest.mark.req("SV-43.a")
def test_the_persons_and_the_agents_entries_run_with_data_text_and_the_blocks_of_an_agent(
    house: House, page: Page
) -> None:
    answer = page.post("read_text_file", path="a.txt").json()
    assert answer["data"] is None
    assert answer["text"] == ["hello\n"]
    assert answer["content"] == [{"type": "text", "text": "hello\n"}]
    assert answer["duration_ms"] > 0
    written = page.post("write_file", path="b.txt", content="made here\n")
    assert written.status_code == 200, written.text
    changes = page.data("all_changes")["changes"]
    assert changes[0]["is_yours"] is True
    assert page.post("undo_change", change_id=changes[0]["change_id"]).status_code == 200
    assert not (house.root / "b.txt").exists()


@pytest.mark.req("SV-30")
def test_a_call_from_the_page_is_in_the_log_with_its_door_and_without_content(page: Page) -> None:
    page.post("write_file", path="logged.txt", content="canary-of-the-console")

    def rows() -> list[dict[str, Any]]:
        return [row for row in page.data("list_calls", tool="write_file")["calls"] if row["client"] == "console"]

    [row, *_] = until("the call is in the log", rows)
    assert (row["kind"], row["door"], row["status"]) == ("person", "http", "ok")
    assert "canary-of-the-console" not in json.dumps(row)


@pytest.mark.req("SV-43.a")
@pytest.mark.parametrize(
    ("name", "arguments", "status", "code"),
    [
        ("read_text_file", {"path": "missing.txt"}, 404, "NOT_FOUND"),
        ("read_text_file", {"path": "/etc/passwd"}, 403, "ACCESS_DENIED"),
        ("read_text_file", {"pfad": "a.txt"}, 400, "INVALID_ARGUMENT"),
        ("read_text_file", [1], 400, "INVALID_ARGUMENT"),
        ("read_txt_file", {}, 404, "NOT_FOUND"),
        ("show_review", {"review_id": "00000000"}, 404, "NOT_FOUND"),
    ],
)
def test_an_error_has_its_status_and_its_code(page: Page, name: str, arguments: Any, status: int, code: str) -> None:
    answer = page.post(name, arguments)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
    assert isinstance(answer.json()["error"]["retryable"], bool)


@pytest.mark.req("SV-05.b")
def test_a_body_that_is_no_json_or_too_much_of_it_is_refused(page: Page) -> None:
    for body in (b"{", b'{"path": NaN}', b"{" + b'"a":1,' * 30_000 + b'"b":1}', b'{"path": "\\ud800"}'):
        answer = httpx2.post(f"{page.url}/api/read_text_file", headers=page.headers, content=body)
        assert answer.status_code == 400, answer.text


@pytest.mark.req("SV-43.a")
def test_a_large_answer_comes_whole(house: House, page: Page) -> None:
    text = "line of text \N{SNOWMAN}\n" * 60_000
    (house.root / "large.txt").write_text(text)
    assert page.data("open_file", path=str(house.root / "large.txt"))["text"] == text


@pytest.mark.req("SV-43.b")
def test_every_tool_is_listed_with_its_schema_and_as_a_declaration(page: Page) -> None:
    listed = {tool["name"]: tool for tool in page.get("tools").json()["tools"]}
    entries = [tool for tool in TOOLS if tool.audience is not CallerKind.PANEL]
    assert listed.keys() == {tool.name for tool in entries}
    for tool in entries:
        assert listed[tool.name]["schema"] == flat_schema(tool.arguments)
        assert listed[tool.name]["audience"] == tool.audience.value
    assert page.get("tools/edit_files?as=openai").json()["function"]["name"] == "edit_files"
    assert "inputSchema" in page.get("tools/edit_files").json()
    assert "additionalProperties" not in page.get("tools/edit_files?as=gemini").text
    assert page.get("tools/edit_files?as=other").status_code == 400
    assert page.get("tools/none").status_code == 404


@pytest.mark.req("SV-43.c")
def test_the_workspace_is_described_as_text(house: House, page: Page) -> None:
    answer = page.get("workspace")
    assert answer.headers["content-type"].startswith("text/plain")
    assert str(house.root) in answer.text
    assert "edit_files" in answer.text
    assert "decide_review" not in answer.text


@pytest.mark.req("SV-43.a")
def test_the_document_names_every_entry_and_is_the_tracked_one(page: Page) -> None:
    document = page.get("openapi.json").json()
    tracked = json.loads((Path(__file__).parents[2] / "web" / "openapi.json").read_text())
    assert document == tracked
    assert {f"/api/{tool.name}" for tool in TOOLS if tool.audience is not CallerKind.PANEL} <= document["paths"].keys()


@pytest.mark.req("SV-11.f")
def test_media_come_as_bytes_that_nothing_runs(house: House, page: Page) -> None:
    (house.root / "x.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    answer = page.get(f"media?path={house.root / 'x.svg'}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-security-policy"] == "sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"] == "attachment"
    assert page.get("media?path=/etc/passwd").status_code == 403
    assert page.get("media").status_code == 400


@pytest.mark.req("SV-11.c")
def test_sessions_are_listed_and_ended(house: House) -> None:
    first, second = sign_in(house, user_agent="Firefox"), sign_in(house, user_agent="Chromium")
    sessions = first.get("session").json()["sessions"]
    assert [each["is_this"] for each in sessions].count(True) == 1
    other = next(each for each in sessions if each["user_agent"] == "Chromium")
    ended = httpx2.post(f"{first.url}/api/session/end", headers=first.headers, json={"id": other["id"]})
    assert ended.json() == {"ok": True}
    assert second.get("me").status_code == 401
    gone = httpx2.delete(f"{first.url}/api/session", headers=first.headers)
    assert gone.status_code == 200
    assert "max-age=0" in gone.headers["set-cookie"].lower()
    assert first.get("me").status_code == 401
    assert first.post("read_text_file", path="a.txt").status_code == 401


@pytest.mark.req("SV-11.c")
def test_a_restart_signs_nobody_out_and_an_ended_session_stays_ended(tmp_path: Path) -> None:
    house = House(tmp_path)
    with house.serve(str(house.root)):
        kept, ended = sign_in(house), sign_in(house)
        port, server_id = house.facts()["port"], kept.me["server_id"]
        httpx2.delete(f"{ended.url}/api/session", headers=ended.headers)
        file = house.state / "browser.sessions"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        for secret in (kept.key, kept.cookie.partition("=")[2]):
            assert secret not in file.read_text()
    with house.serve(str(house.root), "--port", str(port)):
        me = kept.get("me").json()
        assert me["kind"] == "person"
        assert me["server_id"] != server_id
        assert ended.get("me").status_code == 401


@pytest.mark.req("FS-05.a")
def test_a_read_only_server_refuses_changes_of_local_files(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.settings("settings:\n  folders:\n    read_only: true\n")
    with house.serve(str(house.root)):
        page = sign_in(house)
        assert page.me["read_only"] is True
        refused = page.post("write_file", path="b.txt", content="x")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "PERMISSION_DENIED")
        assert page.text("read_text_file", path="a.txt") == "hello\n"
        assert not (house.root / "b.txt").exists()
        assert "read-only" in page.get("workspace").text


@pytest.mark.req("SV-11.c")
def test_directories_that_a_client_brings_are_the_persons_too(tmp_path: Path) -> None:
    house = House(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "c.txt").write_text("from another folder\n")
    with house.serve(str(house.root)):
        page = sign_in(house)
        with house.relay(other) as relay:
            relay.initialize()
            until("the directory is known", lambda: str(other) in page.get("me").json()["roots"])
            assert page.text("read_text_file", path=str(other / "c.txt")) == "from another folder\n"


@pytest.mark.req("SV-11.d")
@pytest.mark.parametrize("mode", ["open", "listed"])
def test_a_tenant_signs_in_by_its_key_and_has_the_store_its_calls_and_nothing_else(tmp_path: Path, mode: str) -> None:
    house = House(tmp_path)
    house.settings(f"settings:\n  auth:\n    mode: {mode}\n")
    with house.serve(str(house.root)):
        key, other = "a-tenant-with-a-long-key", "another-tenant-with-a-key"
        if mode == "listed":
            key, other = (
                json.loads(house.run("keys", "create", "--label", label, "--json").stdout)["key"]
                for label in ("a", "b")
            )
        mine, theirs, person = (
            page_of(house.url, {"api_key": key}),
            page_of(house.url, {"api_key": other}),
            sign_in(house),
        )
        assert mine.me["kind"] == "tenant"
        assert mine.me["roots"] == []
        assert set(mine.me["groups"]) == {"store", "core"}
        mine.data("file_write", project="p", path="/note.md", content="mine")
        assert mine.text("file_read", project="p", path="/note.md") == "mine"
        assert theirs.post("file_read", project="p", path="/note.md").status_code == 404
        assert person.post("file_read", project="p", path="/note.md").status_code == 404
        until("the calls are in the log", lambda: mine.data("list_calls", tool="file_write")["calls"])
        assert theirs.data("list_calls", tool="file_write")["calls"] == []
        for name in ("read_text_file", "all_changes", "pending_reviews", "known_roots", "decide_review", "open_file"):
            refused = mine.post(name, {})
            assert (refused.status_code, refused.json()["error"]["code"]) == (404, "NOT_FOUND"), name
        assert len(mine.get("session").json()["sessions"]) == 1
        if mode == "listed":
            key_id = next(
                row["id"] for row in json.loads(house.run("keys", "list", "--json").stdout) if row["label"] == "a"
            )
            assert house.run("keys", "revoke", key_id).returncode == 0
            assert mine.get("me").status_code == 401
            assert theirs.get("me").status_code == 200
    assert (
        not (house.state / "browser.sessions").exists()
        or mine.key not in (house.state / "browser.sessions").read_text()
    )


@pytest.mark.req("SV-01.d", "SV-11.f")
def test_the_app_is_served_with_its_policy_and_every_page_is_the_index(house: House, page: Page) -> None:
    nonces = set()
    for path in ("/", "/open", "/reviews/abc", "/files/r/notes.md", "/settings", "/nonsense"):
        answer = httpx2.get(f"{house.url}{path}")
        assert answer.headers["content-type"].startswith("text/html")
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; ")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        nonces.add(re.findall("'nonce-([^']+)'", policy)[0])
        assert answer.headers["cache-control"] == "no-store"
        assert page.key not in answer.text
    assert len(nonces) == 6
    assert httpx2.get(f"{house.url}/nonsense.php").status_code in (401, 404)
    assert httpx2.get(f"{house.url}/assets/..%2findex.html").status_code == 404
    assert httpx2.get(f"{house.url}/assets/missing.js").status_code == 404
    assert httpx2.post(f"{house.url}/settings").status_code == 405


@pytest.mark.req("SV-43.a")
def test_a_page_that_goes_away_cancels_its_call(house: House, page: Page) -> None:
    """A call that waits for a person would wait for minutes; its page gone, it is over at once, and the log says so."""
    arguments = {"path": "a.txt", "old_string": "hello", "new_string": "hallo"}
    with pytest.raises(httpx2.TimeoutException):
        httpx2.post(f"{page.url}/api/propose_and_review", headers=page.headers, json=arguments, timeout=1.0)

    def is_over() -> bool:
        calls = page.data("list_calls", tool="propose_and_review")["calls"]
        return bool(calls) and calls[0]["status"] == "cancelled"

    until("the call is over", is_over)
