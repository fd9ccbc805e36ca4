"""The migrations of state.db, in order; one that is released is never edited."""

import sqlite3

from holdfast.adapters.sqlite.connection import CALLS_TABLE, apply_migrations

STEPS = (
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
    """
    ALTER TABLE plans ADD COLUMN stepwise INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE plans ADD COLUMN folder TEXT;
    ALTER TABLE plans ADD COLUMN approved_hash TEXT;
    ALTER TABLE plans ADD COLUMN approved_by TEXT;
    ALTER TABLE plans ADD COLUMN approved_at TEXT;
    ALTER TABLE plan_items ADD COLUMN confidence REAL;
    ALTER TABLE plan_items ADD COLUMN ctime_ns INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE plan_items ADD COLUMN composite_hash TEXT;
    ALTER TABLE plan_items ADD COLUMN xattrs TEXT;
    ALTER TABLE plan_items ADD COLUMN temp_name TEXT;
    ALTER TABLE plan_items ADD COLUMN aside TEXT;
    ALTER TABLE plan_items ADD COLUMN intended_at TEXT;
    ALTER TABLE plan_items ADD COLUMN reverses INTEGER;
    ALTER TABLE plan_items ADD COLUMN dest_identity TEXT;
    CREATE INDEX plan_items_aside ON plan_items (plan_id) WHERE aside IS NOT NULL;
    """,
    """
    CREATE TABLE reviews (
        plan_id TEXT PRIMARY KEY REFERENCES plans (id),
        session TEXT NOT NULL UNIQUE,
        version INTEGER NOT NULL,
        round INTEGER NOT NULL,
        request TEXT NOT NULL,
        twin TEXT NOT NULL,
        base BLOB,
        proposed BLOB,
        answered BLOB,
        decided_by TEXT,
        decided_at TEXT,
        reason TEXT,
        closed_as TEXT,
        expires_at TEXT NOT NULL
    );
    CREATE INDEX reviews_twin ON reviews (twin);
    """,
    """
    CREATE TABLE file_cache (
        file_hash TEXT PRIMARY KEY,
        file_path TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        mtime INTEGER NOT NULL,
        metadata_json TEXT,
        created_at TEXT NOT NULL,
        excerpt BLOB
    );
    CREATE TABLE file_seen (
        device INTEGER NOT NULL,
        inode INTEGER NOT NULL,
        size_bytes INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        file_hash TEXT NOT NULL,
        PRIMARY KEY (device, inode)
    ) WITHOUT ROWID;
    CREATE TABLE file_verdicts (
        file_hash TEXT NOT NULL,
        decider TEXT NOT NULL,
        category TEXT NOT NULL,
        confidence REAL NOT NULL,
        verdict_json TEXT NOT NULL,
        PRIMARY KEY (file_hash, decider)
    ) WITHOUT ROWID;
    CREATE TABLE file_lessons (
        seq INTEGER PRIMARY KEY,
        root_dir TEXT NOT NULL,
        file_hash TEXT NOT NULL,
        name TEXT NOT NULL,
        category TEXT NOT NULL,
        text TEXT NOT NULL,
        content_type TEXT NOT NULL,
        UNIQUE (root_dir, file_hash)
    );
    """,
    """
    CREATE TABLE plan_notes (
        plan_id TEXT PRIMARY KEY,
        notes_json BLOB NOT NULL
    );
    """,
    """
    CREATE TABLE plan_intents (
        plan_id TEXT PRIMARY KEY REFERENCES plans (id),
        intended_at TEXT NOT NULL,
        positions TEXT NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE plan_items ADD COLUMN unit TEXT;
    """,
    # SQLite cannot change a CHECK, so `plans` is made again. The rows that refer to it stay, and are checked at the end.
    """
    PRAGMA defer_foreign_keys = ON;
    CREATE TABLE plans_before AS SELECT * FROM plans;
    DROP TABLE plans;
    CREATE TABLE plans (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        root_dir TEXT NOT NULL,
        other_root TEXT,
        temp_name TEXT,
        undoes TEXT,
        status TEXT NOT NULL
            CHECK (status IN ('CREATED', 'APPROVED', 'RUNNING', 'EXECUTED', 'FAILED', 'CANCELLED', 'UNDONE')),
        created_at TEXT NOT NULL,
        executed_at TEXT,
        error_msg TEXT,
        stepwise INTEGER NOT NULL DEFAULT 0,
        folder TEXT,
        approved_hash TEXT,
        approved_by TEXT,
        approved_at TEXT
    );
    INSERT INTO plans (seq, id, kind, root_dir, other_root, temp_name, undoes, status, created_at, executed_at,
                       error_msg, stepwise, folder, approved_hash, approved_by, approved_at)
    SELECT seq, id, kind, root_dir, other_root, temp_name, undoes, status, created_at, executed_at, error_msg, stepwise,
           folder, approved_hash, approved_by, approved_at
    FROM plans_before;
    DROP TABLE plans_before;
    UPDATE plans SET status = 'RUNNING'
    WHERE status = 'APPROVED' AND (
        (stepwise = 0 AND (kind <> 'review' OR temp_name IS NOT NULL))
        OR (stepwise = 1 AND (
            kind = 'undo'
            OR EXISTS (SELECT 1 FROM plan_intents n WHERE n.plan_id = plans.id)
            OR EXISTS (SELECT 1 FROM plan_items i
                       WHERE i.plan_id = plans.id AND (i.status <> 'PENDING' OR i.intended_at IS NOT NULL)))));
    """,
    # Where a review stands becomes one column. The texts of reviews that have ended go with it.
    """
    ALTER TABLE reviews ADD COLUMN state TEXT NOT NULL DEFAULT 'PENDING'
        CHECK (state IN ('PENDING', 'CHANGES_REQUESTED', 'APPROVED', 'COMMITTED', 'REJECTED', 'EXPIRED'));
    UPDATE reviews SET state = CASE
        WHEN closed_as = 'REJECT' THEN 'REJECTED'
        WHEN closed_as IS NOT NULL THEN 'EXPIRED'
        ELSE (SELECT CASE
                  WHEN p.status IN ('EXECUTED', 'UNDONE') THEN 'COMMITTED'
                  WHEN p.status = 'CANCELLED' THEN 'EXPIRED'
                  WHEN p.status <> 'CREATED' THEN 'APPROVED'
                  WHEN reviews.answered IS NULL THEN 'PENDING'
                  ELSE 'CHANGES_REQUESTED'
              END FROM plans p WHERE p.id = reviews.plan_id)
    END;
    UPDATE reviews SET base = NULL, proposed = NULL, answered = NULL
    WHERE state IN ('COMMITTED', 'REJECTED', 'EXPIRED');
    ALTER TABLE reviews DROP COLUMN closed_as;
    """,
    """
    ALTER TABLE plans ADD COLUMN client_name TEXT NOT NULL DEFAULT '';
    ALTER TABLE plans ADD COLUMN client_version TEXT NOT NULL DEFAULT '';
    ALTER TABLE plans ADD COLUMN by_command INTEGER NOT NULL DEFAULT 0;
    """,
    # By this the folder recognises its own state.db; see `lost.py`.
    """
    CREATE TABLE state_identity (id TEXT NOT NULL);
    INSERT INTO state_identity (id) VALUES (lower(hex(randomblob(16))));
    """,
    # Which directories a proposal was made for. What an earlier release proposed has none, and is bound to its paths alone.
    """
    ALTER TABLE plan_items ADD COLUMN source_directory TEXT;
    ALTER TABLE plan_items ADD COLUMN dest_directory TEXT;
    """,
    # Columns get the names that the code gives their values.
    """
    DROP INDEX plan_items_aside;
    ALTER TABLE plan_items RENAME COLUMN aside TO quarantine_path;
    CREATE INDEX plan_items_quarantine_path ON plan_items (plan_id) WHERE quarantine_path IS NOT NULL;
    DROP INDEX reviews_twin;
    ALTER TABLE reviews RENAME COLUMN twin TO proposal_hash;
    CREATE INDEX reviews_proposal_hash ON reviews (proposal_hash);
    """,
    # Which changes use an image is known by path and root, so that the oldest of each path can outlive all others.
    """
    CREATE TABLE image_uses (
        path TEXT NOT NULL,
        seq INTEGER NOT NULL,
        hash TEXT NOT NULL,
        root_dir TEXT NOT NULL,
        kept_at TEXT NOT NULL,
        is_oldest INTEGER NOT NULL,
        PRIMARY KEY (path, seq, hash)
    ) WITHOUT ROWID;
    CREATE INDEX image_uses_hash ON image_uses (hash, root_dir, is_oldest);
    CREATE INDEX image_uses_turn ON image_uses (root_dir, is_oldest, seq);
    INSERT OR IGNORE INTO image_uses (path, seq, hash, root_dir, kept_at, is_oldest)
    SELECT i.src_path, p.seq, i.before_hash, p.root_dir, m.kept_at,
           row_number() OVER (PARTITION BY i.src_path ORDER BY p.seq, i.position) = 1
    FROM plan_items i JOIN plans p ON p.id = i.plan_id JOIN images m ON m.hash = i.before_hash
    WHERE i.op IN ('replace', 'remove', 'kept');
    ALTER TABLE images ADD COLUMN stored_bytes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE images ADD COLUMN packing TEXT CHECK (packing IN ('plain', 'packed'));
    ALTER TABLE images ADD COLUMN base_hash TEXT;
    ALTER TABLE images ADD COLUMN prefix_bytes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE images ADD COLUMN suffix_bytes INTEGER NOT NULL DEFAULT 0;
    UPDATE images SET stored_bytes = size_bytes, packing = CASE WHEN size_bytes < 4096 THEN 'plain' END;
    ALTER TABLE images DROP COLUMN kept_at;
    ALTER TABLE images DROP COLUMN used_seq;
    CREATE INDEX images_base ON images (base_hash) WHERE base_hash IS NOT NULL;
    CREATE INDEX images_unpacked ON images (size_bytes) WHERE packing IS NULL;
    """,
    # The texts of a review are stored compressed; those that an earlier release stored are not.
    """
    ALTER TABLE reviews ADD COLUMN is_packed INTEGER NOT NULL DEFAULT false;
    """,
    # The call log of the user of this machine.
    CALLS_TABLE,
    # What a review is about that proposes no text: a move, a deletion, new directories, an undo.
    """
    ALTER TABLE reviews ADD COLUMN path_change TEXT;
    """,
    # The agent's reason and name with its proposal, and the size of the difference, so that a list needs no texts.
    """
    ALTER TABLE reviews ADD COLUMN note TEXT NOT NULL DEFAULT '';
    ALTER TABLE reviews ADD COLUMN client_name TEXT NOT NULL DEFAULT '';
    ALTER TABLE reviews ADD COLUMN client_version TEXT NOT NULL DEFAULT '';
    ALTER TABLE reviews ADD COLUMN diff_size TEXT;
    """,
    # The tenant of a key that took the place of another one. Without it a key is its own tenant.
    """
    ALTER TABLE api_keys ADD COLUMN tenant TEXT;
    """,
)


API_KEYS_VERSION = 20
"""The last step that changes the table of API keys."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring state.db to the newest schema. Only for the holder of the server's lock: later steps change what plans and
    reviews mean, under which a server of an earlier release could not go on.
    """
    apply_migrations(connection, STEPS)


def refuse_newer_state(connection: sqlite3.Connection) -> None:
    """Raise StorageDamaged for a state.db that a newer release has migrated; changes nothing."""
    apply_migrations(connection, (), newest=len(STEPS))
