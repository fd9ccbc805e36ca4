"""Pure: the classes of tools with a limit each, and the parser for limits on the command line."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from holdfast.errors import InvalidArgument


class Rate(StrEnum):
    """The classes of tools; each has its own limit of calls a minute."""

    READ = "read"
    WRITE = "write"
    SEARCH = "search"


PerMinute = Mapping[Rate, int]
"""Calls a minute by class. A class that is not there has no limit of its own; 0 means that there is none at all."""

MAX_PER_MINUTE = 1_000_000


def parse_limits(texts: Iterable[str]) -> dict[Rate, int]:
    """Parse limits such as `read=600`. InvalidArgument names the one that cannot be parsed."""
    limits: dict[Rate, int] = {}
    for text in texts:
        name, _, calls = text.partition("=")
        if name not in set(Rate) or not (calls.isascii() and calls.isdigit()) or int(calls) > MAX_PER_MINUTE:
            raise InvalidArgument(
                f"a limit is CLASS=CALLS, calls a minute up to {MAX_PER_MINUTE}, with a class of "
                f"{', '.join(Rate)}: {text!r}"
            )
        limits[Rate(name)] = int(calls)
    return limits
