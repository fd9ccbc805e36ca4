"""Times as text: one form, whatever zone they come in."""

from datetime import UTC, datetime, timedelta, timezone

from holdfast.clock import format_timestamp, format_utc, utc_clock


def test_a_time_of_another_zone_is_written_in_utc() -> None:
    at = datetime(2026, 1, 31, 14, 0, 0, 5, timezone(timedelta(hours=2)))
    assert format_utc(at) == "2026-01-31T12:00:00.000005Z"


def test_text_order_is_time_order_even_at_a_whole_second() -> None:
    whole = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert format_utc(whole) < format_utc(whole + timedelta(microseconds=1)) < format_utc(whole + timedelta(seconds=1))


def test_a_timestamp_is_cut_off_at_the_part_that_is_asked_for() -> None:
    assert format_timestamp(0.9996, "milliseconds") == "1970-01-01T00:00:00.999Z"
    assert format_timestamp(0.9996, "seconds") == "1970-01-01T00:00:00Z"


def test_the_clock_is_in_utc() -> None:
    assert utc_clock().tzinfo is UTC
