"""The time of day, in the one form that is stored and shown."""

from datetime import UTC, datetime, timedelta


def utc_now() -> str:
    """Return the time as RFC 3339 in UTC with microseconds, so that text order is time order."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def utc_in(seconds: float) -> str:
    """Return a time that many seconds after now, in the same form."""
    future = datetime.now(UTC) + timedelta(seconds=seconds)
    return future.isoformat(timespec="microseconds").replace("+00:00", "Z")


def utc_days_ago(days: float) -> str:
    """Return a time that many days before now, in the same form."""
    past = datetime.now(UTC) - timedelta(days=days)
    return past.isoformat(timespec="microseconds").replace("+00:00", "Z")
