"""Where a request comes from: a header counts only from a trusted proxy, and only its last untrusted step."""

import pytest

from holdfast.transport.doors.hosts import client_address, is_loopback, is_trusted, last_value, parse_networks

TRUSTED = parse_networks(["10.0.0.0/8", "::1", "127.0.0.1"])


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "forwarded", "address"),
    [
        ("192.0.2.1", "", "", "192.0.2.1"),
        ("192.0.2.1", "203.0.113.5", "for=203.0.113.5", "192.0.2.1"),
        ("10.1.1.1", "203.0.113.5", "", "203.0.113.5"),
        ("10.1.1.1", "6.6.6.6, 203.0.113.5", "", "203.0.113.5"),
        ("10.1.1.1", "6.6.6.6, 203.0.113.5, 10.2.2.2", "", "203.0.113.5"),
        ("10.1.1.1", "10.3.3.3", "", "10.3.3.3"),
        ("10.1.1.1", "203.0.113.5:4711", "", "203.0.113.5"),
        ("::1", "[2001:db8::7]:4711", "", "2001:db8::7"),
        ("::1", "2001:db8::7", "", "2001:db8::7"),
        ("10.1.1.1", "unknown", "", "10.1.1.1"),
        ("10.1.1.1", "6.6.6.6, nonsense", "", "10.1.1.1"),
        ("10.1.1.1", "", 'for=6.6.6.6, proto=https;For="[2001:db8::7]:80";by=10.1.1.1', "2001:db8::7"),
        ("10.1.1.1", "", "for=_hidden", "10.1.1.1"),
        ("10.1.1.1", "203.0.113.5", "for=6.6.6.6", "203.0.113.5"),
        ("", "203.0.113.5", "", ""),
        ("::ffff:10.1.1.1", "203.0.113.5", "", "203.0.113.5"),
        ("::ffff:192.0.2.1", "203.0.113.5", "", "::ffff:192.0.2.1"),
    ],
)
def test_the_address_is_the_last_that_no_trusted_proxy_vouches_for(
    peer: str, forwarded_for: str, forwarded: str, address: str
) -> None:
    assert client_address(peer, forwarded_for, forwarded, TRUSTED) == address


@pytest.mark.parametrize(
    ("address", "expected"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("::ffff:127.0.0.1", True), ("192.0.2.1", False),
     ("::ffff:192.0.2.1", False), ("0.0.0.0", False), ("::", False), ("", False), ("localhost", False)],
)  # fmt: skip
def test_loopback_is_an_address_of_this_machine_alone(address: str, expected: bool) -> None:
    assert is_loopback(address) is expected


def test_an_address_in_ipv6_clothes_is_trusted_like_the_same_one_without() -> None:
    assert is_trusted("::ffff:10.2.3.4", TRUSTED)
    assert not is_trusted("::ffff:192.0.2.1", TRUSTED)


@pytest.mark.parametrize(
    ("values", "last"), [([], ""), (["https"], "https"), (["http, https"], "https"), (["http", " https "], "https")]
)
def test_the_last_value_is_that_of_the_nearest_proxy(values: list[str], last: str) -> None:
    assert last_value(values) == last


@pytest.mark.req("SV-05.d")
def test_gateway_stands_for_the_addresses_of_the_default_routes_and_for_nobody_without_one() -> None:
    assert is_trusted("172.17.0.1", parse_networks(["gateway"], ["172.17.0.1"]))
    assert not is_trusted("172.17.0.2", parse_networks(["gateway"], ["172.17.0.1"]))
    assert parse_networks(["gateway"]) == ()
