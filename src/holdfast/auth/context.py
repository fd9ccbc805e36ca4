"""Pure: the caller of a tool: tenant, kind, and the directories of its connection."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from holdfast.secret import Secret

LOCAL_TENANT = "local"
PANELS_EXTENSION = "io.modelcontextprotocol/ui"
PANEL_MEDIA_TYPE = "text/html;profile=mcp-app"
_MAX_CLIENT_CHARS = 100


class CallerKind(StrEnum):
    """Who calls; each tool is for exactly one kind."""

    AGENT = "agent"
    PERSON = "person"
    PANEL = "panel"
    """A page that the client of an agent shows to its user; it comes through that client, and its token decides."""


class Door(StrEnum):
    """The ways into the server."""

    SOCKET = "socket"
    """The Unix socket in the state folder, to relays and commands of this user."""
    STDIO = "stdio"
    """The server's own pipes, to the client that started it."""
    HTTP = "http"
    WEBSOCKET = "websocket"


_OWN_DOORS = frozenset({Door.SOCKET, Door.STDIO})


@dataclass(frozen=True, slots=True)
class Grant:
    """What an access token permits, and until when, in seconds since 1970."""

    expires_at: float
    may_read: bool = True
    may_write: bool = True


@dataclass(frozen=True, slots=True)
class AuthContext:
    """The authenticated tenant. `user_identity` is for display and never authorises.

    `apikey_hash` names the tenant: the hash of its first key. `key_hash` is that of the key that was shown, empty when it
    is the same. `model_key` is the caller's own key for models behind search, None when it sent none. `grant` is what its
    access token permits, None for a key, which permits everything that its tenant may do.
    """

    apikey_hash: str
    user_identity: str
    model_key: Secret | None = field(default=None, compare=False, repr=False)
    key_hash: str = field(default="", compare=False, repr=False)
    grant: Grant | None = field(default=None, compare=False)

    @property
    def shown_key_hash(self) -> str:
        """Return the hash of the key that this caller showed, by which its revocation is seen."""
        return self.key_hash or self.apikey_hash

    @property
    def is_local(self) -> bool:
        """Return whether this is the one user of this machine, who alone has folder tools."""
        return self.apikey_hash == LOCAL_TENANT

    @property
    def may_write(self) -> bool:
        """Return whether its token lets it change anything."""
        return self.grant is None or self.grant.may_write


LOCAL_USER = AuthContext(apikey_hash=LOCAL_TENANT, user_identity="local user")
METRICS_READER = AuthContext(apikey_hash="metrics", user_identity="metrics")
"""Whoever holds the key to the metrics: a tenant of nothing."""


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """The program that calls, by the name and version it gave itself; for display, and never authorises.

    `is_command` marks a command of the person, who was asked there. `shows_panels` says that it declared to show pages of
    ours to its user, and to keep from its model what only they may have.
    """

    name: str = ""
    version: str = ""
    is_command: bool = False
    shows_panels: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


UNKNOWN_CLIENT = ClientInfo()


@dataclass(frozen=True, slots=True)
class Restrictions:
    """What the client of one connection gave up when it opened it; they narrow what the settings permit.

    With `review` every change of a local file waits for the person. `groups` are the tool groups that are offered,
    None for all of them.
    """

    read_only: bool = False
    review: bool = False
    groups: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """One caller for the length of a connection or an HTTP request.

    `roots` are the directories, as given, that the connection was opened with; empty means no folder tools.
    `named_roots` are those that a person named, where the client may have narrowed them.
    A relative root is resolved against `cwd`. `connection` tells the local connections apart that share the server.
    `door` is where the caller came in, None for the server's own work.
    """

    auth: AuthContext
    kind: CallerKind = CallerKind.AGENT
    roots: tuple[str, ...] = ()
    cwd: str = "/"
    client: ClientInfo = field(default=ClientInfo(), compare=False)
    restrictions: Restrictions = Restrictions()
    connection: str = field(default="", compare=False)
    door: Door | None = field(default=None, compare=False)
    named_roots: tuple[str, ...] = ()

    @property
    def share(self) -> str:
        """Return whose part of the server a call uses: the tenant's, or that of one local connection."""
        return f"local/{self.connection}" if self.auth.is_local else self.auth.apikey_hash

    @property
    def has_own_client(self) -> bool:
        """Return whether the client is one that this user started: it came through a relay or through pipes.

        At a port anything may be the client that holds a token, also the agent itself.
        """
        return self.door in _OWN_DOORS


def declare_client(caller: Caller, declared: object, capabilities: object = None) -> Caller:
    """Return the caller with what its MCP client declared: name and version, as bounded printable texts, and panels."""
    client = replace(caller.client, shows_panels=_declares_panels(capabilities))
    if isinstance(declared, Mapping):
        name, version = _printable(declared.get("name")), _printable(declared.get("version"))
        client = replace(client, name=name, version=version)
    return replace(caller, client=client)


def _declares_panels(capabilities: object) -> bool:
    """Return whether a client's capabilities have the extension of panels, with the media type of ours."""
    extensions = capabilities.get("extensions") if isinstance(capabilities, Mapping) else None
    panels = extensions.get(PANELS_EXTENSION) if isinstance(extensions, Mapping) else None
    media_types = panels.get("mimeTypes") if isinstance(panels, Mapping) else None
    return isinstance(media_types, list | tuple) and PANEL_MEDIA_TYPE in media_types


def _printable(text: object) -> str:
    """Return the printable characters of a declared name, empty for anything that is no text."""
    return "".join(char for char in text[:_MAX_CLIENT_CHARS] if char.isprintable()) if isinstance(text, str) else ""
