"""Pure: a call as it is recorded, and how recorded calls are asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

UNKNOWN_TOOL = "(unknown)"
"""The name recorded for a tool that does not exist: what was asked for is any text of the caller's."""


class CallStatus(StrEnum):
    """How a call ended."""

    OK = "ok"
    ERROR = "error"
    CANCELLED = "cancelled"
    """Given up by the caller, or its client went away."""
    INPUT_REQUIRED = "input_required"
    """It ended with a question to the person, and is made again with the reply."""


class CallerLabels(NamedTuple):
    """Who calls, in the words of a log."""

    tenant: str
    identity: str
    kind: str
    client_name: str
    client_version: str
    door: str


class CallRecord(NamedTuple):
    """One row of the call log. `code` is the error's, empty for a call that succeeded; `parameters` are redacted.

    `tenant` is the hash of the caller's key, or the name of the local tenant.
    """

    id: str
    tool: str
    kind: str
    tenant: str
    identity: str
    client_name: str
    client_version: str
    door: str
    started_at: datetime
    duration_ms: float
    status: CallStatus
    code: str = ""
    cost: float = 0.0
    parameters: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class CallFilter:
    """Which calls are wanted: those that match every value that is not empty, newest first.

    `before` is the position of a row; older rows than that one are wanted.
    """

    tool: str = ""
    status: str = ""
    code: str = ""
    client: str = ""
    kind: str = ""
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """A recorded call and its position in its log."""

    position: int
    record: CallRecord
