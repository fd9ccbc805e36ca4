"""The call log as an entry: the person's of all calls on this machine, and behind /api/logs a tenant's of its own."""

from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field

from holdfast.app import App
from holdfast.auth.context import CallerKind
from holdfast.call import Call
from holdfast.clock import format_utc
from holdfast.observe.model import CallFilter, CallRecord, CallStatus
from holdfast.text.budget import encode_cursor, read_position
from holdfast.text.display import quantity
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Arguments, Effect, Group, tool
from holdfast.tools.validate import parse_moment

_CURSOR = "call"


class ListCalls(Arguments):
    """Arguments of list_calls; every condition that is given holds."""

    tool: str = Field("", max_length=64, description="Only calls of this tool.")
    status: CallStatus | None = Field(
        None, description="Only calls that ended so: ok, error, cancelled or input_required."
    )
    code: str = Field("", max_length=64, description="Only calls that ended with this error code.")
    client: str = Field("", max_length=100, description="Only calls of the client with this name.")
    kind: CallerKind | None = Field(None, description="Only calls of agents, of the person, or of panels.")
    since: str | None = Field(None, description="Only calls that began at this time or later, RFC 3339.")
    until: str | None = Field(None, description="Only calls that began before this time, RFC 3339.")
    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of calls.")
    offset: int = Field(0, ge=0, le=10_000_000, description="Skip so many of the calls, from the cursor on.")
    with_total: bool = Field(False, description="Also count all calls that match, from the cursor on.")
    cursor: str | None = Field(None, description="Continue a list: the cursor of its last page, or its start.")


class CallFacts(BaseModel):
    """One call."""

    position: int = Field(description="its place in the log: a later call has a higher one")
    id: str
    at: str = Field(description="when it began")
    tool: str
    kind: str = Field(description="agent, person or panel")
    client: str
    client_version: str
    identity: str
    tenant: str = Field(description="hash of the caller's key, or local")
    door: str
    status: str
    code: str = Field(description="the error's code, empty for none")
    duration_ms: float
    cost: float
    parameters: dict[str, Any] = Field(description="what is recorded of the arguments: never content or queries")

    @classmethod
    def of(cls, position: int, record: CallRecord) -> "CallFacts":
        """Return a recorded call in the form of the answer."""
        return cls(
            position=position,
            id=record.id,
            at=format_utc(record.started_at, "milliseconds"),
            tool=record.tool,
            kind=record.kind,
            client=record.client_name,
            client_version=record.client_version,
            identity=record.identity,
            tenant=record.tenant,
            door=record.door,
            status=record.status.value,
            code=record.code,
            duration_ms=record.duration_ms,
            cost=record.cost,
            parameters=dict(record.parameters or {}),
        )


class ListCallsAnswer(BaseModel):
    """A page of calls, newest first."""

    calls: list[CallFacts]
    cursor: str | None = Field(None, description="of the next page, when there is one")
    start: str | None = Field(
        None, description="cursor of this page's first call; with it and an offset later calls move none"
    )
    total: int | None = Field(
        None, description="calls that match, from the cursor that was given on; when it was asked for"
    )
    is_recording: bool = Field(description="false when the call log is switched off")


@tool(
    "list_calls",
    group=Group.CORE,
    effect=Effect.READ,
    title="Call log",
    output=ListCallsAnswer,
    audience=CallerKind.PERSON,
    is_recorded=False,
)
def list_calls(app: App, call: Call, args: ListCalls) -> Answer:
    """List the calls that were made, newest first: when, which tool, by whom, how it ended and how long it took."""
    call_filter = CallFilter(
        tool=args.tool,
        status=args.status or "",
        code=args.code,
        client=args.client,
        kind=args.kind or "",
        since=parse_moment("since", args.since),
        until=parse_moment("until", args.until),
        before=read_position(args.cursor, _CURSOR, "list_calls"),
    )
    tenant = call.caller.auth.apikey_hash
    rows = app.observer.find_calls(tenant, call_filter, args.limit + 1, args.offset)
    page = [CallFacts.of(entry.position, entry.record) for entry in rows[: args.limit]]
    cursor = encode_cursor({_CURSOR: page[-1].position}) if len(rows) > args.limit else None
    start = encode_cursor({_CURSOR: page[0].position + 1}) if page else None
    if page and not args.offset:
        call_filter = replace(call_filter, before=page[0].position + 1)  # calls that end meanwhile are not counted
    total = app.observer.count_calls(tenant, call_filter) if args.with_total else None
    lines = [
        f"{facts.at} {facts.tool} {facts.status}{f' {facts.code}' if facts.code else ''} {facts.duration_ms:.0f} ms"
        f"{f' {facts.client}' if facts.client else ''}"
        for facts in page
    ]
    data = ListCallsAnswer(calls=page, cursor=cursor, start=start, total=total, is_recording=app.observer.is_recording)
    return Answer.of("\n".join([f"{quantity(len(page), 'call')}.", *lines]), data=data)
