"""The shape of state.db, one step after another; a step that has been taken is never edited."""

import sqlite3

from holdfast.adapters.sqlite.steps import take_steps

_STEPS = (
    """
    CREATE TABLE plans (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        root_dir TEXT NOT NULL,
        other_root TEXT,
        temp_name TEXT,
        undoes TEXT,
        status TEXT NOT NULL
            CHECK (status IN ('CREATED', 'APPROVED', 'EXECUTED', 'FAILED', 'CANCELLED', 'UNDONE')),
        created_at TEXT NOT NULL,
        executed_at TEXT,
        error_msg TEXT
    );
    CREATE TABLE plan_items (
        id INTEGER PRIMARY KEY,
        plan_id TEXT NOT NULL REFERENCES plans (id),
        position INTEGER NOT NULL,
        op TEXT NOT NULL,
        src_path TEXT NOT NULL,
        dest_path TEXT,
        reasoning TEXT,
        node TEXT NOT NULL,
        before_hash TEXT,
        after_hash TEXT,
        size_bytes INTEGER NOT NULL,
        mode INTEGER NOT NULL,
        uid INTEGER NOT NULL,
        gid INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        identity TEXT,
        status TEXT NOT NULL CHECK (status IN ('PENDING', 'DONE', 'SKIPPED', 'ERROR', 'UNDONE')),
        error_msg TEXT,
        UNIQUE (plan_id, position)
    );
    CREATE TABLE images (
        hash TEXT PRIMARY KEY,
        size_bytes INTEGER NOT NULL,
        data_id INTEGER,
        file TEXT,
        kept_at TEXT NOT NULL,
        used_seq INTEGER NOT NULL,
        CHECK ((data_id IS NULL) <> (file IS NULL))
    ) WITHOUT ROWID;
    CREATE TABLE image_data (
        id INTEGER PRIMARY KEY,
        data BLOB NOT NULL
    );
    """,
    """
    CREATE TABLE api_keys (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        apikey_hash TEXT NOT NULL UNIQUE,
        label TEXT NOT NULL,
        per_minute TEXT NOT NULL,
        created_at TEXT NOT NULL,
        revoked_at TEXT
    );
    """,
)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring state.db to the newest shape."""
    take_steps(connection, _STEPS)
