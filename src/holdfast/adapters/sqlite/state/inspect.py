"""Looks at a state database without changing it."""

import sqlite3
from urllib.parse import quote


def inspect_database(path: str) -> str | None:
    """Return what is wrong with the database file, None when it opens, is sound and has a write-ahead log."""
    try:
        connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=5)
    except sqlite3.Error as error:
        return str(error)
    try:
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if mode != "wal":
            return f"its journal mode is {mode!r}, expected 'wal'"
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        return None if found == "ok" else str(found)
    except sqlite3.Error as error:
        return str(error)
    finally:
        connection.close()
