"""Pure: finds the address that a request comes from; what a proxy says of it counts only from a trusted one."""

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network

_FORWARDED_FOR = re.compile(r'(?:^|[;,])\s*for\s*=\s*(?:"([^"]*)"|([^;,\s]*))', re.IGNORECASE)


def parse_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Return addresses and networks, as `10.0.0.7` or `10.0.0.0/8`. ValueError for anything else."""
    return tuple(ip_network(text, strict=False) for text in texts)


def client_address(peer: str, forwarded_for: str, forwarded: str, trusted: Sequence[Network]) -> str:
    """Return the last address that no trusted proxy vouches for: the peer's own, unless it is such a proxy.

    Each proxy adds the address of its own peer at the end (X-Forwarded-For, or Forwarded when there is none), so what
    stands before an untrusted one may be invented.
    """
    steps = forwarded_for.split(",") if forwarded_for else ["".join(pair) for pair in _FORWARDED_FOR.findall(forwarded)]
    address = peer
    while steps and _is_trusted(address, trusted):
        step = _parse(steps.pop())
        if step is None:
            break
        address = str(step)
    return address


def _is_trusted(address: str, trusted: Sequence[Network]) -> bool:
    parsed = _parse(address)
    return parsed is not None and any(parsed in network for network in trusted)


def _parse(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address, which may have a port and an IPv6 one brackets; None for anything else."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return ip_address(text)
    except ValueError:
        return None
