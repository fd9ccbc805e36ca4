"""The documentation site builds without a warning, leads nowhere wrong, and loads nothing from elsewhere, seen by a browser."""

import json
import tomllib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Page

from scripts.build_site import CHARTS, RESULTS, TOP, build_site, site_pages, site_problems, with_site_links
from scripts.draw_plots import Bar, Chart, svg
from tests.helpers.browser import new_context, open_browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.req("SV-53")
def test_every_page_is_built_and_stands_in_the_navigation(site: Path) -> None:
    entries = json.dumps(tomllib.loads((TOP / "docs" / "site" / "zensical.toml").read_text())["project"]["nav"])
    pages = {*site_pages().values(), "plots.md"}

    assert [page for page in sorted(pages) if f'"{page}"' not in entries] == []
    assert len(list(site.rglob("index.html"))) == len(pages)


def test_a_reader_searches_it_and_nothing_is_loaded_from_elsewhere(address: str) -> None:
    with open_browser() as browser:
        page = new_context(browser).new_page()
        requests, faults = watch(page)
        for path in ("", "guarantees/", "plots/", "reference/tools/", "how-to/review/"):
            page.goto(address + path)
            page.wait_for_load_state("networkidle")
        page.keyboard.press("Control+k")
        page.get_by_role("combobox").fill("quarantine")
        page.get_by_text("Moves to another disk").first.wait_for()

    assert [url for url in requests if not url.startswith((address, "blob:", "data:"))] == []
    assert faults == []


def watch(page: Page) -> tuple[list[str], list[str]]:
    """Return the lists of requests and of errors, which fill while the page is used."""
    requests: list[str] = []
    faults: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    return requests, faults


@pytest.mark.parametrize("file", CHARTS)
def test_plots_are_drawn_from_what_benchmarks_wrote_and_always_the_same(file: str) -> None:
    facts = json.loads((RESULTS / file).read_text())

    first, second = svg(CHARTS[file](facts)), svg(CHARTS[file](facts))

    assert first == second
    assert first.count("<rect") == len(CHARTS[file](facts).bars) > 3


def test_a_bar_is_as_long_as_its_value() -> None:
    picture = svg(Chart("name", "Title <1>", "", [Bar("half", 0.5, "0.5"), Bar("whole", 1.0, "1.0", limit=0.5)]))

    assert 'width="200.0"' in picture
    assert 'width="400.0"' in picture
    assert "Title &lt;1&gt;" in picture


def test_a_link_becomes_that_of_the_site_and_a_source_file_its_name() -> None:
    source = TOP / "docs" / "how-to" / "review.md"
    text = "[a](policy.md#x) [b](../../SECURITY.md) [`c`](../../Makefile) [d](#y) [e](https://example.org)\n```\n[f](gone.md)\n```\n"

    assert with_site_links(text, source, site_pages()) == (
        "[a](policy.md#x) [b](../security.md) `c` [d](#y) [e](https://example.org)\n```\n[f](gone.md)\n```\n"
    )
    with pytest.raises(SystemExit, match="gone.md leads nowhere"):
        with_site_links("[f](gone.md)", source, site_pages())


def test_what_is_wrong_with_a_site_is_seen(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<p id="here"></p><a href="#here"></a><a href="#there"></a><a href="gone/"></a><script src="https://cdn.example/x.js"></script>'
    )
    (tmp_path / "style.css").write_text("a{background:url(https://fonts.example/f.woff)}")

    assert set(site_problems(tmp_path)) == {
        "index.html loads https://cdn.example/x.js",
        "index.html: #there has no such heading",
        "index.html: gone/ leads nowhere",
        "style.css loads https://fonts.example/f.woff",
    }
