"""Links that work once, the sessions they open, and what of them outlives the process."""

import json
from typing import Any

import pytest

from holdfast.auth.context import LOCAL_USER, AuthContext
from holdfast.console.sessions import (
    LINK_SECONDS,
    MAX_IDLE_SECONDS,
    MAX_SESSION_SECONDS,
    BrowserSessions,
    SignIn,
)

TENANT, OTHER = AuthContext("t" * 64, "tenant"), AuthContext("o" * 64, "other")


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def sign_in(sessions: BrowserSessions, agent: str = "") -> SignIn:
    signed = sessions.redeem(sessions.create_link_token(), agent)
    assert signed is not None
    return signed


@pytest.mark.req("SV-11.c")
def test_a_link_opens_one_session() -> None:
    sessions = BrowserSessions()
    token = sessions.create_link_token()
    signed = sessions.redeem(token)
    assert signed is not None
    assert sessions.find(signed.cookie, signed.key) is signed.session
    assert sessions.redeem(token) is None
    assert sessions.redeem("guess") is None
    assert sessions.redeem("") is None


def test_neither_secret_opens_anything_alone_or_with_another_sessions() -> None:
    sessions = BrowserSessions()
    first, second = sign_in(sessions), sign_in(sessions)
    for cookie, key in (
        (first.cookie, ""),
        ("", first.key),
        (first.key, first.cookie),
        (first.cookie, second.key),
        (first.cookie, first.cookie),
        ("", ""),
    ):
        assert sessions.find(cookie, key) is None


@pytest.mark.req("SV-11.c")
def test_a_link_and_a_session_run_out() -> None:
    clock = Clock()
    sessions = BrowserSessions(now=clock)
    late, used, idle = sessions.create_link_token(), sign_in(sessions), sign_in(sessions)
    assert LINK_SECONDS == 60
    clock.now += LINK_SECONDS
    assert sessions.redeem(late) is None
    while clock.now < used.session.created_at + MAX_SESSION_SECONDS - 3_600:
        assert sessions.find(used.cookie, used.key) is used.session
        clock.now += MAX_IDLE_SECONDS / 2
    assert sessions.find(used.cookie, used.key) is None
    assert sessions.find(idle.cookie, idle.key) is None
    assert not sessions.is_open(used.session)
    assert sessions.all_of(LOCAL_USER) == []


def test_links_that_nobody_uses_do_not_pile_up() -> None:
    sessions = BrowserSessions()
    first = sessions.create_link_token()
    for _link in range(100):
        last = sessions.create_link_token()
    assert sessions.redeem(first) is None
    assert sessions.redeem(last) is not None


def test_the_persons_sessions_are_kept_as_hashes_and_a_tenants_are_not() -> None:
    written: list[str] = []
    clock = Clock()
    sessions = BrowserSessions(save=written.append, now=clock)
    signed, tenant = sign_in(sessions, "Firefox\n\u202e x"), sessions.open(TENANT)
    sessions.save()
    [row] = json.loads(written[-1])["sessions"]
    assert row["id"] == signed.session.id
    assert row["user_agent"] == "Firefox x"
    for secret in (signed.cookie, signed.key, tenant.cookie, TENANT.apikey_hash):
        assert secret not in written[-1]
    again = BrowserSessions(written[-1], now=clock)
    session = again.find(signed.cookie, signed.key)
    assert session is not None
    assert session.auth == LOCAL_USER
    assert again.find(tenant.cookie, tenant.key) is None
    assert again.find(signed.cookie, tenant.key) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"sessions": [{"id": "x"}]}', '{"sessions": 3}', "null", "\x00"])
def test_a_damaged_file_signs_out_and_nothing_else(text: str) -> None:
    sessions = BrowserSessions(text)
    assert sessions.all_of(LOCAL_USER) == []
    assert sign_in(sessions).session.kind == "person"


def test_nobody_ends_or_sees_the_sessions_of_somebody_else() -> None:
    sessions = BrowserSessions()
    person, tenant, other = sign_in(sessions), sessions.open(TENANT), sessions.open(OTHER)
    assert [each.id for each in sessions.all_of(TENANT)] == [tenant.session.id]
    assert not sessions.end(TENANT, person.session.id)
    assert not sessions.end(TENANT, other.session.id)
    assert sessions.end(TENANT, tenant.session.id)
    assert not sessions.is_open(tenant.session)
    assert sessions.is_open(person.session)


def test_many_sessions_of_tenants_end_none_of_the_person_nor_of_a_quiet_tenant() -> None:
    sessions = BrowserSessions()
    person, quiet = sign_in(sessions), sessions.open(OTHER)
    opened = [sessions.open(TENANT) for _ in range(200)]
    assert sessions.is_open(person.session)
    assert sessions.is_open(quiet.session)
    assert len(sessions.all_of(TENANT)) == 32
    assert sessions.is_open(opened[-1].session)
    for number in range(1_200):
        sessions.open(AuthContext(f"{number:064}", "flood"))
    assert sessions.is_open(person.session)


def test_times_of_use_are_written_now_and_then() -> None:
    clock = Clock()
    written: list[Any] = []
    sessions = BrowserSessions(save=written.append, now=clock)
    assert not sessions.needs_save
    clock.now += 301
    assert sessions.needs_save
    sessions.save()
    assert not sessions.needs_save
    assert len(written) == 1
