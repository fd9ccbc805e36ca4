"""Runs named statements of search on a PostgreSQL connection, and translates its errors."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg_pool import PoolTimeout

from holdfast.adapters.postgres.store.store import Connection, Cursor
from holdfast.adapters.statements import named_statements
from holdfast.errors import ResourceBusy
from holdfast.search.ports import IndexFault

STATEMENTS = named_statements(__package__, "search.sql")


def run(connection: Connection, name: str, parameters: Mapping[str, Any]) -> Cursor:
    """Run a named statement."""
    return connection.execute(STATEMENTS[name], parameters)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise IndexFault for an error of the database, without its message, which may hold content of files."""
    try:
        yield
    except (psycopg.Error, PoolTimeout, ResourceBusy) as error:
        raise IndexFault(f"the database could not be searched or indexed ({type(error).__name__})") from None
