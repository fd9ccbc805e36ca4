"""Listening sockets: a port is taken from the moment it is given out."""

import socket

import pytest

from holdfast.errors import InvalidArgument, ResourceBusy
from holdfast.transport.doors.http_server import address_of, listen_on


def test_a_port_that_was_given_out_is_taken_at_once() -> None:
    with listen_on("127.0.0.1", 0) as first:
        port = address_of(first)[1]
        with pytest.raises(ResourceBusy, match=f"Port {port}"):
            listen_on("127.0.0.1", port)


def test_a_background_server_moves_to_a_free_port() -> None:
    with listen_on("127.0.0.1", 0) as first, listen_on("127.0.0.1", address_of(first)[1], or_any_port=True) as second:
        assert address_of(second)[1] != address_of(first)[1]
        with socket.create_connection(address_of(second), timeout=5):
            pass


def test_a_port_that_is_bound_but_not_listened_on_is_taken_by_whoever_listens_first() -> None:
    with socket.socket() as idle:
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        idle.bind(("127.0.0.1", 0))
        with listen_on("127.0.0.1", idle.getsockname()[1]), pytest.raises(OSError, match="in use"):
            idle.listen()


@pytest.mark.req("SV-05.d")
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_an_address_that_others_reach_is_listened_on_only_when_it_is_protected(host: str) -> None:
    with pytest.raises(InvalidArgument, match="plain text"):
        listen_on(host, 0)
    with listen_on(host, 0, is_protected=True) as listener:
        assert address_of(listener)[1]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_loopback_needs_no_protection(host: str) -> None:
    with listen_on(host, 0):
        pass
