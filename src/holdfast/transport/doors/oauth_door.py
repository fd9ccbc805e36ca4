"""Authenticates by access tokens, as the protocol's authorization chapter has it: challenges, metadata, keys fetched beside it."""

import asyncio
import logging
from urllib.parse import urlsplit

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from holdfast.auth.context import AuthContext
from holdfast.auth.tokens import IssuerKeys, KeysUnavailable, TokenChecker, TokenRefused, TokenRules, UnknownKey
from holdfast.config.settings import Settings
from holdfast.secret import Secret

_log = logging.getLogger(__name__)

WELL_KNOWN = "/.well-known/"
_METADATA = "/.well-known/oauth-protected-resource"
_RETRY_SECONDS = "5"


class OAuthDoor:
    """The resource at one public address. `resource` is what clients ask tokens for."""

    def __init__(self, checker: TokenChecker, resource: str) -> None:
        self._checker = checker
        self._resource = resource
        parts = urlsplit(resource)
        self._metadata_url = f"{parts.scheme}://{parts.netloc}{_METADATA}{parts.path}"
        self.metadata_paths = frozenset({_METADATA, f"{_METADATA}{parts.path}"})
        self._refreshing: asyncio.Task[None] | None = None

    def routes(self) -> list[Route]:
        """Return the routes of the metadata, at the resource's own place and at the root."""
        return [Route(path, self.answer_metadata, methods=["GET"]) for path in sorted(self.metadata_paths)]

    async def answer_metadata(self, _request: Request) -> Response:
        """Say which authorization server gives tokens for this resource, and for which scopes."""
        metadata = {
            "resource": self._resource,
            "authorization_servers": [self._checker.rules.issuer],
            "scopes_supported": self._scopes(),
            "bearer_methods_supported": ["header"],
            "resource_name": "Holdfast",
        }
        return JSONResponse(metadata, headers={"cache-control": "max-age=300"})

    async def authenticate(self, token: Secret) -> AuthContext | Response:
        """Return the tenant of a token, or the answer that refuses it."""
        try:
            auth = await self._check(token)
        except TokenRefused as refused:
            return self._challenge(401, "invalid_token", str(refused))
        except KeysUnavailable:
            text = "The keys of the authorization server cannot be had; try again later.\n"
            return Response(text, 503, {"retry-after": _RETRY_SECONDS}, "text/plain")
        if auth.grant is not None and not auth.grant.may_read:
            scopes = [self._checker.rules.read_scope]
            return self._challenge(403, "insufficient_scope", "The token may not read here.", scopes)
        return auth

    def ask_for_token(self) -> Response:
        """Answer a request without a token: where one can be had."""
        return self._challenge(401)

    def ask_to_write(self) -> Response:
        """Answer a change that a token does not permit: the scopes that would."""
        return self._challenge(403, "insufficient_scope", "The token may not change anything here.", self._scopes())

    async def _check(self, token: Secret) -> AuthContext:
        keys = self._checker.keys
        if keys.is_stale and keys.may_refresh:
            _ = self._begin_refresh()
        try:
            return self._checker.check(token)
        except (UnknownKey, KeysUnavailable):
            if self._refreshing is None and not keys.may_refresh:
                raise
            await asyncio.wait({self._begin_refresh()})
        return self._checker.check(token)

    def _begin_refresh(self) -> "asyncio.Task[None]":
        """Fetch the keys in a thread, once for all who wait for them, or go on with the fetch that runs."""
        if self._refreshing is None:
            self._refreshing = asyncio.create_task(self._refresh())
        return self._refreshing

    async def _refresh(self) -> None:
        try:
            await anyio.to_thread.run_sync(self._checker.keys.refresh)
        except KeysUnavailable as fault:
            _log.warning("the keys of the authorization server: %s", fault)
        finally:
            self._refreshing = None

    def _scopes(self) -> list[str]:
        rules = self._checker.rules
        return list(dict.fromkeys(scope for scope in (rules.read_scope, rules.write_scope) if scope))

    def _challenge(self, status: int, error: str = "", text: str = "", scopes: list[str] | None = None) -> Response:
        scope = " ".join(self._scopes() if scopes is None else scopes)
        fields = {"error": error, "error_description": text, "scope": scope, "resource_metadata": self._metadata_url}
        challenge = "Bearer " + ", ".join(f'{name}="{value}"' for name, value in fields.items() if value)
        body = {"error": error or "unauthorized", "error_description": text or "An access token is needed."}
        return JSONResponse(body, status, {"www-authenticate": challenge, "cache-control": "no-store"})


def open_oauth_door(settings: Settings, keys: IssuerKeys) -> OAuthDoor:
    """Return the door that checks tokens as the settings have it, with the keys of their issuer."""
    oauth, resource = settings.auth.oauth, f"{settings.server.public_url}/mcp"
    rules = TokenRules(
        oauth.issuer,
        oauth.audience or resource,
        oauth.read_scope,
        oauth.write_scope,
        oauth.tenant_claim,
        oauth.leeway_seconds,
    )
    return OAuthDoor(TokenChecker(rules, keys), resource)
