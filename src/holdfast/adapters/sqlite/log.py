"""The write-ahead log of a database file, switched on by whoever opens the file first, however many do at once."""

import sqlite3
import time

_SECONDS = 10.0
_PAUSE_SECONDS = 0.005


def use_log(connection: sqlite3.Connection) -> None:
    """Switch a file to the log, unless it has one.

    Another connection that does the same at this moment is waited for, which SQLite's own wait does not cover.
    """
    until = time.monotonic() + _SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return
