"""Access tokens of a real issuer: the whole flow by the official client, what is refused, and who sees what."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
import websockets.exceptions
from joserfc import jwt
from joserfc.jwk import RSAKey
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from websockets.sync.client import connect

from tests.helpers.agent import LEGACY, MODERN
from tests.helpers.doors import ACCEPT, INITIALIZE, LIST, House, free_port, until
from tests.helpers.issuer import RunningIssuer, run_issuer
from tests.helpers.remote import RemoteAgent

pytestmark = pytest.mark.timeout(120)

BOTH = "holdfast:read holdfast:write"
WRITE = {"project": "notes", "path": "/a.txt", "content": "hello"}


@contextmanager
def serve_oauth(folder: Path, issuer: str, **oauth: Any) -> Iterator[House]:
    """Serve with tokens of an issuer, at a public address that is this machine's own."""
    house, port = House(folder), free_port()
    auth = {"mode": "oauth", "oauth": {"issuer": issuer, "leeway_seconds": 0, **oauth}}
    house.settings(json.dumps({"settings": {"auth": auth, "server": {"public_url": f"http://127.0.0.1:{port}"}}}))
    with house.serve(str(house.root), "--port", str(port)):
        yield house


@pytest.fixture(scope="module")
def issuer() -> Iterator[RunningIssuer]:
    """Give a running issuer."""
    with run_issuer() as running:
        yield running


@pytest.fixture(scope="module")
def house(issuer: RunningIssuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server that accepts the issuer's tokens."""
    with serve_oauth(tmp_path_factory.mktemp("oauth"), issuer.url) as served:
        yield served


def token_for(issuer: RunningIssuer, house: House, user: str = "ann", scope: str = BOTH, **more: Any) -> str:
    """Return a token that the issuer signed; `more` are its other claims, and its header."""
    return issuer.sign(**{"sub": user, "aud": f"{house.url}/mcp", "scope": scope, **more})


def post(house: House, token: str | None, message: Any = None) -> httpx2.Response:
    headers = {"accept": ACCEPT} | ({"authorization": f"Bearer {token}"} if token is not None else {})
    return httpx2.post(f"{house.url}/mcp", json=message or LIST, headers=headers)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


class Storage:
    """Keeps what the client learnt; `issued` are the scopes of each token."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None
        self.issued: list[str] = []

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens
        self.issued.append(tokens.scope or "")

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def provider_of(house: House, user: str, storage: Storage) -> OAuthClientProvider:
    """Return the official client's authorization, whose user agrees to everything."""
    answers: list[AuthorizationCodeResult] = []

    async def redirect(url: str) -> None:
        async with httpx2.AsyncClient() as browser:
            answer = await browser.get(f"{url}&user={user}")
        query = {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}
        answers.append(AuthorizationCodeResult(**query))

    async def callback() -> AuthorizationCodeResult:
        return answers.pop()

    metadata = OAuthClientMetadata.model_validate(
        {
            "client_name": "test",
            "redirect_uris": ["http://127.0.0.1:1/callback"],
            "grant_types": ["authorization_code"],
            "token_endpoint_auth_method": "none",
        }
    )
    return OAuthClientProvider(f"{house.url}/mcp", metadata, storage, redirect, callback)


def use_store(house: House, user: str, mode: str) -> tuple[str, Storage]:
    """Write and read a stored file as a user, beginning without any token."""
    storage = Storage()

    async def visit() -> str:
        async with (
            httpx2.AsyncClient(auth=provider_of(house, user, storage), timeout=30) as http,
            Client(streamable_http_client(f"{house.url}/mcp", http_client=http), mode=mode, cache=None) as client,
        ):
            await client.list_tools()  # a client that has no token yet answers one challenge for each request
            written = await client.call_tool("file_write", {**WRITE, "content": f"by {user}", "mode": "TRUNCATE"})
            assert not written.is_error, written
            return str(await client.call_tool("file_read", {"project": "notes", "path": "/a.txt"}))

    return anyio.run(visit), storage


@pytest.mark.req("SV-11.g")
@pytest.mark.parametrize("mode", [LEGACY, MODERN])
def test_the_official_client_finds_the_issuer_and_gets_in(house: House, mode: str) -> None:
    text, storage = use_store(house, "ann", mode)
    assert "by ann" in text
    assert storage.issued == [BOTH]
    assert storage.client is not None


@pytest.mark.req("SV-11.g")
def test_a_client_that_lacks_a_scope_is_told_which_and_gets_it(tmp_path: Path) -> None:
    with run_issuer() as own, serve_oauth(tmp_path, own.url) as served:
        text, storage = use_store(served, "reader", MODERN)
    assert "by reader" in text
    assert storage.issued == ["holdfast:read", BOTH]


@pytest.mark.req("SV-11.g")
def test_a_tenant_sees_its_own_and_no_folder(house: House, issuer: RunningIssuer) -> None:
    with RemoteAgent(house.url, token_for(issuer, house, "bob")) as bob:
        bob.call("file_write", **{**WRITE, "project": "private"}).ok()
        assert bob.call("read_text_file", path="a.txt").code == "NOT_FOUND"
        assert "list_directory" not in {tool.name for tool in bob.tools()}
    with RemoteAgent(house.url, token_for(issuer, house, "eve")) as eve:
        assert eve.call("file_read", project="private", path="/a.txt").code == "NOT_FOUND"
        assert "private" not in eve.call("project_list").ok().text
    with RemoteAgent(house.url, token_for(issuer, house, "bob")) as again:
        assert again.call("file_read", project="private", path="/a.txt").ok().text.endswith("hello")
    with RemoteAgent(house.url, house.token) as local:
        assert local.call("file_read", project="private", path="/a.txt").code == "NOT_FOUND"
        assert local.call("read_text_file", path="a.txt").ok().text == "hello\n"


@pytest.mark.req("SV-11.g")
@pytest.mark.parametrize("path", ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"])
def test_the_resource_says_who_gives_tokens_for_it(house: House, issuer: RunningIssuer, path: str) -> None:
    answer = httpx2.get(f"{house.url}{path}")
    assert answer.json() == {
        "resource": f"{house.url}/mcp",
        "authorization_servers": [issuer.url],
        "scopes_supported": ["holdfast:read", "holdfast:write"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Holdfast",
    }
    assert httpx2.get(f"{house.url}/.well-known/other").status_code == 404


@pytest.mark.req("SV-11.g")
def test_without_a_token_the_answer_says_where_to_get_one(house: House) -> None:
    answer = post(house, None)
    assert answer.status_code == 401
    metadata = f"{house.url}/.well-known/oauth-protected-resource/mcp"
    assert answer.headers["www-authenticate"] == f'Bearer scope="{BOTH}", resource_metadata="{metadata}"'


def forged(claims: dict[str, Any], kid: str) -> str:
    """Return a token with the issuer's claims and key id, signed by another key."""
    key = RSAKey.generate_key(2048)
    return jwt.encode({"alg": "RS256", "typ": "at+jwt", "kid": kid}, claims, key)


def unsigned(claims: dict[str, Any], header: dict[str, Any], secret: bytes = b"") -> str:
    """Return a token by hand: no signature, or one by a shared secret."""
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"typ": "at+jwt", **header}, claims)
    ]
    signing_input = ".".join(parts)
    signature = hmac.new(secret, signing_input.encode(), hashlib.sha256).digest() if secret else b""
    return f"{signing_input}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def bad_token(kind: str, issuer: RunningIssuer, house: House) -> str:
    """Return a token that is wrong in one thing."""
    now, control = int(time.time()), issuer.control()
    claims = {"iss": issuer.url, "sub": "ann", "aud": f"{house.url}/mcp", "scope": BOTH, "exp": now + 60, "iat": now}
    signed: dict[str, dict[str, Any]] = {
        "expired": {"exp": now - 5, "iat": now - 60},
        "not yet": {"nbf": now + 60},
        "another audience": {"aud": "https://other.example/mcp"},
        "a part of the audience": {"aud": house.url},
        "no audience": {"aud": None},
        "another issuer": {"iss": "https://other.example"},
        "no end": {"exp": None},
        "no subject": {"sub": None},
        "an empty subject": {"sub": ""},
        "bound to a key": {"cnf": {"jkt": "x"}},
        "an identity token": {"header": {"typ": "id+jwt"}},
        "an unknown key": {"header": {"kid": "unknown"}},
    }
    if kind in signed:
        return token_for(issuer, house, **signed[kind])
    by_hand: dict[str, Callable[[], str]] = {
        "forged": lambda: forged(claims, control["kid"]),
        "none": lambda: unsigned(claims, {"alg": "none", "kid": control["kid"]}),
        "None": lambda: unsigned(claims, {"alg": "None"}),
        "confused": lambda: unsigned(claims, {"alg": "HS256", "kid": control["kid"]}, control["pem"][0].encode()),
        "shared": lambda: unsigned(claims, {"alg": "HS256", "kid": "shared"}, b"x" * 64),
        "no token": lambda: "not-a-token",
        "dots": lambda: "..",
        "too long": lambda: "x" * 20_000,
        "changed": lambda: _with_other_subject(token_for(issuer, house)),
    }
    return by_hand[kind]()


def _with_other_subject(token: str) -> str:
    head, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    body = base64.urlsafe_b64encode(json.dumps({**claims, "sub": "bob"}).encode()).decode().rstrip("=")
    return f"{head}.{body}.{signature}"


@pytest.mark.req("SV-11.g")
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("expired", "expired"), ("not yet", "not valid yet"), ("another audience", "another server"),
        ("a part of the audience", "another server"), ("no audience", "lacks"), ("another issuer", "another issuer"),
        ("no end", "lacks"), ("no subject", "tenant"), ("an empty subject", "tenant"), ("bound to a key", "proof"),
        ("an identity token", "no access token"), ("an unknown key", "does not have"),
        ("forged", "signature"), ("none", "algorithm"), ("None", "algorithm"), ("confused", "algorithm"),
        ("shared", "algorithm"), ("no token", "no JSON Web Token"), ("dots", "no JSON Web Token"),
        ("too long", "too long"), ("changed", "signature"),
    ],
)  # fmt: skip
def test_a_token_that_is_wrong_in_one_thing_opens_nothing(
    house: House, issuer: RunningIssuer, kind: str, reason: str
) -> None:
    token = bad_token(kind, issuer, house)
    answer = post(house, token)
    assert answer.status_code == 401, answer.text
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    assert "resource_metadata=" in answer.headers["www-authenticate"]
    assert reason in answer.json()["error_description"]
    assert token not in answer.text
    websocket = house.url.replace("http", "ws") + "/ws"
    with (
        pytest.raises(websockets.exceptions.InvalidStatus),
        connect(websocket, additional_headers={"authorization": f"Bearer {token}"}, compression=None),
    ):
        pass


@pytest.mark.req("SV-11.g")
def test_a_good_token_of_the_same_make_gets_in(house: House, issuer: RunningIssuer) -> None:
    assert post(house, token_for(issuer, house)).status_code == 200
    assert post(house, token_for(issuer, house, aud=["https://x.example", f"{house.url}/mcp"])).status_code == 200
    assert post(house, token_for(issuer, house, header={"typ": "JWT"})).status_code == 200
    assert post(house, token_for(issuer, house, header={"typ": None})).status_code == 200
    assert post(house, token_for(issuer, house, header={"kid": None})).status_code == 200, "the only key there is"


@pytest.mark.req("SV-11.g")
def test_scopes_bound_what_a_token_may_do(house: House, issuer: RunningIssuer) -> None:
    nothing = post(house, token_for(issuer, house, scope="profile"))
    assert nothing.status_code == 403
    assert 'error="insufficient_scope"' in nothing.headers["www-authenticate"]
    assert 'scope="holdfast:read"' in nothing.headers["www-authenticate"]
    reading = token_for(issuer, house, "carl", "holdfast:read")
    listed = post(house, reading, call("file_list", project="notes"))
    assert listed.status_code == 200
    refused = post(house, reading, call("file_write", **WRITE))
    assert refused.status_code == 403
    assert f'scope="{BOTH}"' in refused.headers["www-authenticate"]
    steps = [{"id": "a", "tool": "file_write", "arguments": WRITE}]
    with RemoteAgent(house.url, reading) as agent:
        assert "scope" in str(agent.call("mcp_pipe", steps=steps).error)
    with connect(
        house.url.replace("http", "ws") + "/ws",
        additional_headers={"authorization": f"Bearer {reading}"},
        compression=None,
    ) as line:
        line.send(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}))
        line.recv(10)
        line.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        line.send(json.dumps(call("file_write", **WRITE)))
        assert "PERMISSION_DENIED" in str(line.recv(10))
    assert post(house, token_for(issuer, house, "carl"), call("file_write", **WRITE)).status_code == 200
    by_other_name = token_for(issuer, house, "carl", None, scp=BOTH.split())  # type: ignore[arg-type]
    assert post(house, by_other_name, call("file_list", project="notes")).status_code == 200


@pytest.mark.req("SV-11.g")
def test_a_connection_ends_with_the_token_that_opened_it(house: House, issuer: RunningIssuer) -> None:
    token = token_for(issuer, house, exp=int(time.time()) + 4)
    address, headers = house.url.replace("http", "ws") + "/ws", {"authorization": f"Bearer {token}"}
    with connect(address, additional_headers=headers, compression=None) as line:
        line.send(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}))
        assert json.loads(line.recv(10))["result"]
        with pytest.raises(websockets.exceptions.ConnectionClosed):
            line.recv(15)
    assert post(house, token).status_code == 401


@pytest.mark.req("SV-11.g", "SV-33.a")
def test_a_new_key_is_fetched_once_and_unknown_ones_do_not_flood_the_issuer(tmp_path: Path) -> None:
    with run_issuer() as own, serve_oauth(tmp_path, own.url) as served:
        before = own.fetches
        assert post(served, token_for(own, served)).status_code == 200
        assert own.fetches == before + 1, "nothing is fetched before it is needed"
        for number in range(30):
            assert post(served, token_for(own, served, header={"kid": f"made up {number}"})).status_code == 401
        assert own.fetches <= before + 2
        own.control(rotate="ES256")
        rotated = token_for(own, served)
        until("the new key is known", lambda: post(served, rotated).status_code == 200, 30)
        assert own.fetches <= before + 4


@pytest.mark.req("SV-11.g")
def test_an_issuer_that_is_down_is_no_fault_of_the_token_and_holds_nobody_up(tmp_path: Path) -> None:
    with run_issuer() as own, serve_oauth(tmp_path, own.url) as served:
        own.control(down=True)
        token = token_for(own, served)
        answer = post(served, token)
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        assert post(served, served.token).status_code == 200, "the user of this machine needs no issuer"
        own.control(down=False)
        until("the keys are there", lambda: post(served, token).status_code == 200, 30)
        own.control(down=True)
        assert post(served, token_for(own, served, "dora")).status_code == 200, "known keys are enough"


@pytest.mark.req("SV-11.g")
def test_a_claim_names_the_tenant_and_no_token_stands_in_the_state_folder(tmp_path: Path) -> None:
    with run_issuer() as own, serve_oauth(tmp_path, own.url, tenant_claim="org") as served:
        ann = token_for(own, served, "ann", org="acme", email="ann@acme.example")
        ben = token_for(own, served, "ben", org="acme")
        other = token_for(own, served, "ann", org="zeta")
        with RemoteAgent(served.url, ann) as agent:
            agent.call("file_write", **WRITE).ok()
        with RemoteAgent(served.url, ben) as agent:
            agent.call("file_read", project="notes", path="/a.txt").ok()
        with RemoteAgent(served.url, other) as agent:
            assert agent.call("file_read", project="notes", path="/a.txt").code == "NOT_FOUND"
        assert post(served, token_for(own, served, "ann")).status_code == 401
    written = b"".join(path.read_bytes() for path in served.state.rglob("*") if path.is_file())
    for token in (ann, ben, other):
        assert token.rpartition(".")[2].encode() not in written
