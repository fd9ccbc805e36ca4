"""Pure: splits a byte stream into lines of JSON-RPC, and reads the ids in them without parsing large ones.

Imports nothing but `json`: every message of the relay passes through here.
"""

import json
from collections.abc import Iterator

RequestId = int | str

EDGE_BYTES = 512
"""How much of each end of an oversized line is kept."""
_MAX_PARSED_BYTES = 65_536
_ID_PREFIX = b'{"jsonrpc":"2.0","id":'
_SPACE = b" \t\r\n"
STOP_NOTICE = b'{"holdfast":"stopping"}'
"""The last line of a server that was told to stop: a relay starts it again only when its client sends something."""
_REFUSAL_PREFIX = b'{"holdfast":"refused","error":'
QUESTION_ID_PREFIX = "ask-"
"""How the id of a question to the client begins."""
_QUESTION_PREFIX = f'{_ID_PREFIX.decode()}"{QUESTION_ID_PREFIX}'.encode()
_CANCELLED_PREFIX = b'{"jsonrpc":"2.0","method":"notifications/cancelled",'
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
SERVER_ERROR = -32000


class OversizedLine:
    """Both ends of a line that was longer than the limit: enough to find its id."""

    def __init__(self, start: bytes, end: bytes) -> None:
        self.start = start
        self.end = end

    def request_id(self) -> RequestId | None:
        """Return the id of the request, None when neither end of the line shows it."""
        request_id = _id_at_start(self.start)
        return _id_at_end(self.end) if request_id is None else request_id


class LineSplitter:
    """Splits a byte stream into lines. A line over the limit is dropped as it arrives and never held in memory."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._buffer = bytearray()
        self._searched = 0
        self._dropped_start: bytes | None = None

    def feed(self, data: bytes) -> Iterator[bytes | OversizedLine]:
        """Add the next bytes and yield every line that they complete, without its newline."""
        self._buffer += data
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end < 0:
                self._drop_beyond_limit()
                self._searched = len(self._buffer)
                return
            line = bytes(memoryview(self._buffer)[:end])
            del self._buffer[: end + 1]
            self._searched = 0
            if self._dropped_start is not None or len(line) > self.limit:
                yield OversizedLine(self._dropped_start or line[:EDGE_BYTES], line[-EDGE_BYTES:])
                self._dropped_start = None
            else:
                yield line

    def _drop_beyond_limit(self) -> None:
        if len(self._buffer) > self.limit or (self._dropped_start is not None and len(self._buffer) > EDGE_BYTES):
            if self._dropped_start is None:
                self._dropped_start = bytes(self._buffer[:EDGE_BYTES])
            del self._buffer[:-EDGE_BYTES]


def parse_request(line: bytes) -> tuple[RequestId | None, str]:
    """Return the id and the method of a client's message: no id for a notification, no method for an answer."""
    if len(line) > _MAX_PARSED_BYTES:
        request_id = OversizedLine(line[:EDGE_BYTES], line[-EDGE_BYTES:]).request_id()
        if request_id is not None and b'"method"' in line[:EDGE_BYTES]:
            return request_id, "?"
    message = _parse_object(line)
    method = message.get("method")
    return _to_id(message.get("id")), method if isinstance(method, str) else ""


def cancelled_request_id(line: bytes) -> RequestId | None:
    """Return the id of the request that a `notifications/cancelled` cancels."""
    params = _parse_object(line).get("params")
    return _to_id(params.get("requestId")) if isinstance(params, dict) else None


def answered_request_id(line: bytes) -> RequestId | None:
    """Return the id that a server's message answers, None when it is a notification or a request."""
    if line.startswith(b'{"jsonrpc":"2.0","method":'):
        return None
    if line.startswith(_ID_PREFIX):
        end = _token_end(line, len(_ID_PREFIX))
        if line.startswith((b',"result":', b',"error":'), end):
            return _to_id(_parse(line[len(_ID_PREFIX) : end]))
        if line.startswith(b',"method":', end):
            return None
    message = _parse_object(line)
    return None if "method" in message else _to_id(message.get("id"))


def question_id(line: bytes) -> RequestId | None:
    """Return the id of a server's message that is a question to the client, None for any other."""
    if not line.startswith(_QUESTION_PREFIX):
        return None
    return _to_id(_parse(line[len(_ID_PREFIX) : _token_end(line, len(_ID_PREFIX))]))


def refusal_line(error: dict[str, object]) -> bytes:
    """Return the last line, newline included, of a server that finds after its welcome that it cannot serve the client."""
    return _REFUSAL_PREFIX + json.dumps(error, separators=(",", ":")).encode() + b"}\n"


def parse_refusal(line: bytes) -> dict[str, object] | None:
    """Return the error of such a line, None for any other."""
    error = _parse_object(line).get("error") if line.startswith(_REFUSAL_PREFIX) else None
    return error if isinstance(error, dict) else None


def withdrawn_question_id(line: bytes) -> RequestId | None:
    """Return the id of the question that a server's message withdraws, None when it withdraws none."""
    return cancelled_request_id(line) if line.startswith(_CANCELLED_PREFIX) else None


def withdrawal_line(question: RequestId) -> bytes:
    """Return the notification, newline included, that a question to the client is withdrawn."""
    params = {"requestId": question, "reason": "the question is no longer open"}
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def error_line(request_id: RequestId | None, code: int, message: str, data: dict[str, object] | None = None) -> bytes:
    """Return a JSON-RPC error as one line, newline included."""
    error: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    body = {"jsonrpc": "2.0", "id": request_id, "error": error}
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def oversized_error(line: OversizedLine, limit: int) -> bytes:
    """Return the error for a line that was dropped, newline included."""
    data: dict[str, object] = {"code": "PAYLOAD_TOO_LARGE", "retryable": False}
    message = f"The message is larger than {limit} bytes, the limit."
    return error_line(line.request_id(), INVALID_REQUEST, message, data)


def _parse_object(line: bytes) -> dict[str, object]:
    value = _parse(line)
    return value if isinstance(value, dict) else {}


def _parse(text: bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _to_id(value: object) -> RequestId | None:
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def _token_end(text: bytes, start: int) -> int:
    """Return the end of the number or unescaped string that starts there; the start itself if there is neither."""
    if text[start : start + 1] == b'"':
        end = text.find(b'"', start + 1)
        return start if end < 0 or b"\\" in text[start:end] else end + 1
    end = start
    while text[end : end + 1] in (b"-", b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9"):
        end += 1
    return end


def _id_at_start(start: bytes) -> RequestId | None:
    """Find an id before any member but `jsonrpc` and `method`: `{"jsonrpc":"2.0","method":"x","id":7,…`."""
    at = _skip(start, 0, b"{")
    for _member in range(3):
        end = _token_end(start, at)
        name, at = start[at:end], _skip(start, end, b":")
        end = _token_end(start, at)
        if name not in (b'"jsonrpc"', b'"method"', b'"id"') or end in (at, len(start)):
            return None
        if name == b'"id"':
            return _to_id(_parse(start[at:end]))
        at = _skip(start, end, b",")
    return None


def _skip(text: bytes, at: int, mark: bytes) -> int:
    """Return the position after spaces, an optional mark, and spaces."""
    while at < len(text) and text[at] in _SPACE:
        at += 1
    at += text[at : at + 1] == mark
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _id_at_end(end: bytes) -> RequestId | None:
    """Find an id that only `jsonrpc` and `method` may follow: `…},"jsonrpc":"2.0","id":7}`."""
    at = end.rfind(b'"id"')
    if at < 0:
        return None
    tail = _parse_object(b"{" + end[at:])
    return _to_id(tail.get("id")) if set(tail) <= {"id", "jsonrpc", "method"} else None
