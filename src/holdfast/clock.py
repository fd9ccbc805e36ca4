"""The current time and its one text form: RFC 3339 in UTC, whose text order is time order."""

from datetime import UTC, datetime, timedelta
from typing import Literal

Timespec = Literal["seconds", "milliseconds", "microseconds"]


def utc_clock() -> datetime:
    """Return the current time, in UTC; a clock to pass where tests set the time."""
    return datetime.now(UTC)


def format_utc(at: datetime, timespec: Timespec = "microseconds") -> str:
    """Return a time as RFC 3339 in UTC, as in `2026-01-31T12:00:00.000000Z`; the parts below `timespec` are cut off."""
    return at.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def format_timestamp(seconds: float, timespec: Timespec = "microseconds") -> str:
    """Return a POSIX timestamp in the same form."""
    return format_utc(datetime.fromtimestamp(seconds, UTC), timespec)


def utc_now() -> str:
    """Return the current time as text."""
    return format_utc(datetime.now(UTC))


def seconds_since(at: str) -> float:
    """Return how many seconds ago a time in text form was, 0 for one that is still to come."""
    return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds())


def utc_in(seconds: float) -> str:
    """Return the time that many seconds from now as text."""
    return format_utc(datetime.now(UTC) + timedelta(seconds=seconds))


def utc_days_ago(days: float) -> str:
    """Return the time that many days ago as text."""
    return format_utc(datetime.now(UTC) - timedelta(days=days))


def format_age(at: str, now: datetime) -> str:
    """Return how long ago a time in text form was, in its largest unit, as in `5 minutes ago`."""
    seconds = max(0, int((now - datetime.fromisoformat(at)).total_seconds()))
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            count = seconds // length
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "just now"
