"""Named statements of search on a PostgreSQL connection, and their parameters."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg_pool import PoolTimeout

from holdfast.adapters.postgres.store.rows import Connection, Cursor
from holdfast.adapters.statements import named_statements
from holdfast.errors import ResourceBusy
from holdfast.search.model import Scope
from holdfast.search.ports import IndexFault

STATEMENTS = named_statements(__package__, "search.sql")


def run(connection: Connection, name: str, parameters: Mapping[str, Any]) -> Cursor:
    """Run a named statement."""
    return connection.execute(STATEMENTS[name], parameters)


@contextmanager
def told() -> Iterator[None]:
    """Turn what goes wrong in the database into IndexFault; its text may hold values and is dropped."""
    try:
        yield
    except (psycopg.Error, PoolTimeout, ResourceBusy) as error:
        raise IndexFault(f"the database could not be searched or indexed ({type(error).__name__})") from None


def within(tenant: str, scope: Scope) -> dict[str, Any]:
    """Return the parameters of a scope."""
    return {"apikey_hash": tenant, "project": scope.project, "low": scope.span.low, "high": scope.span.high}


def listed(values: Sequence[object]) -> str:
    """Return values as one parameter."""
    return json.dumps(list(values))
