"""An authorization server in a process of its own: metadata, registration, authorization codes with PKCE, signed tokens.

It is what a user would run elsewhere, without a page to sign in: whoever asks names a user. Tests also have it sign claims
of theirs, take a new key, and say how often its keys were fetched.
"""

import base64
import hashlib
import json
import secrets
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import httpx2
import uvicorn
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.helpers.doors import free_port, until

READERS = frozenset({"reader"})
"""Users who are granted no scope to write until they ask for it alone: the second time they agree."""
_TOKEN_SECONDS = 300


class Issuer:
    """The state of the server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.keys: list[RSAKey | ECKey] = []
        self.codes: dict[str, dict[str, str]] = {}
        self.requests: Counter[str] = Counter()
        self.is_down = False
        self.rotate("RS256")

    def rotate(self, algorithm: str) -> None:
        """Sign with a new key from here on; older ones are gone."""
        parameters: Any = {"kid": secrets.token_hex(8), "use": "sig", "alg": algorithm}
        key = RSAKey.generate_key(2048, parameters) if algorithm == "RS256" else ECKey.generate_key("P-256", parameters)
        self.keys = [key]

    def sign(self, claims: dict[str, Any], header: dict[str, Any] | None = None) -> str:
        """Return a token with these claims over the usual ones; None takes a usual one away."""
        now = int(time.time())
        usual = {"iss": self.url, "iat": now, "exp": now + _TOKEN_SECONDS, "jti": secrets.token_hex(8)}
        key = self.keys[0]
        fields = {"typ": "at+jwt", "alg": key.alg, "kid": key.kid, **(header or {})}
        merged = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        return jwt.encode({name: value for name, value in fields.items() if value is not None}, merged, key)

    async def metadata(self, _request: Request) -> Response:
        """Answer RFC 8414."""
        return JSONResponse(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "registration_endpoint": f"{self.url}/register",
                "jwks_uri": f"{self.url}/keys",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "authorization_response_iss_parameter_supported": True,
            }
        )

    async def answer_keys(self, _request: Request) -> Response:
        """Answer the public keys, beside one that is no key for signatures."""
        self.requests["keys"] += 1
        if self.is_down:
            return Response("down", 503)
        shared = {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(b"x" * 64).decode().rstrip("=")}
        return JSONResponse({"keys": [*(key.as_dict(private=False) for key in self.keys), shared]})

    async def register(self, request: Request) -> Response:
        """Register a client, as RFC 7591 has it."""
        metadata = await request.json()
        client = {**metadata, "client_id": secrets.token_hex(8), "token_endpoint_auth_method": "none"}
        return JSONResponse(client, 201)

    async def authorize(self, request: Request) -> Response:
        """Give a code to the user that the query names."""
        query = dict(request.query_params)
        assert query["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(24)
        self.codes[code] = query
        answer = {"code": code, "state": query["state"], "iss": self.url}
        return RedirectResponse(f"{query['redirect_uri']}?{urlencode(answer)}", 302)

    async def give_token(self, request: Request) -> Response:
        """Exchange a code for a token, when the verifier proves who asked for the code."""
        form = {name: str(value) for name, value in (await request.form()).items()}
        query = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if query is None or query["code_challenge"] != challenge or query["redirect_uri"] != form.get("redirect_uri"):
            return JSONResponse({"error": "invalid_grant"}, 400)
        user = query["user"]
        scopes = query.get("scope", "").split()
        self.requests[f"token {user}"] += 1
        if user in READERS and self.requests[f"token {user}"] == 1:
            scopes = [scope for scope in scopes if not scope.endswith("write")]
        claims = {
            "sub": user,
            "aud": form.get("resource", ""),
            "client_id": query["client_id"],
            "scope": " ".join(scopes),
        }
        answer = {"token_type": "Bearer", "expires_in": _TOKEN_SECONDS, "scope": " ".join(scopes)}
        return JSONResponse({**answer, "access_token": self.sign(claims)}, headers={"cache-control": "no-store"})

    async def control(self, request: Request) -> Response:
        """Do what a test asks: sign, rotate, be down, tell."""
        order = await request.json()
        if "sign" in order:
            return JSONResponse({"token": self.sign(order["sign"], order.get("header"))})
        if "rotate" in order:
            self.rotate(order["rotate"])
        self.is_down = order.get("down", self.is_down)
        public = [key.as_pem(private=False).decode() for key in self.keys]
        return JSONResponse({"requests": self.requests, "pem": public, "kid": self.keys[0].kid})

    def app(self) -> Starlette:
        """Return the routes."""
        return Starlette(
            routes=[
                Route("/.well-known/oauth-authorization-server", self.metadata),
                Route("/keys", self.answer_keys),
                Route("/register", self.register, methods=["POST"]),
                Route("/authorize", self.authorize),
                Route("/token", self.give_token, methods=["POST"]),
                Route("/control", self.control, methods=["POST"]),
            ]
        )


class RunningIssuer:
    """An issuer that runs, as tests see it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def control(self, **order: Any) -> dict[str, Any]:
        """Ask it for something beside the protocol."""
        answer: dict[str, Any] = httpx2.post(f"{self.url}/control", json=order).json()
        return answer

    def sign(self, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """Return a token that it signed."""
        return str(self.control(sign=claims, header=header)["token"])

    @property
    def fetches(self) -> int:
        """Return how often its keys were fetched."""
        return int(self.control()["requests"].get("keys", 0))


@contextmanager
def run_issuer() -> Iterator[RunningIssuer]:
    """Run an issuer until the block ends."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "tests.helpers.issuer", json.dumps({"port": port})])
    issuer = RunningIssuer(f"http://127.0.0.1:{port}")

    def is_up() -> bool:
        assert process.poll() is None
        try:
            return httpx2.get(f"{issuer.url}/keys").status_code == 200
        except httpx2.ConnectError:
            return False

    try:
        until("the issuer is up", is_up, 30)
        yield issuer
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def main() -> None:
    """Serve on the port of the one argument."""
    port = json.loads(sys.argv[1])["port"]
    uvicorn.run(Issuer(f"http://127.0.0.1:{port}").app(), host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main()
