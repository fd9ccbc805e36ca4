"""Erases a tenant from PostgreSQL: every table that has its rows is found in the catalogue, emptied of them and vacuumed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from holdfast.errors import PermissionDenied
from holdfast.store.erase import Trace

_TABLES = """
SELECT c.relname FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
WHERE a.attname = 'apikey_hash' AND NOT a.attisdropped AND c.relkind IN ('r', 'p') AND pg_table_is_visible(c.oid)
ORDER BY c.relname
"""

_STATISTICS = "pg_statistic"
"""The planner's samples of values: ANALYZE takes new ones, and the old ones go with the vacuum, as from any table. A role
that owns neither database nor server is told so by a warning of PostgreSQL's, and autovacuum does it later.
"""


class PostgresEraser:
    """Implements `holdfast.store.erase.TenantEraser`, as the role of the URL, which must own the tables.

    With `rewrites` the tables' files are written anew, for which every other use of them waits; without it the space
    of the rows is free, and is overwritten as it is used again.
    """

    def __init__(self, url: str, *, rewrites: bool = False) -> None:
        self._url = url
        self._rewrites = rewrites

    def count(self, tenant: str) -> Mapping[str, int]:
        """Return how many rows of the tenant each table holds."""
        with self._connect() as connection, connection.transaction():
            _set_tenant(connection, tenant)
            return {table: self._count(connection, table, tenant) for table in _tables(connection)}

    def delete(self, tenant: str) -> None:
        """Delete every row in one transaction, then vacuum the tables."""
        with self._connect() as connection:
            with connection.transaction():
                _set_tenant(connection, tenant)
                tables = _tables(connection)
                for table in tables:
                    connection.execute(
                        sql.SQL("DELETE FROM {} WHERE apikey_hash = %s").format(sql.Identifier(table)), [tenant]
                    )
            command = sql.SQL("VACUUM (FULL, ANALYZE) {}" if self._rewrites else "VACUUM (ANALYZE) {}")
            for table in (*tables, _STATISTICS):
                connection.execute(command.format(sql.Identifier(table)))

    def find_traces(self, tenant: str) -> list[Trace]:
        """Count the rows of the tenant that each table has, with its size."""
        with self._connect() as connection, connection.transaction():
            _set_tenant(connection, tenant)
            traces = []
            for table in _tables(connection):
                query = sql.SQL("SELECT pg_total_relation_size({}::regclass)").format(sql.Literal(table))
                (size,) = connection.execute(query).fetchone() or (0,)
                traces.append(Trace(table, size, self._count(connection, table, tenant)))
            return traces

    def close(self) -> None:
        """Close nothing: each step has a connection of its own."""

    def _count(self, connection: psycopg.Connection[Any], table: str, tenant: str) -> int:
        query = sql.SQL("SELECT count(*) FROM {} WHERE apikey_hash = %s").format(sql.Identifier(table))
        (count,) = connection.execute(query, [tenant]).fetchone() or (0,)
        return int(count)

    @contextmanager
    def _connect(self) -> Iterator[psycopg.Connection[Any]]:
        try:
            with psycopg.connect(self._url, autocommit=True, application_name="holdfast") as connection:
                yield connection
        except psycopg.errors.InsufficientPrivilege as error:
            raise PermissionDenied(
                f"The role of DATABASE_URL cannot erase a tenant: {error.diag.message_primary}. Use the owner of the tables, "
                "the role that ran `holdfast migrate`."
            ) from None


def _set_tenant(connection: psycopg.Connection[Any], tenant: str) -> None:
    """Let row-level security, which binds the owner too, show the rows of the tenant until the transaction ends."""
    connection.execute("SELECT set_config('holdfast.apikey_hash', %s, true)", [tenant])


def _tables(connection: psycopg.Connection[Any]) -> list[str]:
    """Return every table with rows of tenants, by the catalogue itself, so that none is forgotten."""
    return [name for (name,) in connection.execute(_TABLES).fetchall()]
