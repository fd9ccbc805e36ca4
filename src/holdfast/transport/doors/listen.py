"""The HTTP door's listening sockets, bound before anything else starts so that a taken port is said at once."""

import errno
import socket

from holdfast.errors import InvalidArgument, ResourceBusy

_BACKLOG = 2048


def listen_on(host: str, port: int, *, or_any_port: bool = False) -> socket.socket:
    """Return a listening socket. Raises ResourceBusy naming a taken port; a background server takes any free one instead.

    It listens at once: two sockets can be bound to one port, and only the second one's `listen` tells.
    """
    try:
        family, kind, _protocol, _name, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise InvalidArgument(f"{host!r} is no address to listen on: {error.strerror}.") from None
    # With the protocol left at 0 asyncio does not switch Nagle's delay off, which costs each call 40 ms.
    listener = socket.socket(family, kind, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if or_any_port and error.errno in (errno.EADDRINUSE, errno.EACCES) and port != 0:
            return listen_on(host, 0)
        raise _refused(host, port, error) from None
    return listener


def address_of(listener: socket.socket) -> tuple[str, int]:
    """Return the host and port that a bound socket listens on."""
    host, port = listener.getsockname()[:2]
    return str(host), int(port)


def base_url(listener: socket.socket) -> str:
    """Return the address that this machine's programs reach the listener by."""
    host, port = address_of(listener)
    reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{reachable}:{port}"


def _refused(host: str, port: int, error: OSError) -> ResourceBusy | InvalidArgument:
    if error.errno == errno.EADDRINUSE:
        return ResourceBusy(
            f"Port {port} on {host} is in use by another program. Choose another with --port; 0 takes any."
        )
    return InvalidArgument(f"Cannot listen on {host} port {port}: {error.strerror}.")
