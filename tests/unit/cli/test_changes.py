"""What the commands on changes take: times and sizes as a person writes them."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.cli.commands.changes.changes import parse_moment, parse_size
from holdfast.errors import InvalidArgument


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give a process whose time zone is one hour ahead of UTC in winter."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31", "2026-01-30T23:00:00.000000Z"),
        ("2026-01-31T14:30", "2026-01-31T13:30:00.000000Z"),
        (" 2026-01-31 14:30 ", "2026-01-31T13:30:00.000000Z"),
        ("2026-01-31T14:30:00Z", "2026-01-31T14:30:00.000000Z"),
        ("2026-01-31T14:30:00-08:00", "2026-01-31T22:30:00.000000Z"),
    ],
)
def test_a_date_is_one_of_the_persons_time_zone(text: str, moment: str) -> None:
    assert parse_moment(text, "--since") == moment


@pytest.mark.parametrize(
    ("text", "ago"),
    [("90s", 90), ("10m", 600), ("10 min", 600), ("2h", 7200), ("3D", 259_200), ("1w", 604_800)],
)
def test_a_length_of_time_is_counted_back_from_the_present(text: str, ago: int) -> None:
    moment = datetime.fromisoformat(parse_moment(text, "--since") or "")
    assert abs(datetime.now(UTC) - timedelta(seconds=ago) - moment) < timedelta(seconds=30)


@pytest.mark.parametrize("text", ["", "soon", "10", "10x", "-5m", "2026-13-01", "999999w", "1e3m"])
def test_any_other_text_is_refused_by_the_name_of_its_option(text: str) -> None:
    with pytest.raises(InvalidArgument, match="--until takes a time"):
        parse_moment(text, "--until")


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("0", 0), ("500000", 500_000), ("50MB", 50 << 20), ("1.5 GiB", 3 << 29), ("2k", 2048)]
)
def test_a_size_may_have_a_unit(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize("text", ["", "many", "-1", "1XB"])
def test_any_other_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="--to-bytes takes a size"):
        parse_size(text)
