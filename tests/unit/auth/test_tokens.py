"""Access tokens by the rules alone: algorithms and keys that fit each other, scopes, tenants, and keys that grow old."""

import base64
import time
from collections.abc import Mapping, Sequence
from typing import Any

import jwt as pyjwt
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OKPKey, RSAKey

from holdfast.auth.context import AuthContext
from holdfast.auth.tokens import (
    OUTDATED_SECONDS,
    PAUSE_SECONDS,
    STALE_SECONDS,
    IssuerKeys,
    KeysUnavailable,
    TokenChecker,
    TokenRefused,
    TokenRules,
    UnknownKey,
)
from holdfast.secret import Secret

RULES = TokenRules("https://issuer.example", "https://files.example/mcp", "read", "write", leeway_seconds=60)
RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
P256, P384 = ECKey.generate_key("P-256", {"kid": "p256"}), ECKey.generate_key("P-384", {"kid": "p384"})
ED = OKPKey.generate_key("Ed25519", {"kid": "ed"})
Key = RSAKey | ECKey | OKPKey


def public(*keys: Key, **more: Any) -> list[Mapping[str, Any]]:
    return [{**key.as_dict(private=False), **more} for key in keys]


def check(token: str, keys: Sequence[Mapping[str, Any]], rules: TokenRules = RULES) -> AuthContext:
    holder = IssuerKeys(lambda: keys)
    holder.refresh()
    return TokenChecker(rules, holder).check(Secret(token))


def sign(key: Key = RSA, algorithm: str = "RS256", **claims: Any) -> str:
    now = int(time.time())
    usual = {"iss": RULES.issuer, "aud": RULES.audience, "sub": "ann", "exp": now + 60, "scope": "read write"}
    merged = {name: value for name, value in {**usual, **claims}.items() if value is not None}
    return jwt.encode({"alg": algorithm, "kid": key.kid}, merged, key, algorithms=[algorithm])


@pytest.mark.req("SV-11.g")
@pytest.mark.parametrize(
    ("key", "algorithm"),
    [(RSA, "RS256"), (RSA, "RS512"), (RSA, "PS256"), (P256, "ES256"), (P384, "ES384"), (ED, "EdDSA")],
)
@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_every_asymmetric_algorithm_is_accepted_with_its_own_keys(key: Key, algorithm: str) -> None:
    assert not check(sign(key, algorithm), public(RSA, P256, P384, ED)).is_local


@pytest.mark.req("SV-11.g")
def test_a_key_for_one_algorithm_verifies_no_other() -> None:
    with pytest.raises(UnknownKey):
        check(sign(RSA, "RS512"), public(RSA, alg="RS256"))
    with pytest.raises(KeysUnavailable):
        check(sign(), public(RSA, use="enc"))
    with pytest.raises(KeysUnavailable):
        check(sign(), public(RSA, key_ops=["encrypt"]))


@pytest.mark.req("SV-11.g")
@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_a_short_key_is_refused() -> None:
    weak = RSAKey.generate_key(1024, {"kid": "weak"})
    with pytest.raises(TokenRefused):
        check(sign(weak), public(weak))


def test_two_keys_of_one_name_are_none() -> None:
    twin = RSAKey.generate_key(2048, {"kid": "rsa"})
    with pytest.raises(UnknownKey):
        check(sign(), public(RSA, twin))


@pytest.mark.req("SV-11.g")
def test_clocks_may_differ_by_the_leeway_and_no_more() -> None:
    now = int(time.time())
    assert check(sign(exp=now - 30), public(RSA)).grant is not None
    with pytest.raises(TokenRefused, match="expired"):
        check(sign(exp=now - 90), public(RSA))
    with pytest.raises(TokenRefused, match="not valid yet"):
        check(sign(nbf=now + 90), public(RSA))


@pytest.mark.req("SV-11.g")
@pytest.mark.parametrize(
    ("claims", "may_read", "may_write"),
    [
        ({"scope": "read write"}, True, True),
        ({"scope": "read"}, True, False),
        ({"scope": "write"}, False, True),
        ({"scope": "readwrite"}, False, False),
        ({"scope": ["read", "write"]}, True, True),
        ({"scope": 7}, False, False),
        ({"scope": None, "scp": "read"}, True, False),
        ({"scope": None, "scp": ["read", 7]}, True, False),
        ({"scope": None}, False, False),
    ],
)
def test_scopes_are_whole_words(claims: dict[str, Any], may_read: bool, may_write: bool) -> None:
    grant = check(sign(**claims), public(RSA)).grant
    assert grant is not None
    assert (grant.may_read, grant.may_write) == (may_read, may_write)


def test_a_scope_that_is_not_asked_for_is_not_needed() -> None:
    grant = check(sign(scope=""), public(RSA), TokenRules(RULES.issuer, RULES.audience)).grant
    assert grant is not None
    assert grant.may_read
    assert grant.may_write


@pytest.mark.req("SV-11.g")
def test_a_tenant_is_a_subject_of_an_issuer_and_never_the_user_of_this_machine() -> None:
    ann, again, ben = (check(sign(sub=name), public(RSA)).apikey_hash for name in ("ann", "ann", "ben"))
    assert ann == again
    assert ann != ben
    assert not check(sign(sub="local"), public(RSA)).is_local
    by_claim = TokenRules(RULES.issuer, RULES.audience, tenant_claim="org")
    assert check(sign(org="ann"), public(RSA), by_claim).apikey_hash != ann, "a claim's value is no subject"
    for value in (None, "", 7, ["acme"], "x" * 2_000):
        with pytest.raises(TokenRefused, match="'org'"):
            check(sign(org=value), public(RSA), by_claim)


def test_a_holder_is_shown_by_a_printable_name_of_bounded_length() -> None:
    assert check(sign(), public(RSA)).user_identity == "ann"
    assert check(sign(email="ann@acme.example"), public(RSA)).user_identity == "ann@acme.example"
    assert (
        check(sign(preferred_username="a\x1b[31mnn\n" + "x" * 500), public(RSA)).user_identity == "a[31mnn" + "x" * 91
    )
    assert check(sign(preferred_username="\n"), public(RSA)).user_identity == "token"


@pytest.mark.req("SV-11.g")
def test_keys_grow_stale_then_outdated_and_a_failed_fetch_leaves_those_there_are() -> None:
    now, answers = [0.0], [public(RSA)]

    def fetch() -> Sequence[Mapping[str, Any]]:
        if not answers:
            raise KeysUnavailable("down")
        return answers.pop()

    keys = IssuerKeys(fetch, lambda: now[0])
    checker, token = TokenChecker(RULES, keys), Secret(sign())
    assert keys.is_stale
    assert keys.may_refresh
    with pytest.raises(KeysUnavailable):
        checker.check(token)
    keys.refresh()
    assert not keys.may_refresh
    checker.check(token)
    now[0] += PAUSE_SECONDS
    assert keys.may_refresh
    assert not keys.is_stale
    now[0] = STALE_SECONDS + 1
    assert keys.is_stale
    with pytest.raises(KeysUnavailable, match="down"):
        keys.refresh()
    assert not keys.may_refresh, "a failed attempt counts as well"
    checker.check(token)
    now[0] = OUTDATED_SECONDS + 1
    with pytest.raises(KeysUnavailable, match="too long ago"):
        checker.check(token)


@pytest.mark.parametrize("keys", [[], [7], [{}], [{"kty": "oct", "k": "c2VjcmV0"}], [{"kty": "RSA", "use": "enc"}]])
def test_keys_that_verify_nothing_are_no_keys(keys: list[Any]) -> None:
    with pytest.raises(KeysUnavailable):
        IssuerKeys(lambda: keys).refresh()


def test_a_key_that_is_damaged_refuses_its_tokens() -> None:
    with pytest.raises(TokenRefused, match="cannot be used"):
        check(sign(), [{"kty": "RSA", "kid": "rsa", "n": "!", "e": "AQAB"}])


def _encode(value: str) -> str:
    return base64.urlsafe_b64encode(value.encode()).decode().rstrip("=")


@pytest.mark.req("SV-11.g")
@pytest.mark.parametrize(
    "header",
    ["[" * 5_000, "{}", "[]", "7", '"x"', '{"alg": ["RS256"]}', '{"alg": "RS256", "kid": 7}', '{"alg": "RS256", "typ": 7}',
     '{"alg": "RS256", "crit": ["x"], "x": 1}', '{"alg": "RS256", "kid": "rsa", "alg": "none"}', "\x00", ""],
)  # fmt: skip
def test_a_header_of_any_make_is_refused_and_nothing_else_happens(header: str) -> None:
    with pytest.raises(TokenRefused):
        check(f"{_encode(header)}.{_encode('{}')}.{_encode('x')}", public(RSA))


@pytest.mark.parametrize("value", [10**400, float("inf"), "soon", [], {}, None, True])
def test_an_end_that_is_no_time_is_refused(value: Any) -> None:
    if value is True:
        with pytest.raises(TokenRefused, match="expired"):
            check(sign(exp=value), public(RSA))
        return
    claims = {"iss": RULES.issuer, "aud": RULES.audience, "sub": "ann", "exp": value}
    token = pyjwt.encode(
        {name: claim for name, claim in claims.items() if claim is not None},
        RSA.as_pem(private=True),
        "RS256",
        {"kid": "rsa"},
        json_encoder=None,
    )
    with pytest.raises(TokenRefused):
        check(token, public(RSA))
