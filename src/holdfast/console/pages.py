"""Serves the built app: its page with a content security policy and a fresh nonce, and its assets, compressed and kept for good."""

import gzip
import re
import secrets
from importlib.resources import files
from importlib.resources.abc import Traversable
from mimetypes import guess_type

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

NONCE_MARK = b"__CSP_NONCE__"
"""Where the built page wants its nonce."""
_INDEX = "index.html"
_ASSETS = "assets"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_MIN_GZIP_BYTES = 1_024
_TEXT_TYPES = ("text/", "application/javascript", "application/json", "image/svg", "application/manifest")
_FOREVER, _ASK_ANEW = "public, max-age=31536000, immutable", "no-cache"
_HEADERS = {
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_NOT_BUILT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Holdfast</title>
<h1>The console's pages are not built</h1>
<p>This server is running, and agents reach it. Its web pages come with the package, and with <code>make run</code> in a
checkout; this copy has none. Run <code>make web</code> in the checkout, or install the package, and reload this page.</p>
<p>Meanwhile the commands do the same: <code>holdfast review</code>, <code>holdfast changes</code>,
<code>holdfast organise</code>.</p>
"""


class Pages:
    """The files of a built app, read when they are asked for and kept in memory."""

    def __init__(self, folder: Traversable | None = None) -> None:
        self._folder = folder if folder is not None else files("holdfast.console").joinpath("static")
        self.top_files = _names(self._folder) - {_INDEX}
        self._cache: dict[str, tuple[bytes, bytes | None]] = {}

    async def page(self, request: Request) -> Response:
        """Answer a page of the app; which one it is, the app sees in its address."""
        name = request.url.path.removeprefix("/")
        if name in self.top_files:
            return await self._file(request, name, self._folder.joinpath(name), _ASK_ANEW)
        nonce = secrets.token_urlsafe(16)
        text = await anyio.to_thread.run_sync(_read, self._folder.joinpath(_INDEX))
        headers = {
            **_HEADERS,
            "cache-control": "no-store",
            "content-security-policy": content_security_policy(nonce),
            "cross-origin-opener-policy": "same-origin",
            "x-frame-options": "DENY",
        }
        if text is None:
            return HTMLResponse(_NOT_BUILT, 503, headers)
        return Response(text.replace(NONCE_MARK, nonce.encode()), media_type="text/html", headers=headers)

    async def asset(self, request: Request) -> Response:
        """Answer a file whose name changes with what is in it."""
        name = request.path_params["name"]
        if not _NAME.fullmatch(name):
            return Response("Not found.\n", 404, _HEADERS)
        return await self._file(request, f"{_ASSETS}/{name}", self._folder.joinpath(_ASSETS, name), _FOREVER)

    async def _file(self, request: Request, key: str, file: Traversable, caching: str) -> Response:
        entry = self._cache.get(key)
        if entry is None:
            content = await anyio.to_thread.run_sync(_read, file)
            if content is None:
                return Response("Not found.\n", 404, {**_HEADERS, "cache-control": "no-store"})
            entry = content, await anyio.to_thread.run_sync(_compress, content, _media_type(key))
            if caching == _FOREVER:
                self._cache[key] = entry
        plain, compressed = entry
        headers = {**_HEADERS, "cache-control": caching, "content-security-policy": "default-src 'none'; sandbox"}
        if compressed is not None:
            headers["vary"] = "accept-encoding"
            if "gzip" in request.headers.get("accept-encoding", ""):
                return Response(compressed, media_type=_media_type(key), headers=headers | {"content-encoding": "gzip"})
        return Response(plain, media_type=_media_type(key), headers=headers)


def content_security_policy(nonce: str) -> str:
    """Return the policy of the page: nothing but its own scripts, and styles that carry the nonce."""
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' blob:; media-src blob:; "
        "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )


def _names(folder: Traversable) -> set[str]:
    try:
        return {entry.name for entry in folder.iterdir() if entry.is_file() and _NAME.fullmatch(entry.name)}
    except OSError:
        return set()


def _read(file: Traversable) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


def _compress(content: bytes, media_type: str) -> bytes | None:
    """Return the content compressed where that is worth it."""
    if len(content) < _MIN_GZIP_BYTES or not media_type.startswith(_TEXT_TYPES):
        return None
    compressed = gzip.compress(content, 9, mtime=0)
    return compressed if len(compressed) < len(content) else None


def _media_type(name: str) -> str:
    if name.endswith((".js", ".mjs")):
        return "text/javascript"
    if name.endswith(".woff2"):
        return "font/woff2"
    return guess_type(name)[0] or "application/octet-stream"
