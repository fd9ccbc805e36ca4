"""`holdfast serve` in a terminal: what it says, what it takes over, and how it ends."""

import json
import signal
import socket
import time
from pathlib import Path

import httpx2
import pytest

from tests.helpers.console import page_of
from tests.helpers.doors import House, Pipes, post, until

pytestmark = pytest.mark.timeout(90)


@pytest.mark.req("SV-01.b", "SV-01.c")
def test_serve_says_where_it_is_and_ctrl_c_ends_it_at_once(tmp_path: Path) -> None:
    house = House(tmp_path)
    with house.serve(str(house.root)) as server, house.relay() as relay:
        relay.initialize()
        url = house.url
        server.process.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert server.process.wait(10) == 0
        assert time.monotonic() - began < 5
        said = server.errors()
        assert f"{url}/mcp" in said
        assert f"{url}    open it with: holdfast open" in said
        assert "/open#" not in said
        assert house.token not in said
    assert house.facts() == {}


@pytest.mark.req("SV-01.b")
def test_serve_opens_the_browser_on_request_with_a_link_that_signs_in(tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.draft\nmv {opened}.draft {opened}\n')
    browser.chmod(0o755)
    house = House(tmp_path, BROWSER=str(browser))
    with house.serve("--open", str(house.root)) as server:
        until("the browser was opened", opened.exists)
        url, _, token = opened.read_text().partition("/open#")
        assert url == house.url
        assert page_of(url, {"link": token}).me["kind"] == "person"
        server.process.send_signal(signal.SIGINT)
        server.process.wait(10)
        assert token not in server.errors()


@pytest.mark.req("SV-01.c")
def test_a_port_in_use_is_a_clear_error(tmp_path: Path) -> None:
    house = House(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = house.run("serve", "--port", str(port))
    assert done.returncode == 75
    assert f"Port {port} on 127.0.0.1 is in use" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.req("SV-02.c")
def test_serve_takes_over_from_a_background_server_and_a_second_serve_names_the_first(tmp_path: Path) -> None:
    house = House(tmp_path)
    with house.relay() as relay:
        relay.initialize()
        background = house.facts()["pid"]
        with house.serve() as server:
            assert server.process.pid != background
            assert "result" in relay.ask(5, "tools/list")
            status = json.loads(house.run("status", "--json").stdout)
            assert status["kind"] == "foreground"
            assert status["connections"] == 1
            second = house.run("serve", "--port", "0")
            assert second.returncode == 76
            assert str(server.process.pid) in second.stderr
        assert "result" in relay.ask(6, "tools/list")
        assert json.loads(house.run("status", "--json").stdout)["kind"] == "background"
    assert house.run("stop").returncode == 0


@pytest.mark.req("SV-03.b")
def test_flags_choose_the_doors(tmp_path: Path) -> None:
    house = House(tmp_path)
    with house.serve("--no-ui"):
        assert post(house).status_code == 200
        assert httpx2.get(f"{house.url}/").status_code == 401
        assert house.run("open", "--print").returncode == 1
    with house.serve("--no-http", "--http-port", "0"):
        assert post(house).status_code == 405
        assert httpx2.get(f"{house.url}/").headers["content-type"].startswith("text/html")


@pytest.mark.req("SV-03.a")
def test_the_program_and_the_module_are_the_same(tmp_path: Path) -> None:
    house = House(tmp_path)
    assert house.run("--version").stdout.startswith("holdfast, version ")
    assert "Examples:" in house.run("--help").stdout
    assert house.run("nonsense").returncode == 2
    with Pipes(["stdio", "--nonsense"], house.env, "/") as relay:
        assert relay.process.wait(10) == 2
