"""Makes one tool call to a running server: through its socket as the user of this machine, or over HTTP with a key.

Standard library only. Each function returns the result of `tools/call`, whether the tool succeeded or not.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from holdfast import __version__
from holdfast.errors import HoldfastError, Internal, InvalidArgument, PermissionDenied, ResourceBusy
from holdfast.secret import Secret
from holdfast.transport.client.dial import Client, ServerRefusal, dial
from holdfast.transport.state_folder import StateFolder

_CALL_TIMEOUT_SECONDS = 150.0
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "holdfast", "version": __version__},
}
_CANCELLATION = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n'
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

    Raises NoServer when nothing was sent, HoldfastError when no answer came. Ctrl-C cancels the call on the server.
    """
    try:
        connection, _welcome = dial(folder, Client(kind, list(roots), [], "/", folders=bool(roots), is_command=True))
    except ServerRefusal as refusal:
        raise HoldfastError(str(refusal)) from None
    with connection, connection.makefile("rb") as lines:
        connection.settimeout(_CALL_TIMEOUT_SECONDS)
        try:
            request = _build_request(tool, arguments, wants_progress=progress is not None)
            connection.sendall(json.dumps(request).encode() + b"\n")
            for line in lines:
                message = json.loads(line)
                if progress is not None and message.get("method") == "notifications/progress":
                    params = message["params"]
                    progress(params["progress"], params.get("total"), params.get("message", ""))
                if message.get("id") == 1:
                    return _result_from_message(message)
        except KeyboardInterrupt:
            with suppress(OSError):
                connection.sendall(_CANCELLATION)
            raise
        except OSError:
            pass
    raise ResourceBusy(
        "The server ended before it answered. Check whether the request took effect before you repeat it."
    )


def call_by_http(url: str, key: Secret, tool: str, arguments: dict[str, Any]) -> Result:
    """Call a tool as the tenant that a key stands for."""
    address = urlsplit(url)
    if address.scheme not in _SCHEMES or not address.hostname:
        raise InvalidArgument(f"The address of a server must be http:// or https:// and a host: {url!r}")
    headers = {
        "Authorization": f"Bearer {key.reveal()}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    connection = _SCHEMES[address.scheme](address.hostname, address.port, timeout=_CALL_TIMEOUT_SECONDS)
    try:
        body = json.dumps(_build_request(tool, arguments)).encode()
        connection.request("POST", f"{address.path.rstrip('/')}/mcp", body, headers)
        response = connection.getresponse()
        text = response.read().decode()
    except (OSError, HTTPException, ValueError) as fault:
        raise ResourceBusy(f"No answer from {address.scheme}://{address.netloc} ({type(fault).__name__}).") from None
    finally:
        connection.close()
    if response.status == 401:
        raise PermissionDenied("The server does not know this key.")
    return _result_from_message(_message_from_body(response.status, text))


def _build_request(tool: str, arguments: dict[str, Any], *, wants_progress: bool = False) -> dict[str, Any]:
    meta = {**_META, "progressToken": 1} if wants_progress else _META
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def _message_from_body(status: int, text: str) -> dict[str, Any]:
    """Return the one response in a body, which is JSON or a stream of events with JSON in them."""
    events = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
    for candidate in [*events, text]:
        try:
            message = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(message, dict) and ("result" in message or "error" in message):
            return message
    raise Internal(f"The server answered with status {status}: {text.strip()[:200]}")


def _result_from_message(message: dict[str, Any]) -> Result:
    result = message.get("result")
    if isinstance(result, dict):
        return result
    error = message.get("error")
    raise Internal(str(error.get("message")) if isinstance(error, dict) else "The server's answer has no result.")
