"""The shape of the index of one local folder: what was seen of its files, beside the tables of search.

All of it can be made again from the files, so a file of another shape may as well be removed.
"""

import sqlite3

from holdfast.adapters.sqlite.connection import apply_migrations
from holdfast.adapters.sqlite.store.schema import CHUNK_TABLES

_STEPS = (
    """
    CREATE TABLE mcp_files (
        apikey_hash TEXT NOT NULL,
        project TEXT NOT NULL,
        path TEXT NOT NULL,
        size INTEGER NOT NULL,
        version INTEGER NOT NULL,
        deleted INTEGER NOT NULL DEFAULT false,
        look TEXT NOT NULL,
        kind TEXT NOT NULL,
        digest TEXT NOT NULL,
        PRIMARY KEY (apikey_hash, project, path)
    ) WITHOUT ROWID;
    """,
    CHUNK_TABLES,
)


def migrate_folder_index(connection: sqlite3.Connection) -> None:
    """Bring the index of a folder to the newest shape."""
    apply_migrations(connection, _STEPS)
