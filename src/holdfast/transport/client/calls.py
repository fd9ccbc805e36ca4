"""One tool call to a server that is running: through its socket as the user of this machine, or over HTTP with a key.

Standard library only. Each function returns the protocol's result of the call, whether it succeeded or not.
"""

import json
from collections.abc import Callable, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from holdfast import __version__
from holdfast.errors import HoldfastError, Internal, InvalidArgument, PermissionDenied, ResourceBusy
from holdfast.secret import Secret
from holdfast.transport.client.dial import Client, ServerRefusal, dial
from holdfast.transport.state_folder import StateFolder

_CALL_SECONDS = 150.0
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "holdfast", "version": __version__},
}
_SCHEMES = {"http": HTTPConnection, "https": HTTPSConnection}

Result = dict[str, Any]
Progress = Callable[[float, float | None, str], None]


def call_by_socket(
    folder: StateFolder,
    tool: str,
    arguments: dict[str, Any],
    kind: str = "agent",
    roots: Sequence[str] = (),
    progress: Progress | None = None,
) -> Result:
    """Call a tool on directories, one that needs none, or one of the person's with kind `person`.

    Raises NoServer when nothing was sent, HoldfastError when no answer came.
    """
    try:
        line, _welcome = dial(folder, Client(kind, list(roots), [], "/", folders=bool(roots), is_command=True))
    except ServerRefusal as refusal:
        raise HoldfastError(str(refusal)) from None
    with line, line.makefile("rb") as answers:
        line.settimeout(_CALL_SECONDS)
        try:
            line.sendall(json.dumps(_request(tool, arguments, told=progress is not None)).encode() + b"\n")
            for answer in answers:
                message = json.loads(answer)
                if progress is not None and message.get("method") == "notifications/progress":
                    told = message["params"]
                    progress(told["progress"], told.get("total"), told.get("message", ""))
                if message.get("id") == 1:
                    return _result(message)
        except OSError:
            pass
    raise ResourceBusy("The server ended before it answered; look whether the call was carried out.")


def call_by_http(url: str, key: Secret, tool: str, arguments: dict[str, Any]) -> Result:
    """Call a tool as the tenant that a key stands for."""
    place = urlsplit(url)
    if place.scheme not in _SCHEMES or not place.hostname:
        raise InvalidArgument(f"The address of a server is http:// or https:// and a host: {url!r}")
    headers = {
        "Authorization": f"Bearer {key.reveal()}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    connection = _SCHEMES[place.scheme](place.hostname, place.port, timeout=_CALL_SECONDS)
    try:
        body = json.dumps(_request(tool, arguments)).encode()
        connection.request("POST", f"{place.path.rstrip('/')}/mcp", body, headers)
        response = connection.getresponse()
        text = response.read().decode()
    except (OSError, HTTPException, ValueError) as fault:
        raise ResourceBusy(f"No answer from {place.scheme}://{place.netloc} ({type(fault).__name__}).") from None
    finally:
        connection.close()
    if response.status == 401:
        raise PermissionDenied("The server does not know this key.")
    return _result(_message_of(response.status, text))


def _request(tool: str, arguments: dict[str, Any], *, told: bool = False) -> dict[str, Any]:
    meta = {**_META, "progressToken": 1} if told else _META
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def _message_of(status: int, text: str) -> dict[str, Any]:
    """Return the one answer in a body that is JSON, or a stream of events with JSON in it."""
    events = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
    for candidate in [*events, text]:
        try:
            message = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(message, dict) and ("result" in message or "error" in message):
            return message
    raise Internal(f"The server answered with status {status}: {text.strip()[:200]}")


def _result(message: dict[str, Any]) -> Result:
    result = message.get("result")
    if isinstance(result, dict):
        return result
    error = message.get("error")
    raise Internal(str(error.get("message")) if isinstance(error, dict) else "The server's answer has no result.")
