"""Pure: the caller of a tool: tenant, kind, and the directories of its connection."""

from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.secret import Secret

LOCAL_TENANT = "local"


class CallerKind(StrEnum):
    """Who calls; each tool is for exactly one kind."""

    AGENT = "agent"
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class AuthContext:
    """The authenticated tenant. `user_identity` is for display and never authorises.

    `model_key` is the caller's own key for models behind search, None when it sent none.
    """

    apikey_hash: str
    user_identity: str
    model_key: Secret | None = field(default=None, compare=False, repr=False)

    @property
    def is_local(self) -> bool:
        """Return whether this is the one user of this machine, who alone has folder tools."""
        return self.apikey_hash == LOCAL_TENANT


LOCAL_USER = AuthContext(apikey_hash=LOCAL_TENANT, user_identity="local user")


@dataclass(frozen=True, slots=True)
class Caller:
    """One caller for the length of a connection or an HTTP request.

    `roots` are the directories, as given, that the connection was opened with; empty means no folder tools.
    A relative root is resolved against `cwd`. `client` says that a command of the person calls, and is empty
    for any other program; it is for display and never authorises.
    """

    auth: AuthContext
    kind: CallerKind = CallerKind.AGENT
    roots: tuple[str, ...] = ()
    cwd: str = "/"
    client: str = field(default="", compare=False)
