"""Floods at the doors of the console: by a tenant with a page, and by strangers."""

import json
import threading
import time
from contextlib import suppress
from itertools import count

from benchmarks.measure.floods import (
    PROJECT,
    TENANT,
    Target,
    crowd,
    dial,
    exchange,
    flood,
    hold,
    keep_posting,
)

_OWN = "host: localhost\r\nsec-fetch-site: same-origin\r\ncontent-type: application/json\r\n"


def _post(path: str, body: bytes, secrets: str = "") -> bytes:
    return f"POST /api/{path} HTTP/1.1\r\n{_OWN}{secrets}content-length: {len(body)}\r\n\r\n".encode() + body


def _get(path: str, secrets: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\n{_OWN}{secrets}\r\n".encode()


def _sign_in_request(key: str) -> bytes:
    return _post("session", json.dumps({"api_key": key}).encode())


def _secrets_of_page(target: Target) -> str:
    """Return the header lines of a page that the flooding tenant signed in."""
    with dial(target) as line:
        head, _, body = exchange(line, _sign_in_request(TENANT)).partition(b"\r\n\r\n")
    cookie = next(row for row in head.decode().split("\r\n") if row.lower().startswith("set-cookie:"))
    return f"cookie: {cookie.split(': ', 1)[1].split(';')[0]}\r\nx-holdfast-key: {json.loads(body)['key']}\r\n"


@flood
def page_searches(target: Target) -> None:
    """Searches by a tenant's page, in a project with one file of 10 MB that is not indexed."""
    arguments = json.dumps({"project": PROJECT, "query": "compute the alpha value"}).encode()
    keep_posting(target, 32, _post("file_search", arguments, _secrets_of_page(target)))


@flood
def page_slices(target: Target) -> None:
    """A stored file of 8 MB read whole by a page, whose answers hold it twice."""
    arguments = json.dumps({"project": PROJECT, "path": "/large.txt"}).encode()
    keep_posting(target, 16, _post("file_read", arguments, _secrets_of_page(target)))


@flood
def page_names(target: Target) -> None:
    """A page's requests of 15 MB with 1.3 million names, to a tool and to the page's own endpoints."""
    body = json.dumps({f"a{number}": 1 for number in range(1_300_000)}, separators=(",", ":")).encode()
    secrets = _secrets_of_page(target)
    for path in ("session/end", "session"):
        threading.Thread(target=keep_posting, args=(target, 2, _post(path, body, secrets)), daemon=True).start()
    keep_posting(target, 4, _post("file_read", body, secrets))


@flood
def page_documents(target: Target) -> None:
    """The list of tools and the API's document, asked for by a page without a pause."""
    secrets = _secrets_of_page(target)
    for path in ("/api/tools", "/api/me"):
        threading.Thread(target=keep_posting, args=(target, 8, _get(path, secrets)), daemon=True).start()
    keep_posting(target, 8, _get("/api/openapi.json", secrets))


@flood
def page_streams(target: Target) -> None:
    """Streams of events of a page, 100 at once, opened again when they are closed."""
    hold(target, 100, _get("/api/events", _secrets_of_page(target)))


@flood
def page_streams_reopened(target: Target) -> None:
    """Streams of events that are opened and left, beside writes that they are told of."""
    secrets = _secrets_of_page(target)
    write = json.dumps({"project": PROJECT, "path": "/told.txt", "content": "x", "mode": "TRUNCATE"}).encode()
    threading.Thread(target=keep_posting, args=(target, 4, _post("file_write", write, secrets)), daemon=True).start()
    while True:
        for line in list(crowd(target, 20, _get("/api/events", secrets))):
            with suppress(OSError):
                line.recv(4096)
            line.close()


@flood
def sign_ins(target: Target) -> None:
    """Sessions of the console without end, of one tenant and of ever new ones."""
    threading.Thread(target=keep_posting, args=(target, 8, _sign_in_request(TENANT)), daemon=True).start()
    for number in count():
        with suppress(OSError), dial(target) as line:
            exchange(line, _sign_in_request(f"{TENANT}-{number}"))


@flood
def quoted_cookies(target: Target) -> None:
    """Requests to the console's API with a cookie of 60 kB of escapes, without a key."""
    keep_posting(target, 8, _get("/api/me", 'cookie: a="' + '\\"' * 28_000 + '"\r\n'))


@flood
def shells(target: Target) -> None:
    """The console's page asked for by a stranger without a pause."""
    keep_posting(target, 32, _get("/"))


@flood
def many_strangers_bodies(target: Target) -> None:
    """Bodies of 60 kB at the door where a browser signs in, without a key."""
    names = json.dumps({f"a{number}": 1 for number in range(6_000)}).encode()
    threading.Thread(target=keep_posting, args=(target, 16, _post("session", names)), daemon=True).start()
    while True:
        time.sleep(1)
