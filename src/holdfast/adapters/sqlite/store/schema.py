"""The schema of a tenant's store file as numbered migrations; a released one is never edited."""

import sqlite3

from holdfast.adapters.sqlite.connection import CALLS_TABLE, apply_migrations

CHUNK_TABLES = """
    CREATE TABLE mcp_file_chunks (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        apikey_hash TEXT NOT NULL,
        project TEXT NOT NULL,
        file_path TEXT NOT NULL,
        chunk_index INTEGER NOT NULL,
        start_byte INTEGER NOT NULL,
        end_byte INTEGER NOT NULL,
        content_hash TEXT NOT NULL,
        version INTEGER NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        last_served_at TEXT,
        chunk_content TEXT NOT NULL
    );
    CREATE INDEX mcp_file_chunks_place ON mcp_file_chunks (apikey_hash, project, file_path, chunk_index);
    CREATE INDEX mcp_file_chunks_text ON mcp_file_chunks (apikey_hash, content_hash);
    CREATE TABLE mcp_file_chunk_states (
        apikey_hash TEXT NOT NULL,
        project TEXT NOT NULL,
        file_path TEXT NOT NULL,
        version INTEGER NOT NULL,
        updated_at TEXT NOT NULL,
        PRIMARY KEY (apikey_hash, project, file_path)
    ) WITHOUT ROWID;
    CREATE TABLE mcp_file_chunk_embeddings (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        apikey_hash TEXT NOT NULL,
        project TEXT NOT NULL,
        chunk_id INTEGER NOT NULL REFERENCES mcp_file_chunks (id) ON DELETE CASCADE,
        model TEXT NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        embedding BLOB NOT NULL
    );
    CREATE UNIQUE INDEX mcp_file_chunk_embeddings_key ON mcp_file_chunk_embeddings (chunk_id, model, apikey_hash);
    CREATE INDEX mcp_file_chunk_embeddings_new ON mcp_file_chunk_embeddings (model, id);
    CREATE TABLE mcp_file_chunk_bm25 (
        chunk_id INTEGER PRIMARY KEY REFERENCES mcp_file_chunks (id) ON DELETE CASCADE,
        apikey_hash TEXT NOT NULL,
        scope TEXT NOT NULL,
        tokens TEXT NOT NULL,
        token_count INTEGER NOT NULL,
        tokenizer TEXT NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL
    );
    CREATE TABLE mcp_file_chunk_totals (
        apikey_hash TEXT PRIMARY KEY,
        chunks INTEGER NOT NULL,
        tokens INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE VIRTUAL TABLE chunk_words USING fts5(
        scope, tokens, content='mcp_file_chunk_bm25', content_rowid='chunk_id',
        tokenize="unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'"
    );
    CREATE VIRTUAL TABLE chunk_terms USING fts5vocab(chunk_words, col);
    """
"""What search keeps of files; the index of local folders has these tables too."""

_MIGRATIONS = (
    """
    CREATE TABLE mcp_projects (
        apikey_hash TEXT NOT NULL,
        project TEXT NOT NULL,
        version INTEGER NOT NULL,
        file_count INTEGER NOT NULL CHECK (file_count >= 0),
        total_bytes INTEGER NOT NULL CHECK (total_bytes >= 0),
        updated_at TEXT NOT NULL,
        PRIMARY KEY (apikey_hash, project)
    ) WITHOUT ROWID;
    CREATE TABLE mcp_files (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        apikey_hash TEXT NOT NULL,
        project TEXT NOT NULL,
        path TEXT NOT NULL,
        size INTEGER NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        deleted INTEGER NOT NULL DEFAULT false,
        deleted_at TEXT,
        version INTEGER NOT NULL,
        written_version INTEGER NOT NULL,
        content BLOB NOT NULL
    );
    CREATE UNIQUE INDEX mcp_files_live ON mcp_files (apikey_hash, project, path) WHERE NOT deleted;
    CREATE INDEX mcp_files_deleted ON mcp_files (apikey_hash, project, path) WHERE deleted;
    CREATE INDEX mcp_files_purge ON mcp_files (deleted_at) WHERE deleted;
    CREATE TABLE mcp_file_versions (
        apikey_hash TEXT NOT NULL,
        project TEXT NOT NULL,
        file_id INTEGER NOT NULL REFERENCES mcp_files (id) ON DELETE CASCADE,
        version INTEGER NOT NULL,
        size INTEGER NOT NULL,
        written_at TEXT NOT NULL,
        kept_at TEXT NOT NULL,
        content BLOB NOT NULL
    );
    CREATE UNIQUE INDEX mcp_file_versions_key ON mcp_file_versions (file_id, apikey_hash, version);
    CREATE INDEX mcp_file_versions_purge ON mcp_file_versions (kept_at);
    CREATE TABLE mcp_applied (
        apikey_hash TEXT NOT NULL,
        project TEXT NOT NULL,
        key TEXT NOT NULL,
        digest TEXT NOT NULL,
        answer INTEGER NOT NULL,
        created_at TEXT NOT NULL,
        PRIMARY KEY (apikey_hash, project, key)
    ) WITHOUT ROWID;
    CREATE TABLE mcp_file_index_jobs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        apikey_hash TEXT NOT NULL,
        project TEXT NOT NULL,
        file_path TEXT NOT NULL,
        operation TEXT NOT NULL CHECK (operation IN ('UPSERT', 'DELETE')),
        file_updated_at TEXT NOT NULL,
        version INTEGER NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'waiting_credential', 'done', 'failed')),
        retry_count INTEGER NOT NULL,
        available_at TEXT NOT NULL,
        claim TEXT,
        last_error TEXT,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL
    );
    CREATE UNIQUE INDEX mcp_file_index_jobs_open ON mcp_file_index_jobs (apikey_hash, project, file_path)
        WHERE status IN ('pending', 'processing', 'waiting_credential');
    CREATE INDEX mcp_file_index_jobs_due ON mcp_file_index_jobs (status, available_at, id);
    """,
    CHUNK_TABLES,
    """
    ALTER TABLE mcp_file_index_jobs ADD COLUMN stage TEXT NOT NULL DEFAULT 'words' CHECK (stage IN ('words', 'meaning'));
    CREATE INDEX mcp_file_index_jobs_stage ON mcp_file_index_jobs (stage, available_at, id)
        WHERE status IN ('pending', 'processing');
    CREATE INDEX mcp_file_index_jobs_path ON mcp_file_index_jobs (apikey_hash, project, file_path, id);
    """,
    """
    ALTER TABLE mcp_file_index_jobs ADD COLUMN is_backlog INTEGER NOT NULL DEFAULT false;
    DROP INDEX mcp_file_index_jobs_stage;
    CREATE INDEX mcp_file_index_jobs_turn ON mcp_file_index_jobs (stage, is_backlog, available_at, id)
        WHERE status IN ('pending', 'processing');
    """,
    CALLS_TABLE,
    """
    CREATE TABLE mcp_tenant_bytes (
        apikey_hash TEXT PRIMARY KEY,
        live_bytes INTEGER NOT NULL,
        history_bytes INTEGER NOT NULL
    ) WITHOUT ROWID;
    INSERT INTO mcp_tenant_bytes (apikey_hash, live_bytes, history_bytes)
    SELECT apikey_hash, sum(live_bytes), sum(history_bytes) FROM (
        SELECT apikey_hash, CASE WHEN deleted THEN 0 ELSE size END AS live_bytes,
               CASE WHEN deleted THEN size ELSE 0 END AS history_bytes
        FROM mcp_files
        UNION ALL
        SELECT apikey_hash, 0, size FROM mcp_file_versions
    )
    GROUP BY apikey_hash;
    CREATE INDEX mcp_files_oldest ON mcp_files (apikey_hash, deleted_at) WHERE deleted;
    """,
    """
    ALTER TABLE mcp_file_index_jobs ADD COLUMN traceparent TEXT;
    """,
)


def migrate_store(connection: sqlite3.Connection) -> None:
    """Migrate a store file to the current schema."""
    apply_migrations(connection, _MIGRATIONS)
