"""The built app as it is served: the nonce, what may be cached, what is compressed, and nothing beside it."""

import gzip
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from starlette.requests import Request
from starlette.responses import Response

from holdfast.console.gate import Gate
from holdfast.console.pages import NONCE_MARK, Pages, content_security_policy
from holdfast.console.sessions import BrowserSessions

SCRIPT = "console.log('built');\n" * 200


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    """Give an app as the build leaves it, with a secret beside it."""
    static = tmp_path / "static"
    (static / "assets").mkdir(parents=True)
    (static / "index.html").write_text(
        f'<meta name="csp-nonce" content="{NONCE_MARK.decode()}"><script src="/assets/app-1a.js"></script>'
    )
    (static / "assets" / "app-1a.js").write_text(SCRIPT)
    (static / "assets" / "small.css").write_text("a{}")
    (static / "assets" / "font-2b.woff2").write_bytes(bytes(5_000))
    (static / "favicon.svg").write_text("<svg/>")
    (static / ".stamp").write_text("not served")
    (tmp_path / "secret.txt").write_text("secret")
    return Pages(static)


def ask(
    endpoint: Callable[[Request], Awaitable[Response]], path: str, encoding: str = "gzip, br", **params: str
) -> Response:
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"",
        "headers": [(b"accept-encoding", encoding.encode()), (b"host", b"localhost")],
        "path_params": params,
    }
    return anyio.run(endpoint, Request(scope))


@pytest.mark.req("SV-11.f")
def test_each_page_has_a_nonce_of_its_own_that_its_policy_names(pages: Pages) -> None:
    first, second = ask(pages.page, "/"), ask(pages.page, "/reviews/x")
    nonces = [bytes(answer.body).split(b'content="')[1].split(b'"')[0].decode() for answer in (first, second)]
    assert nonces[0] != nonces[1]
    assert NONCE_MARK not in bytes(first.body)
    for answer, nonce in zip((first, second), nonces, strict=True):
        assert answer.headers["content-security-policy"] == content_security_policy(nonce)
        assert answer.headers["cache-control"] == "no-store"


def test_assets_are_kept_for_good_and_compressed_where_that_is_worth_it(pages: Pages) -> None:
    script = ask(pages.asset, "/assets/app-1a.js", name="app-1a.js")
    assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert script.headers["content-encoding"] == "gzip"
    assert script.headers["vary"] == "accept-encoding"
    assert script.headers["content-type"].startswith("text/javascript")
    assert gzip.decompress(bytes(script.body)).decode() == SCRIPT
    plain = ask(pages.asset, "/assets/app-1a.js", "identity", name="app-1a.js")
    assert "content-encoding" not in plain.headers
    assert bytes(plain.body).decode() == SCRIPT
    for name in ("small.css", "font-2b.woff2"):
        assert "content-encoding" not in ask(pages.asset, f"/assets/{name}", name=name).headers


@pytest.mark.parametrize(
    "name", ["../index.html", "..", "", ".stamp", "a/b.js", "../../secret.txt", "none.js", "x\x00.js"]
)
def test_nothing_but_the_built_files_is_served(pages: Pages, name: str) -> None:
    assert ask(pages.asset, f"/assets/{name}", name=name).status_code == 404


def test_files_beside_the_index_are_asked_for_anew_each_time(pages: Pages) -> None:
    icon = ask(pages.page, "/favicon.svg")
    assert icon.headers["cache-control"] == "no-cache"
    assert icon.headers["content-type"] == "image/svg+xml"
    gate = Gate(BrowserSessions(), pages.top_files)
    for path in ("/", "/favicon.svg", "/reviews/1", "/files/r/a.md", "/assets/app-1a.js", "/open"):
        assert gate.is_shell(path), path
    for path in (
        "/.stamp",
        "/secret.txt",
        "/index.html",
        "/api/me",
        "/mcp",
        "/ws",
        "/metrics",
        "/health",
        "/apple-touch-icon.png",
    ):
        assert not gate.is_shell(path), path


def test_a_package_without_the_app_says_what_to_do(tmp_path: Path) -> None:
    answer = ask(Pages(tmp_path / "none").page, "/")
    assert answer.status_code == 503
    assert b"make web" in bytes(answer.body)
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
