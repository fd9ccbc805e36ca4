"""Rows of a store file as the store's own values, and back."""

import sqlite3
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from holdfast.adapters.statements import named_statements

STATEMENTS = named_statements(__package__, "store.sql")


def run(connection: sqlite3.Connection, name: str, parameters: Mapping[str, Any]) -> sqlite3.Cursor:
    """Run a named statement."""
    return connection.execute(STATEMENTS[name], parameters)


def table(connection: sqlite3.Connection, name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all rows of a named query by column, times as times."""
    cursor = run(connection, name, parameters)
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor]
    for time in (name for name in names if name.endswith("_at")):
        for row in rows:
            row[time] = time_of(row[time])
    return rows


def time_of(stored: str | None) -> datetime | None:
    """Return a stored time, None where there is none."""
    return None if stored is None else datetime.fromisoformat(stored)


time_at = datetime.fromisoformat
"""Returns a stored time that is there."""
