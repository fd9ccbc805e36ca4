"""Ends TLS for the HTTP door: its certificate, read again when it is renewed, and handshakes, which count as connections."""

import asyncio
import logging
import os
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import Any

from holdfast.config.server_settings import TlsSettings
from holdfast.errors import InvalidArgument
from holdfast.transport.doors.connections import Connections

_log = logging.getLogger(__name__)

RENEWAL_SECONDS = 5.0
"""How often a server looks whether its certificate was renewed."""
_Version = tuple[tuple[int, int, int], ...]


class Certificate:
    """A certificate with its key. Raises InvalidArgument, saying what is wrong, when they cannot be used."""

    def __init__(self, settings: TlsSettings) -> None:
        self._files = os.path.expanduser(settings.certificate), os.path.expanduser(settings.key)
        self._version = self._read_version()
        self.context = self._load()

    def renew(self) -> None:
        """Use the files for connections from here on when they have changed; it blocks.

        A pair that cannot be used is reported, and the certificate in use stays: its two files may be half replaced.
        """
        version = self._read_version()
        if version == self._version:
            return
        self._version = version
        try:
            self.context = self._load()
        except InvalidArgument as fault:
            _log.warning("%s The one in use stays.", fault.message)
        else:
            _log.info("the renewed certificate is in use")

    def _read_version(self) -> _Version:
        try:
            statuses = [os.stat(file) for file in self._files]
        except OSError:
            return ()
        return tuple((status.st_mtime_ns, status.st_size, status.st_ino) for status in statuses)

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(["http/1.1"])
        certificate, key = self._files
        try:
            context.load_cert_chain(certificate, key, password="")  # an encrypted key is refused, not asked for
        except ssl.SSLError as error:
            reason = (error.reason or "unreadable").lower().replace("_", " ")
            raise InvalidArgument(
                f"The certificate {certificate!r} and the key {key!r} are no pair of PEM files that can be used: {reason}. "
                "The key must not be encrypted."
            ) from None
        except OSError as error:
            raise InvalidArgument(
                f"The certificate {certificate!r} or its key {key!r} cannot be read: {error.strerror}. "
                "See settings.server.tls."
            ) from None
        return context


class _Handshake(SSLProtocol):
    """TLS for one connection, which counts from its first byte on: half a handshake is a stranger like half a request.

    The protocol inside it is given the connection as `accepted`.
    """

    def __init__(self, inner: Any, context: ssl.SSLContext, seconds: float, connections: Connections) -> None:
        nobody: Any = None  # waits for this handshake
        timeout: Any = seconds  # asyncio takes parts of a second
        loop = asyncio.get_running_loop()
        super().__init__(loop, inner, context, nobody, server_side=True, ssl_handshake_timeout=timeout)
        self._inner = inner
        self._connections = connections

    def connection_made(self, transport: Any) -> None:
        address = transport.get_extra_info("peername")
        connection = self._connections.open_http(str(address[0]) if address else "", transport.abort)
        self._inner.accepted = connection
        super().connection_made(transport)
        if connection is None:
            transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._inner.accepted is not None:
            self._connections.http.close(self._inner.accepted)
        super().connection_lost(exc)


def speak_tls(
    protocol: Callable[..., asyncio.Protocol], certificate: Certificate, seconds: float, connections: Connections
) -> Callable[..., SSLProtocol]:
    """Return what makes a connection's protocol: the given one inside TLS, whose handshake may take so many seconds."""

    def make(**arguments: Any) -> SSLProtocol:
        return _Handshake(protocol(**arguments), certificate.context, seconds, connections)

    return make
