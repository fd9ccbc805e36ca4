"""Defines what the console's API takes and answers beside the entries."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from holdfast.auth.context import CallerKind
from holdfast.tools.registry import Tool


class SignInRequest(BaseModel):
    """How a browser signs in: the person by the token of a link, a tenant by its key."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    link: str | None = Field(None, max_length=200, description="The token of the link that `holdfast open` made.")
    api_key: str | None = Field(None, max_length=1_000, repr=False, description="The tenant's key.")


class Me(BaseModel):
    """Who is signed in, and what this server is."""

    kind: Literal["person", "tenant"]
    identity: str
    server_id: str = Field(description="another one after each start of the server")
    version: str
    mode: str = Field(description="local, listed, open or oauth")
    read_only: bool
    roots: list[str] = Field(description="directories that the person's calls of agents' tools work in")
    home: str = Field(description="home folder of the person, whose paths are shown with ~; empty for a tenant")
    groups: list[str] = Field(description="groups with tools for this caller")


class SignInAnswer(BaseModel):
    """A session that was opened; its cookie came along."""

    key: str = Field(description="the second key, for the header X-Holdfast-Key")
    me: Me


class SessionFacts(BaseModel):
    """One browser that is signed in."""

    id: str
    kind: Literal["person", "tenant"]
    created_at: str
    last_used_at: str
    user_agent: str
    is_this: bool


class SessionList(BaseModel):
    """The open sessions of the person, or of one tenant."""

    sessions: list[SessionFacts]


class SessionEnd(BaseModel):
    """Which session is to end."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(max_length=64)


class Done(BaseModel):
    """What was asked for has happened."""

    ok: Literal[True] = True


class ToolFacts(BaseModel):
    """One entry that the caller may call."""

    name: str
    title: str
    description: str
    group: str
    audience: CallerKind
    effect: Literal["read", "add", "change", "destroy"]
    idempotent: bool
    listed: bool
    arguments: dict[str, Any] = Field(alias="schema", description="JSON Schema of the arguments")
    output_schema: dict[str, Any] | None = None

    @classmethod
    def of(cls, entry: Tool) -> "ToolFacts":
        """Return an entry of the registry in the form of the answer."""
        return cls(
            name=entry.name,
            title=entry.title,
            description=entry.description,
            group=entry.group.value,
            audience=entry.audience,
            effect=entry.effect.value,
            idempotent=entry.idempotent,
            listed=entry.listed,
            schema=entry.input_schema,
            output_schema=entry.output_schema,
        )


class ToolList(BaseModel):
    """Every entry that the caller may call."""

    tools: list[ToolFacts]


class ContentBlock(BaseModel):
    """One content block of an answer, as an agent gets it."""

    type: Literal["text", "image", "audio", "resource"]
    text: str | None = None
    data: str | None = Field(None, description="base64")
    mimeType: str | None = None  # noqa: N815 - the protocol's name
    resource: dict[str, Any] | None = None


class Fault(BaseModel):
    """An error: what was wrong, and whether the same request may succeed later. Further members depend on the code."""

    model_config = ConfigDict(extra="allow")

    code: str
    message: str
    retryable: bool


class FaultAnswer(BaseModel):
    """The body of every answer with a status of 400 or more."""

    error: Fault
