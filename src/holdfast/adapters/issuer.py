"""Fetches the keys of the authorization server that the settings name, from there and from nowhere else."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from holdfast.adapters.models.remote import Endpoint, RemoteFault
from holdfast.auth.tokens import KeysUnavailable
from holdfast.errors import InvalidArgument

_TIMEOUT_SECONDS = 5.0
_MAX_BYTES = 1_000_000


class IssuerEndpoint:
    """One issuer. `jwks_uri` is where its keys are; empty, its metadata says where, on its own host."""

    def __init__(self, issuer: str, jwks_uri: str = "") -> None:
        self._issuer = issuer
        self._jwks_uri = jwks_uri

    def fetch_keys(self) -> Sequence[Mapping[str, Any]]:
        """Return the issuer's keys; blocks for seconds at most. Raises KeysUnavailable."""
        uri = self._jwks_uri or self._find_keys()
        try:
            answer = Endpoint(uri).get(_TIMEOUT_SECONDS, _MAX_BYTES)
        except (InvalidArgument, RemoteFault) as fault:
            raise KeysUnavailable(f"no keys from {uri}: {fault}") from None
        keys = answer.get("keys") if isinstance(answer, dict) else None
        if not isinstance(keys, list):
            raise KeysUnavailable(f"{uri} has no list of keys")
        return keys

    def _find_keys(self) -> str:
        """Return the address of the keys that the issuer's metadata gives, tried in the order of the protocol."""
        reasons = []
        for url in _metadata_urls(self._issuer):
            try:
                metadata = Endpoint(url).get(_TIMEOUT_SECONDS, _MAX_BYTES)
            except RemoteFault as fault:
                reasons.append(f"{url}: {fault}")
                continue
            if isinstance(metadata, dict) and metadata.get("issuer") == self._issuer:
                return self._check_host(metadata.get("jwks_uri"))
            reasons.append(f"{url}: it is the metadata of another issuer")
        raise KeysUnavailable(f"the issuer's metadata cannot be had; {'; '.join(reasons)}")

    def _check_host(self, uri: object) -> str:
        """Return the address of the keys when it is the issuer's own; another one must be named by a person."""
        if not isinstance(uri, str) or _origin(uri) != _origin(self._issuer):
            raise KeysUnavailable(
                "the issuer keeps its keys elsewhere; name the address in settings.auth.oauth.jwks_uri"
            )
        return uri


def _metadata_urls(issuer: str) -> list[str]:
    """Return where an issuer's metadata may be: OAuth's place, then the two of OpenID Connect."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    urls = [
        f"{parts.scheme}://{parts.netloc}/.well-known/oauth-authorization-server{path}",
        f"{parts.scheme}://{parts.netloc}/.well-known/openid-configuration{path}",
        f"{parts.scheme}://{parts.netloc}{path}/.well-known/openid-configuration",
    ]
    return list(dict.fromkeys(urls))


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()
