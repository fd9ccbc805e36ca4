"""Copies an SQLite file while others write to it: one consistent state, checked before anybody relies on it."""

import sqlite3
from contextlib import closing
from urllib.parse import quote

from holdfast.adapters.sqlite.connection import translate_sqlite_errors
from holdfast.adapters.sqlite.state.database import state_statements
from holdfast.backup.model import DatabaseFacts
from holdfast.errors import StorageDamaged

_PAGES_A_STEP = 1_000
_BUSY_SECONDS = 10.0


class SqliteCopier:
    """Implements `holdfast.backup.model.DatabaseCopier`."""

    def copy(self, source: str, target: str) -> None:
        """Copy one consistent state of a database to a new file. StorageDamaged when the copy is not sound.

        The read transaction that is open meanwhile keeps one state in view, so writers neither wait nor start it anew.
        """
        with (
            translate_sqlite_errors(source),
            closing(_open(source)) as reader,
            closing(sqlite3.connect(target)) as writer,
        ):
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            reader.backup(writer, pages=_PAGES_A_STEP)
        self.check(target)

    def check(self, path: str) -> None:
        """Raise StorageDamaged when a database that nobody else uses is not sound."""
        with translate_sqlite_errors(path), closing(_open_unused(path)) as connection:
            (report,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if report != "ok":
            raise StorageDamaged(f"{path} is damaged ({report}). `holdfast doctor` says more.")

    def state_facts(self, path: str) -> DatabaseFacts:
        """Return the schema version of a copied state.db, and the image files that it names."""
        with translate_sqlite_errors(path), closing(_open_unused(path)) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            rows = connection.execute(state_statements()["image_files"]).fetchall()
        return DatabaseFacts(version, tuple(sorted(file for (file,) in rows)))


def _open_unused(path: str) -> sqlite3.Connection:
    """Open a copy that nobody writes to, so that no log is made beside it."""
    return sqlite3.connect(f"file:{quote(path)}?mode=ro&immutable=1", uri=True)


def _open(path: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
