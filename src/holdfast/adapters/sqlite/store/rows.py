"""Runs named statements on a store file, and converts times between Python and their stored text."""

import sqlite3
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from holdfast.adapters.statements import named_statements
from holdfast.clock import format_utc

STATEMENTS = named_statements(__package__, "store.sql")


def run(connection: sqlite3.Connection, name: str, parameters: Mapping[str, Any]) -> sqlite3.Cursor:
    """Run a named statement."""
    return connection.execute(STATEMENTS[name], parameters)


def fetch_rows(connection: sqlite3.Connection, name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all rows of a named statement by column; columns that end in `_at` become datetimes."""
    cursor = run(connection, name, parameters)
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor]
    for column in (name for name in names if name.endswith("_at")):
        for row in rows:
            row[column] = parse_time(row[column])
    return rows


def stored_values(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with each datetime as the text that is stored."""
    return {name: format_utc(value) if isinstance(value, datetime) else value for name, value in parameters.items()}


def parse_time(stored: str | None) -> datetime | None:
    """Return a stored time, None where there is none."""
    return None if stored is None else datetime.fromisoformat(stored)
