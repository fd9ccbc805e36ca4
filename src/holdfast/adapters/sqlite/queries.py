"""Reads the named statements of queries.sql."""

from functools import cache
from importlib.resources import files

_MARK = "-- name: "


@cache
def statements() -> dict[str, str]:
    """Return every statement by its name; a name used twice is an error."""
    text = files(__package__).joinpath("queries.sql").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for part in text.split(_MARK)[1:]:
        name, _, statement = part.partition("\n")
        if name.strip() in found:
            raise ValueError(f"two statements are called {name.strip()!r}")
        found[name.strip()] = statement.strip().rstrip(";")
    return found
