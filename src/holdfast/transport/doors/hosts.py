"""Pure: judges the headers that say where a request goes and comes from: Host, Origin, and those that proxies add.

A page on another site can make a browser call a server on this machine, by its name (cross-site request) or by
having its own name resolve to 127.0.0.1 (DNS rebinding). The first is seen in Origin, the second in Host.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from string import ascii_letters, digits
from urllib.parse import urlsplit

from holdfast.config.server_settings import GATEWAY

_HOST_CHARACTERS = frozenset(ascii_letters + digits + "-._:[]")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_WILDCARDS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared with, not listened on
_FORWARDED_FOR = re.compile(r'(?:^|[;,])\s*for\s*=\s*(?:"([^"]*)"|([^;,\s]*))', re.IGNORECASE)

Network = IPv4Network | IPv6Network


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
        self._hosts = [authority for name in names if (authority := Authority.parse(add_brackets(name)))]
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

    def accepts_origin(self, origin: str, host: str, *, is_secure: bool = False) -> bool:
        """Return whether a page of this origin may call: our own pages and configured origins only.

        What came `is_secure` is called by secure pages alone: anybody on the way can write those of plain HTTP.
        """
        return self.is_configured(origin) or _is_same_origin(origin, host, is_secure=is_secure)


def _is_same_origin(origin: str, host: str, *, is_secure: bool) -> bool:
    scheme, separator, rest = origin.partition("://")
    theirs, ours = Authority.parse(rest), Authority.parse(host)
    if not separator or scheme.lower() not in _DEFAULT_PORTS or theirs is None or ours is None:
        return False
    if is_secure and scheme.lower() != "https":
        return False
    default = _DEFAULT_PORTS[scheme.lower()]
    same_port = (theirs.port or default) == (ours.port or default)
    return same_port and (theirs.host == ours.host or (theirs.is_loopback and ours.is_loopback))


def add_brackets(name: str) -> str:
    """Return an address as it stands before a port: an IPv6 one in brackets."""
    return f"[{name}]" if name.count(":") > 1 and not name.startswith("[") else name


def parse_networks(texts: Sequence[str], gateways: Sequence[str] = ()) -> tuple[Network, ...]:
    """Return addresses and networks, as `10.0.0.7` or `10.0.0.0/8`, and for `gateway` those of this machine.

    ValueError for anything else.
    """
    addresses = [address for text in texts for address in (gateways if text == GATEWAY else (text,))]
    return tuple(ip_network(address, strict=False) for address in addresses)


def client_address(peer: str, forwarded_for: str, forwarded: str, trusted: Sequence[Network]) -> str:
    """Return the last address that no trusted proxy vouches for: the peer's own, unless it is such a proxy.

    Each proxy adds the address of its own peer at the end (X-Forwarded-For, or Forwarded when there is none), so what
    stands before an untrusted one may be invented.
    """
    steps = forwarded_for.split(",") if forwarded_for else ["".join(pair) for pair in _FORWARDED_FOR.findall(forwarded)]
    address = peer
    while steps and is_trusted(address, trusted):
        step = _parse_address(steps.pop())
        if step is None:
            break
        address = str(step)
    return address


def is_loopback(address: str) -> bool:
    """Return whether an address is this machine's own, which only its own programs connect from."""
    parsed = _parse_address(address)
    return parsed is not None and parsed.is_loopback


def last_value(values: Sequence[str]) -> str:
    """Return the last value of a header that each proxy adds to: the one of the proxy that is our own peer."""
    return values[-1].rpartition(",")[2].strip() if values else ""


def is_trusted(address: str, trusted: Sequence[Network]) -> bool:
    """Return whether an address is one of the trusted proxies."""
    parsed = _parse_address(address)
    return parsed is not None and any(parsed in network for network in trusted)


def _parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address, which may have a port and an IPv6 one brackets; None for anything else.

    A socket for both families shows an IPv4 peer as ::ffff:10.0.0.7, which is 10.0.0.7.
    """
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
