"""Which Host and Origin headers are ours."""

import pytest

from holdfast.transport.doors.hosts import HostRules


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LocalHost:1",
        "localhost.",
        "127.0.0.1",
        "127.8.9.1:80",
        "[::1]",
        "[::1]:8124",
        "a.example",
        "b.example:7",
    ],
)
def test_loopback_and_configured_names_are_ours(host: str) -> None:
    assert HostRules(["a.example", "b.example:7"]).accepts_host(host)


@pytest.mark.parametrize(
    "host",
    ["", "evil", "localhost.evil", "127.0.0.1.evil", "128.0.0.1", "[::2]", "::1", "b.example:8", "localhost/x", "a@localhost",
     "localhost:x", "[::1", "localhost#", "xa.example", "a.example.evil", "localhost, evil"],
)  # fmt: skip
def test_other_names_are_not(host: str) -> None:
    assert not HostRules(["a.example", "b.example:7"]).accepts_host(host)


def test_the_address_listened_on_is_ours_unless_it_is_all_of_them() -> None:
    assert HostRules(listening=["192.0.2.5"]).accepts_host("192.0.2.5:8124")
    assert HostRules(listening=["fd00::5"]).accepts_host("[fd00::5]:8124")
    assert not HostRules(listening=["0.0.0.0"]).accepts_host("192.0.2.5:8124")


@pytest.mark.parametrize(
    ("origin", "host", "accepted"),
    [
        ("http://127.0.0.1:8124", "127.0.0.1:8124", True),
        ("http://localhost:8124", "127.0.0.1:8124", True),
        ("http://localhost", "localhost", True),
        ("http://localhost:80", "localhost", True),
        ("https://a.example", "a.example", True),
        ("https://a.example", "a.example:443", True),
        ("http://a.example", "a.example", True),
        ("http://localhost:3000", "localhost:8124", False),
        ("http://a.example", "localhost", False),
        ("http://evil:8124", "localhost:8124", False),
        ("null", "localhost", False),
        ("", "localhost", False),
        ("file://", "localhost", False),
        ("chrome-extension://localhost", "localhost", False),
        ("http://localhost:8124/path", "localhost:8124", False),
        ("https://app.example", "localhost", True),
        ("HTTPS://APP.example", "localhost", True),
        ("https://app.example.evil", "localhost", False),
    ],
)
def test_only_our_own_pages_and_configured_origins_may_call(origin: str, host: str, accepted: bool) -> None:
    assert HostRules(["a.example"], ["https://app.example/"]).accepts_origin(origin, host) is accepted


@pytest.mark.parametrize(
    ("origin", "accepted"), [("https://a.example", True), ("http://a.example", False), ("https://app.example", True)]
)
def test_what_came_by_https_is_called_by_pages_of_https_alone(origin: str, accepted: bool) -> None:
    rules = HostRules(["a.example"], ["https://app.example/"])
    assert rules.accepts_origin(origin, "a.example", is_secure=True) is accepted
