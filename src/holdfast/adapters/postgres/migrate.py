"""Migrates a PostgreSQL database to the current schema; any number of instances may do so at once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any, LiteralString, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict

from holdfast.errors import InvalidArgument, PermissionDenied, ResourceBusy, StorageDamaged

_LOCK_KEY = 0x686F6C6466617374
"""The bytes of 'holdfast': the advisory lock that only migrations take."""

_TABLE = """
CREATE TABLE IF NOT EXISTS mcp_migrations (
    number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now()
)
"""


class Migration(NamedTuple):
    """One numbered .sql file."""

    number: int
    name: str
    sql: LiteralString


def load_migrations() -> list[Migration]:
    """Return every migration in order."""
    folder = files(f"{__package__}.migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [
        Migration(int(name.partition("_")[0]), name.removesuffix(".sql"), folder.joinpath(name).read_text("utf-8"))
        for name in names
    ]


def migrate(url: str, report: Callable[[int, int, str], None] | None = None) -> list[str]:
    """Run the missing migrations, all of them or none, and return their names; a second run does nothing.

    `report` is called before each with how many have run, how many there are, and its name.
    The role of the URL becomes the owner of the tables and a member of holdfast_app and holdfast_worker.
    PermissionDenied or InvalidArgument say what an administrator has to do first, ResourceBusy that nobody answers,
    StorageDamaged that a newer release has migrated the database.
    """
    with _transaction(url) as connection:
        if not _find_missing(connection):
            return []
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK_KEY])
        connection.execute(_TABLE)
        missing = _find_missing(connection)
        for applied_count, migration in enumerate(missing):
            if report is not None:
                report(applied_count, len(missing), migration.name)
            connection.execute(migration.sql)
            connection.execute(
                "INSERT INTO mcp_migrations (number, name) VALUES (%s, %s)", [migration.number, migration.name]
            )
        return [migration.name for migration in missing]


def missing_migrations(url: str) -> list[str]:
    """Return the names of the migrations that did not run yet; changes nothing. Raises as `migrate` does."""
    with _transaction(url) as connection:
        return [migration.name for migration in _find_missing(connection)]


@contextmanager
def _transaction(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Open one transaction; its errors become messages that hold no password."""
    password = _password(url)
    try:
        with psycopg.connect(url) as connection:
            yield connection
    except psycopg.errors.InsufficientPrivilege as error:
        raise PermissionDenied(
            f"the role of DATABASE_URL cannot set up the store: {error.diag.message_primary}. "
            "An administrator can grant it CREATEROLE and run CREATE EXTENSION vector, once."
        ) from None
    except psycopg.errors.FeatureNotSupported as error:
        raise InvalidArgument(
            f"PostgreSQL cannot hold the store: {error.diag.message_primary}. It needs the extension vector, 0.8 or newer."
        ) from None
    except psycopg.OperationalError as error:
        reason = " ".join(str(error).split())
        redacted = reason.replace(password, "****") if password else reason
        raise ResourceBusy(f"cannot connect to the database of DATABASE_URL: {redacted}") from None


def _password(url: str) -> str:
    """Return the password of a URL; InvalidArgument, whose message repeats nothing of it, when it is not valid."""
    try:
        parts = conninfo_to_dict(url)
        ports = [int(port) for port in str(parts.get("port") or "5432").split(",")]
    except (psycopg.ProgrammingError, ValueError):
        ports = []
    if not ports:
        raise InvalidArgument(
            "DATABASE_URL is not a valid PostgreSQL URL: postgresql://USER:PASSWORD@HOST:PORT/DATABASE, "
            "with characters such as '#', '/' and '@' in a password written as %23, %2F and %40."
        )
    return str(parts.get("password") or "")


def _find_missing(connection: psycopg.Connection[Any]) -> list[Migration]:
    (table,) = connection.execute("SELECT to_regclass('mcp_migrations')").fetchone() or (None,)
    rows = connection.execute("SELECT number FROM mcp_migrations").fetchall() if table else []
    applied = {number for (number,) in rows}
    known = load_migrations()
    if newer := applied - {migration.number for migration in known}:
        raise StorageDamaged(
            f"The project store was migrated by a newer release of Holdfast (migration {max(newer)}; this release knows "
            f"those up to {known[-1].number}). Nothing was changed. Use that release or a later one, or restore a dump that "
            "was made before: docs/how-to/backup.md."
        )
    return [migration for migration in known if migration.number not in applied]
