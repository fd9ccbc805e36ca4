"""Pure: lines of JSON-RPC cut from a byte stream, and the ids in them, read without parsing what is large.

Imports nothing but `json`: the relay looks at every message with this.
"""

import json
from collections.abc import Iterator

Id = int | str

_KEPT = 512
_SMALL = 65_536
_HEAD = b'{"jsonrpc":"2.0","id":'
_SPACE = b" \t\r\n"
FAREWELL = b'{"holdfast":"stopping"}'
"""The last line of a server that was told to stop: a relay starts it again only when its client wants something."""
QUESTION_ID = "ask-"
"""How the id of a question to the client begins."""
_QUESTION = f'{_HEAD.decode()}"{QUESTION_ID}'.encode()
_CANCELLED = b'{"jsonrpc":"2.0","method":"notifications/cancelled",'
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
SERVER_ERROR = -32000


class Overlong:
    """What is kept of a line that was longer than the limit: enough to find its id."""

    def __init__(self, start: bytes, end: bytes) -> None:
        self.start = start
        self.end = end

    def request_id(self) -> Id | None:
        """Return the id of the request that the line was, where one of its ends shows it."""
        return _id_at_start(self.start) if _id_at_start(self.start) is not None else _id_at_end(self.end)


class Lines:
    """Cuts a byte stream into lines. A line over the limit is thrown away as it comes and never held."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held = bytearray()
        self._searched = 0
        self._dropped: bytes | None = None

    def feed(self, data: bytes) -> Iterator[bytes | Overlong]:
        """Take the next bytes and give every line that they complete, without its newline."""
        self._held += data
        while True:
            end = self._held.find(b"\n", self._searched)
            if end < 0:
                self._keep_within_limit()
                self._searched = len(self._held)
                return
            line = bytes(memoryview(self._held)[:end])
            del self._held[: end + 1]
            self._searched = 0
            if self._dropped is not None or len(line) > self.limit:
                yield Overlong(self._dropped or line[:_KEPT], line[-_KEPT:])
                self._dropped = None
            else:
                yield line

    def _keep_within_limit(self) -> None:
        if len(self._held) > self.limit or (self._dropped is not None and len(self._held) > _KEPT):
            if self._dropped is None:
                self._dropped = bytes(self._held[:_KEPT])
            del self._held[:-_KEPT]


def request_of(line: bytes) -> tuple[Id | None, str]:
    """Return the id and the method of a client's message: no id for a notification, no method for an answer."""
    if len(line) > _SMALL:
        number = Overlong(line[:_KEPT], line[-_KEPT:]).request_id()
        if number is not None and b'"method"' in line[:_KEPT]:
            return number, "?"
    message = _parsed(line)
    method = message.get("method")
    return _id(message.get("id")), method if isinstance(method, str) else ""


def cancelled_id(line: bytes) -> Id | None:
    """Return the id of the request that a `notifications/cancelled` gives up."""
    params = _parsed(line).get("params")
    return _id(params.get("requestId")) if isinstance(params, dict) else None


def answered_id(line: bytes) -> Id | None:
    """Return the id that a server's message answers, None when it is a notification or a request."""
    if line.startswith(b'{"jsonrpc":"2.0","method":'):
        return None
    if line.startswith(_HEAD):
        end = _token_end(line, len(_HEAD))
        if line.startswith((b',"result":', b',"error":'), end):
            return _id(_value(line[len(_HEAD) : end]))
        if line.startswith(b',"method":', end):
            return None
    message = _parsed(line)
    return None if "method" in message else _id(message.get("id"))


def question_id(line: bytes) -> Id | None:
    """Return the id of the question to the client that a server's message is."""
    if not line.startswith(_QUESTION):
        return None
    return _id(_value(line[len(_HEAD) : _token_end(line, len(_HEAD))]))


def withdrawn_id(line: bytes) -> Id | None:
    """Return the id of the question that a server's message gives up."""
    return cancelled_id(line) if line.startswith(_CANCELLED) else None


def withdrawal_line(number: Id) -> bytes:
    """Return as one line, newline included, that a question to the client is no longer open."""
    params = {"requestId": number, "reason": "the question is no longer open"}
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def error_line(number: Id | None, code: int, message: str, data: dict[str, object] | None = None) -> bytes:
    """Return a JSON-RPC error as one line, newline included."""
    error: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    body = {"jsonrpc": "2.0", "id": number, "error": error}
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def _parsed(line: bytes) -> dict[str, object]:
    found = _value(line)
    return found if isinstance(found, dict) else {}


def _value(text: bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _id(found: object) -> Id | None:
    return found if isinstance(found, int | str) and not isinstance(found, bool) else None


def _token_end(text: bytes, start: int) -> int:
    """Return where the number or the plain string that starts there ends; the start itself if neither does."""
    if text[start : start + 1] == b'"':
        end = text.find(b'"', start + 1)
        return start if end < 0 or b"\\" in text[start:end] else end + 1
    end = start
    while text[end : end + 1] in (b"-", b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9"):
        end += 1
    return end


def _id_at_start(start: bytes) -> Id | None:
    """Find an id that comes before any value that is not plain: `{"jsonrpc":"2.0","method":"x","id":7,…`."""
    at = _skip(start, 0, b"{")
    for _member in range(3):
        end = _token_end(start, at)
        name, at = start[at:end], _skip(start, end, b":")
        end = _token_end(start, at)
        if name not in (b'"jsonrpc"', b'"method"', b'"id"') or end in (at, len(start)):
            return None
        if name == b'"id"':
            return _id(_value(start[at:end]))
        at = _skip(start, end, b",")
    return None


def _skip(text: bytes, at: int, mark: bytes) -> int:
    """Step over spaces, one mark if it is there, and spaces."""
    while at < len(text) and text[at] in _SPACE:
        at += 1
    at += text[at : at + 1] == mark
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _id_at_end(end: bytes) -> Id | None:
    """Find an id among the last plain members: `…},"jsonrpc":"2.0","id":7}`."""
    at = end.rfind(b'"id"')
    if at < 0:
        return None
    tail = _parsed(b"{" + end[at:])
    return _id(tail.get("id")) if set(tail) <= {"id", "jsonrpc", "method"} else None
