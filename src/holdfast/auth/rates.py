"""Pure: the classes of tools that are counted apart, and how a limit on one of them is written."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from holdfast.errors import InvalidArgument


class Rate(StrEnum):
    """What a call costs the server, roughly: each class has its own budget a minute."""

    READ = "read"
    WRITE = "write"
    SEARCH = "search"


PerMinute = Mapping[Rate, int]
"""Calls a minute by class. A class that is not there has no limit of its own; 0 means that there is none at all."""

MAX_PER_MINUTE = 1_000_000


def parse_limits(texts: Iterable[str]) -> dict[Rate, int]:
    """Return what `read=600` and the like say. InvalidArgument names the text that says nothing."""
    found: dict[Rate, int] = {}
    for text in texts:
        name, _, number = text.partition("=")
        if name not in set(Rate) or not (number.isascii() and number.isdigit()) or int(number) > MAX_PER_MINUTE:
            raise InvalidArgument(
                f"a limit is CLASS=CALLS, calls a minute up to {MAX_PER_MINUTE}, with a class of "
                f"{', '.join(Rate)}: {text!r}"
            )
        found[Rate(name)] = int(number)
    return found
