"""Pure: decides which Host and Origin headers are accepted.

A page on another site can make a browser call a server on this machine, by its name (cross-site request) or by
having its own name resolve to 127.0.0.1 (DNS rebinding). The first is seen in Origin, the second in Host.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from string import ascii_letters, digits
from urllib.parse import urlsplit

_HOST_CHARACTERS = frozenset(ascii_letters + digits + "-._:[]")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_WILDCARDS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared with, not listened on


@dataclass(frozen=True)
class Authority:
    """A host name and a port, as a Host header gives them."""

    host: str
    port: int | None

    @classmethod
    def parse(cls, text: str) -> "Authority | None":
        """Read `host`, `host:port` or `[v6]:port`; None when it is none of them."""
        if not text.isascii() or set(text) - _HOST_CHARACTERS:
            return None
        try:
            parts = urlsplit(f"//{text}")
            return cls(parts.hostname.rstrip(".").lower(), parts.port) if parts.hostname else None
        except ValueError:
            return None

    @property
    def is_loopback(self) -> bool:
        """Return whether it names this machine to itself."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


class HostRules:
    """Accepts loopback names with any port, the hosts and origins of the settings, and the address listened on."""

    def __init__(self, hosts: Iterable[str] = (), origins: Iterable[str] = (), listening: Iterable[str] = ()) -> None:
        names = [*hosts, *(address for address in listening if address not in _WILDCARDS)]
        self._hosts = [authority for name in names if (authority := Authority.parse(_add_brackets(name)))]
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)

    def accepts_host(self, header: str) -> bool:
        """Return whether a request with this Host header is meant for this server."""
        authority = Authority.parse(header)
        if authority is None:
            return False
        if authority.is_loopback:
            return True
        return any(authority.host == ours.host and ours.port in (None, authority.port) for ours in self._hosts)

    def is_configured(self, origin: str) -> bool:
        """Return whether the settings allow cross-origin requests from this web origin."""
        return origin.lower() in self._origins

    def accepts_origin(self, origin: str, host: str) -> bool:
        """Return whether a page of this origin may call: our own pages and configured origins only."""
        return self.is_configured(origin) or _is_same_origin(origin, host)


def _is_same_origin(origin: str, host: str) -> bool:
    scheme, separator, rest = origin.partition("://")
    theirs, ours = Authority.parse(rest), Authority.parse(host)
    if not separator or scheme.lower() not in _DEFAULT_PORTS or theirs is None or ours is None:
        return False
    default = _DEFAULT_PORTS[scheme.lower()]
    same_port = (theirs.port or default) == (ours.port or default)
    return same_port and (theirs.host == ours.host or (theirs.is_loopback and ours.is_loopback))


def _add_brackets(name: str) -> str:
    return f"[{name}]" if name.count(":") > 1 and not name.startswith("[") else name
