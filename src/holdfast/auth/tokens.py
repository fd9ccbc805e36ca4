"""Checks access tokens that an authorization server issued for this server: JSON Web Tokens signed with one of its keys.

A token is good when its signature, issuer, audience and times are, and when nothing about it is left to chance: no algorithm
with a shared secret, no kind of token but an access token, none that is bound to a key which nobody proved to have.
"""

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.auth.context import AuthContext, Grant
from holdfast.secret import Secret

if TYPE_CHECKING:
    import jwt

MAX_TOKEN_CHARS = 8_000
MAX_KEYS = 100
STALE_SECONDS = 300.0
"""After this the keys are fetched again beside the requests, so that a key which the issuer withdraws soon opens nothing."""
OUTDATED_SECONDS = 3_600.0
"""After this without an answer from the issuer its keys count no longer."""
PAUSE_SECONDS = 10.0
"""The least time between two attempts to fetch the keys, however many unknown keys are named to this server."""

_FAMILIES = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", None)),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""The algorithms that are accepted, each with the type and the curve of its keys: asymmetric ones alone."""
_TYPES = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})
_MAX_TENANT_CHARS = 1_024
_MAX_IDENTITY_CHARS = 100

FetchKeys = Callable[[], Sequence[Mapping[str, Any]]]
"""Returns the issuer's keys as JSON Web Keys; it blocks, and raises KeysUnavailable."""


class KeysUnavailable(Exception):
    """The issuer's keys could not be had; the text says why, for the log."""


class TokenRefused(Exception):
    """A token opens nothing; the text says why, to its holder."""


class UnknownKey(TokenRefused):
    """A token names a key that is not among those fetched last: the issuer may have a new one."""


@dataclass(frozen=True)
class TokenRules:
    """What a token must say, and what of it names the tenant; an empty scope is not asked for."""

    issuer: str
    audience: str
    read_scope: str = ""
    write_scope: str = ""
    tenant_claim: str = ""
    leeway_seconds: float = 60.0


class IssuerKeys:
    """The keys of the issuer as they were fetched last. Reading never blocks; `refresh` does, and is called by one at a time."""

    def __init__(self, fetch: FetchKeys, clock: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch
        self._clock = clock
        self._keys: list[Mapping[str, Any]] = []
        self._fetched_at = self._tried_at = -math.inf
        self._cache: dict[tuple[str, str], jwt.PyJWK] = {}

    @property
    def is_stale(self) -> bool:
        """Return whether it is time to fetch them again."""
        return self._age() > STALE_SECONDS

    @property
    def may_refresh(self) -> bool:
        """Return whether the last attempt is long enough ago."""
        return self._clock() - self._tried_at >= PAUSE_SECONDS

    def refresh(self) -> None:
        """Fetch the keys. Raises KeysUnavailable, and leaves those that there are."""
        self._tried_at = self._clock()
        keys = [key for key in self._fetch() if _verifies(key)]
        if not keys:
            raise KeysUnavailable("none of its keys can verify a signature")
        self._keys, self._cache = keys[:MAX_KEYS], {}
        self._fetched_at = self._clock()

    def find(self, key_id: str | None, algorithm: str) -> "jwt.PyJWK":
        """Return the key of that id; without an id, the only one there is. UnknownKey, and KeysUnavailable without any."""
        if self._age() > OUTDATED_SECONDS:
            raise KeysUnavailable("they were never fetched, or too long ago")
        fitting = [key for key in self._keys if _fits(key, algorithm) and key_id in (None, key.get("kid"))]
        if len(fitting) != 1:
            raise UnknownKey("The token is signed with a key that its issuer does not have.")
        name = str(fitting[0].get("kid", "")), algorithm
        if name not in self._cache:
            import jwt

            try:
                self._cache[name] = jwt.PyJWK(dict(fitting[0]), algorithm)
            except jwt.PyJWTError:
                raise TokenRefused("The token's key cannot be used.") from None
        return self._cache[name]

    def _age(self) -> float:
        return self._clock() - self._fetched_at


class TokenChecker:
    """Turns a good token into its tenant."""

    def __init__(self, rules: TokenRules, keys: IssuerKeys) -> None:
        self.rules = rules
        self.keys = keys

    def check(self, token: Secret) -> AuthContext:
        """Return the tenant of a token. Raises TokenRefused, UnknownKey and KeysUnavailable."""
        text = token.reveal()
        if len(text) > MAX_TOKEN_CHARS:
            raise TokenRefused("The token is too long.")
        key = self._key_of(text)
        rules = self.rules
        import jwt

        try:
            claims = jwt.decode(
                text,
                key,
                algorithms=[key.algorithm_name],
                issuer=rules.issuer,
                audience=rules.audience,
                leeway=rules.leeway_seconds,
                options={"require": ["exp", "iss", "aud"], "enforce_minimum_key_length": True},
            )
            expires_at = float(claims["exp"]) + rules.leeway_seconds
        except _faults() as error:
            raise TokenRefused(_REASONS.get(type(error).__name__, "The token is not valid.")) from None
        if "cnf" in claims:
            raise TokenRefused("The token is bound to a key, and takes a proof of it that is not understood here.")
        return self._tenant_of(claims, expires_at)

    def _key_of(self, text: str) -> "jwt.PyJWK":
        """Return the key that a token must be signed with, by its header, which nothing has vouched for yet."""
        import jwt

        try:
            header = jwt.get_unverified_header(text)
        except _faults():
            raise TokenRefused("The token is no JSON Web Token.") from None
        algorithm, kind = header.get("alg"), header.get("typ", "")
        if not isinstance(algorithm, str) or algorithm not in _FAMILIES:
            raise TokenRefused("The token is not signed by an algorithm that is accepted here.")
        if not isinstance(kind, str) or kind.lower() not in _TYPES:
            raise TokenRefused("The token is no access token.")
        return self.keys.find(header.get("kid"), algorithm)

    def _tenant_of(self, claims: Mapping[str, Any], expires_at: float) -> AuthContext:
        name = self.rules.tenant_claim or "sub"
        value = claims.get(name)
        if not isinstance(value, str) or not 0 < len(value) <= _MAX_TENANT_CHARS:
            raise TokenRefused(f"The token has no claim {name!r} that names a tenant.")
        tenant = f"oauth\0{self.rules.issuer}\0{name}\0{value}".encode("utf-8", "surrogatepass")
        scopes = _scopes(claims)
        grant = Grant(
            expires_at,
            may_read=self.rules.read_scope in {"", *scopes},
            may_write=self.rules.write_scope in {"", *scopes},
        )
        return AuthContext(hashlib.sha256(tenant).hexdigest(), _identity(claims, value), grant=grant)


_REASONS = {
    "ExpiredSignatureError": "The token has expired.",
    "ImmatureSignatureError": "The token is not valid yet.",
    "InvalidAudienceError": "The token is for another server.",
    "InvalidIssuerError": "The token is from another issuer.",
    "InvalidSignatureError": "The token's signature is wrong.",
    "MissingRequiredClaimError": "The token lacks its issuer, its audience or its end.",
}
"""What is said of an exception of PyJWT. It loads cryptography, so it is imported with the first token and not at start."""


def _faults() -> tuple[type[Exception], ...]:
    """Return what PyJWT raises for a token, and what it lets through of values that no token should have."""
    from jwt import PyJWTError

    return (PyJWTError, ArithmeticError, RecursionError, TypeError, ValueError)


def _verifies(key: object) -> bool:
    """Return whether a JSON Web Key is a public one for signatures."""
    if not isinstance(key, Mapping) or key.get("use") not in (None, "sig"):
        return False
    operations = key.get("key_ops")
    if operations is not None and (not isinstance(operations, list) or "verify" not in operations):
        return False
    return any(_fits(key, algorithm) for algorithm in _FAMILIES)


def _fits(key: Mapping[str, Any], algorithm: str) -> bool:
    family, curve = _FAMILIES[algorithm]
    return (
        key.get("kty") == family and key.get("alg") in (None, algorithm) and (curve is None or key.get("crv") == curve)
    )


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return the scopes of a token: `scope` as the standard has it, a text, or `scp` as some issuers write it."""
    value = claims.get("scope", claims.get("scp", ""))
    words = value.split() if isinstance(value, str) else value
    return frozenset(word for word in words if isinstance(word, str)) if isinstance(words, list) else frozenset()


def _identity(claims: Mapping[str, Any], tenant: str) -> str:
    """Return how the holder is shown; it never authorises, since a name may be chosen by whoever has it."""
    values = (claims.get(name) for name in ("preferred_username", "email"))
    text = next((value for value in values if isinstance(value, str) and value), tenant)
    return "".join(char for char in text[:_MAX_IDENTITY_CHARS] if char.isprintable()) or "token"
