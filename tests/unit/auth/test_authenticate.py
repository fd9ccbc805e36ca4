"""Keys become tenants, or nobody."""

import hashlib

import pytest

from holdfast.auth.authenticate import Authenticator
from holdfast.auth.context import LOCAL_USER, AuthContext
from holdfast.secret import Secret

LOCAL = Secret("a" * 64)
LONG = Secret("a-key-of-sixteen")


@pytest.mark.parametrize("mode", ["local", "listed", "open"])
def test_the_local_token_is_the_local_user_in_every_mode(mode: str) -> None:
    assert Authenticator(LOCAL, mode).identify(Secret("a" * 64)) == LOCAL_USER  # type: ignore[arg-type]


def test_in_local_mode_every_other_key_is_nobody() -> None:
    assert Authenticator(LOCAL).identify(LONG) is None
    assert Authenticator(LOCAL).identify(Secret("")) is None


def test_in_open_mode_a_key_of_sixteen_characters_is_its_own_tenant() -> None:
    door = Authenticator(LOCAL, "open")
    tenant = door.identify(LONG)
    assert tenant is not None
    assert tenant.apikey_hash == hashlib.sha256(LONG.reveal().encode()).hexdigest()
    assert not tenant.is_local
    assert LONG.reveal() not in repr(tenant)
    assert door.identify(Secret("only-15-charact")) is None


def test_a_listed_key_is_looked_up_by_its_hash() -> None:
    known = {hashlib.sha256(LONG.reveal().encode()).hexdigest(): AuthContext("tenant", "label")}
    door = Authenticator(LOCAL, "listed", known.get)
    assert door.identify(LONG) == AuthContext("tenant", "label")
    assert door.identify(Secret("another-long-key-of-mine")) is None
    assert Authenticator(LOCAL, "listed").identify(LONG) is None


MODEL = Secret("sk-model-key-of-mine")


@pytest.mark.req("SE-31.c")
def test_on_an_open_server_the_bearer_is_the_model_key_whatever_the_header_says() -> None:
    tenant = Authenticator(LOCAL, "open").identify(LONG, MODEL)
    assert tenant is not None and tenant.model_key is LONG
    assert LONG.reveal() not in repr(tenant)


@pytest.mark.req("SE-31.d")
def test_on_a_listed_server_only_the_header_is_a_model_key() -> None:
    known = {hashlib.sha256(LONG.reveal().encode()).hexdigest(): AuthContext("tenant", "label")}
    door = Authenticator(LOCAL, "listed", known.get)
    plain, keyed = door.identify(LONG), door.identify(LONG, MODEL)
    assert plain is not None and plain.model_key is None
    assert keyed is not None and keyed.model_key is MODEL
    assert plain == keyed, "a model key does not make another tenant"
    assert MODEL.reveal() not in repr(keyed)


@pytest.mark.parametrize("mode", ["local", "listed", "open"])
def test_the_local_users_token_is_never_a_model_key(mode: str) -> None:
    found = Authenticator(LOCAL, mode).identify(Secret("a" * 64), MODEL)  # type: ignore[arg-type]
    assert found is not None and found.model_key is None
