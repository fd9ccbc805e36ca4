"""The time of day, in the one form that is stored and shown."""

from datetime import UTC, datetime


def utc_now() -> str:
    """Return the time as RFC 3339 in UTC with microseconds, so that text order is time order."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
