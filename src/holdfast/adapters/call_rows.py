"""Recorded calls as rows, for the tables that keep them in each database."""

import json
from datetime import datetime
from typing import Any

from pydantic_core import to_json

from holdfast.observe.model import CallFilter, CallRecord, CallStatus, LoggedCall
from holdfast.observe.redact import NOT_RECORDED

_MAX_PARAMETERS_CHARS = 8_000


def call_row(record: CallRecord, started_at: datetime | str) -> dict[str, Any]:
    """Return a record as parameters of `save_call`; the time is in the form of the database."""
    parameters = to_json(record.parameters, inf_nan_mode="constants").decode() if record.parameters else "{}"
    if len(parameters) > _MAX_PARAMETERS_CHARS:
        parameters = json.dumps({NOT_RECORDED: f"{len(parameters)} characters"})
    return {
        "apikey_hash": record.tenant,
        "id": record.id,
        "tool": record.tool,
        "kind": record.kind,
        "identity": _storable(record.identity),
        "client_name": _storable(record.client_name),
        "client_version": _storable(record.client_version),
        "door": record.door,
        "started_at": started_at,
        "duration_ms": record.duration_ms,
        "status": record.status.value,
        "code": record.code,
        "cost": record.cost,
        "parameters": parameters,
    }


def read_call(row: Any, started_at: datetime) -> LoggedCall:
    """Return a row of `find_calls`, whose time was parsed."""
    record = CallRecord(
        id=row["id"],
        tool=row["tool"],
        kind=row["kind"],
        tenant=row["apikey_hash"].rstrip(),
        identity=row["identity"],
        client_name=row["client_name"],
        client_version=row["client_version"],
        door=row["door"],
        started_at=started_at,
        duration_ms=row["duration_ms"],
        status=CallStatus(row["status"]),
        code=row["code"],
        cost=row["cost"],
        parameters=json.loads(row["parameters"]),
    )
    return LoggedCall(row["position"], record)


def filter_parameters(tenant: str, call_filter: CallFilter) -> dict[str, Any]:
    """Return the parameters of `count_calls`, and of `find_calls` but for its page."""
    return {
        "apikey_hash": tenant,
        "tool": call_filter.tool,
        "status": call_filter.status,
        "code": call_filter.code,
        "client": call_filter.client,
        "kind": call_filter.kind,
        "since": call_filter.since,
        "until": call_filter.until,
        "older_than": call_filter.before,
    }


def _storable(text: str) -> str:
    """Return a text without what a database cannot hold: NUL and lone surrogates, which clients may declare as names."""
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\0", "").encode("utf-8", "replace").decode()
