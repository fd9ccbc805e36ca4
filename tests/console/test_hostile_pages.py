"""What other web pages that the same browser visits, and names and contents that an agent chose, can do: nothing."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from playwright.sync_api import expect

from tests.console.conftest import Desk
from tests.helpers.browser import Tab
from tests.helpers.doors import until

pytestmark = [pytest.mark.xdist_group("console"), pytest.mark.req("SV-46")]

ATTEMPTS = """
async (base) => {
  const outcomes = {};
  const tries = {
    "call": () => fetch(base + "/api/pending_reviews", {method: "POST", credentials: "include", body: "{}",
      headers: {"content-type": "application/json"}}),
    "call without a preflight": () => fetch(base + "/api/pending_reviews", {method: "POST", credentials: "include", mode: "no-cors",
      body: "{}", headers: {"content-type": "text/plain"}}),
    "events": () => fetch(base + "/api/events", {credentials: "include"}),
    "sign out": () => fetch(base + "/api/session/end", {method: "POST", credentials: "include", mode: "no-cors", body: "{}"}),
    "media": () => fetch(base + "/api/media?path=a.txt", {credentials: "include"}),
  };
  for (const [name, attempt] of Object.entries(tries)) {
    try {
      const answer = await attempt();
      outcomes[name] = answer.type === "opaque" ? "opaque" : (await answer.text()).slice(0, 200);
    } catch (error) { outcomes[name] = "refused"; }
  }
  outcomes.socket = await new Promise((resolve) => {
    const socket = new WebSocket(base.replace("http", "ws") + "/mcp");
    socket.onopen = () => resolve("open");
    socket.onerror = () => resolve("refused");
  });
  outcomes.source = await new Promise((resolve) => {
    const source = new EventSource(base + "/api/events", {withCredentials: true});
    source.onmessage = () => resolve("heard");
    source.onerror = () => { source.close(); resolve("refused"); };
  });
  return outcomes;
}
"""
FORM = """
(base) => {
  const form = document.createElement("form");
  form.method = "POST"; form.enctype = "text/plain"; form.action = base + "/api/session/end"; form.target = "out";
  const field = document.createElement("input");
  field.name = '{"a":"'; field.value = '"}';
  form.append(field);
  const frame = document.createElement("iframe");
  frame.name = "out";
  document.body.append(frame, form);
  form.submit();
}
"""
MARKUP = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>'


class _Handler(BaseHTTPRequestHandler):
    cookies: list[str]

    def do_GET(self) -> None:
        self.cookies.append(self.headers.get("cookie", ""))
        self.send_response(200)
        self.send_header("content-type", "text/html")
        if planted := self.path.partition("?")[2]:
            self.send_header("set-cookie", f"{planted}=planted; Path=/api")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title><body>")

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


@pytest.fixture
def elsewhere() -> Iterator[tuple[str, list[str]]]:
    """Give the port of another web server of this machine, and the cookies that it was sent."""
    cookies: list[str] = []
    handler = type("Elsewhere", (_Handler,), {"cookies": cookies})
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield str(server.server_port), cookies
    server.shutdown()
    thread.join(10)
    server.server_close()


@pytest.fixture
def tab(desk: Desk) -> Iterator[Tab]:
    """Give a signed-in tab."""
    opened = desk.sign_in()
    yield opened
    opened.page.context.close()


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_another_page_of_the_browser_reads_nothing_and_does_nothing(
    desk: Desk, tab: Tab, elsewhere: tuple[str, list[str]], name: str
) -> None:
    port, cookies = elsewhere
    other = tab.page.context.new_page()
    other.goto(f"http://{name}:{port}/")

    outcomes = other.evaluate(ATTEMPTS, desk.house.url)
    other.evaluate(FORM, desk.house.url)
    other.wait_for_timeout(300)

    assert outcomes == {
        "call": "refused",
        "call without a preflight": "opaque",
        "events": "refused",
        "sign out": "opaque",
        "media": "refused",
        "socket": "refused",
        "source": "refused",
    }
    tab.page.reload()
    expect(tab.page.get_by_text("Live", exact=True)).to_be_visible()
    if name == "127.0.0.1":
        assert any(cookies), "a browser sends a cookie to every port: this is why alone it opens nothing"


def test_a_cookie_that_another_port_planted_beside_ours_signs_nobody_out(
    desk: Desk, tab: Tab, elsewhere: tuple[str, list[str]]
) -> None:
    port = desk.house.url.rpartition(":")[2]
    other = tab.page.context.new_page()
    other.goto(f"http://127.0.0.1:{elsewhere[0]}/?holdfast_session_{port}")
    tab.page.reload()
    expect(tab.page.get_by_text("Live", exact=True)).to_be_visible()
    cookies = [cookie for cookie in tab.page.context.cookies() if cookie.get("name") == f"holdfast_session_{port}"]
    assert sorted(str(cookie.get("path")) for cookie in cookies) == ["/", "/api"]


def test_the_console_is_shown_in_no_frame(desk: Desk, tab: Tab, elsewhere: tuple[str, list[str]]) -> None:
    other = tab.page.context.new_page()
    other.goto(f"http://127.0.0.1:{elsewhere[0]}/")

    other.evaluate(
        "(url) => { const frame = document.createElement('iframe'); frame.src = url; document.body.append(frame); }",
        desk.house.url,
    )
    other.wait_for_timeout(500)

    assert "Holdfast" not in [frame.title() for frame in other.frames]
    assert all(not frame.get_by_role("navigation", name="Pages").count() for frame in other.frames)


def test_a_name_that_leads_to_this_machine_is_no_address_of_the_console(desk: Desk, tab: Tab) -> None:
    port = desk.house.url.rpartition(":")[2]
    other = tab.page.context.new_page()

    answer = other.goto(f"http://rebound.localhost:{port}/")

    assert answer is not None
    assert answer.status in (400, 403, 421)


def test_markup_in_names_texts_reasons_and_clients_is_shown_as_it_is(desk: Desk, tab: Tab) -> None:
    name = "<img src=x onerror=window.hurt=1>.html"
    page = tab.page
    desk.reviewer.write(name, f"first\n{MARKUP}\n")
    desk.reviewer.start(
        path=name, edits=[{"old_string": "first\n", "new_string": f"{MARKUP}\n\x1b[31mred\n"}], note=MARKUP
    )
    until("it waits", lambda: desk.reviewer.waiting(1))

    page.get_by_role("link").filter(has_text=name).first.click()

    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    expect(page.get_by_role("blockquote")).to_contain_text(MARKUP)
    expect(page.get_by_role("region", name="The change")).to_contain_text("window.hurt=1")
    expect(page.get_by_text("U+001B").first).to_be_visible()
    assert page.evaluate("window.hurt") is None
    tab.check()
    desk.reviewer.decide(desk.reviewer.waiting(1)[0], "reject")
