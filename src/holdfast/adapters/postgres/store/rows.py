"""Runs named statements on a PostgreSQL connection, for one tenant at a time."""

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.rows import DictRow

from holdfast.adapters.statements import named_statements

Connection = psycopg.Connection[DictRow]
Cursor = psycopg.Cursor[DictRow]

STATEMENTS = named_statements(__package__, "store.sql")


def run(connection: Connection, name: str, parameters: Mapping[str, Any]) -> Cursor:
    """Run a named statement; in a pipeline the answer comes when it is fetched."""
    return connection.execute(STATEMENTS[name], parameters)


def set_tenant(connection: Connection, tenant: str) -> None:
    """Set the tenant that row-level security lets through, until the transaction ends."""
    connection.execute("SELECT set_config('holdfast.apikey_hash', %(tenant)s, true)", {"tenant": tenant})
