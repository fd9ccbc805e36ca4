"""Reads the named statements of a .sql file; no other text ever becomes SQL."""

from functools import cache
from importlib.resources import files
from typing import LiteralString

_MARK = "-- name: "


@cache
def named_statements(package: str, file: str) -> dict[str, LiteralString]:
    """Return every statement of a package's file by its name; a name used twice is an error."""
    text = files(package).joinpath(file).read_text(encoding="utf-8")
    statements: dict[str, LiteralString] = {}
    for part in text.split(_MARK)[1:]:
        name, _, statement = part.partition("\n")
        if name.strip() in statements:
            raise ValueError(f"two statements of {file} are called {name.strip()!r}")
        statements[name.strip()] = statement.strip().rstrip(";")
    return statements
