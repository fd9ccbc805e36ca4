"""Links that work once, and the sessions they open."""

import pytest

from holdfast.transport.doors.browser_sessions import LINK_SECONDS, SESSION_SECONDS, BrowserSessions


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_link_opens_one_session() -> None:
    links = BrowserSessions()
    token = links.create_link_token()
    session = links.redeem(token)
    assert session is not None
    assert links.is_open(session)
    assert links.redeem(token) is None
    assert not links.is_open(token)
    assert links.redeem("guess") is None


@pytest.mark.req("SV-11.c")
def test_a_link_and_a_session_run_out() -> None:
    clock = Clock()
    links = BrowserSessions(clock)
    late, used = links.create_link_token(), links.create_link_token()
    session = links.redeem(used)
    assert session is not None
    assert LINK_SECONDS == 60
    clock.now += LINK_SECONDS
    assert links.redeem(late) is None
    clock.now += SESSION_SECONDS
    assert not links.is_open(session)


def test_links_that_nobody_uses_do_not_pile_up() -> None:
    links = BrowserSessions()
    first = links.create_link_token()
    for _link in range(100):
        last = links.create_link_token()
    assert links.redeem(first) is None
    assert links.redeem(last) is not None
