-- What search reads: chunks, their vectors and their words, each behind the same wall.

CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE mcp_file_chunks (
    id bigint GENERATED ALWAYS AS IDENTITY,
    apikey_hash char(64) NOT NULL CHECK (apikey_hash <> ''),
    project varchar(128) COLLATE "C" NOT NULL,
    file_path varchar(1024) COLLATE "C" NOT NULL,
    chunk_index integer NOT NULL,
    start_byte bigint NOT NULL,
    end_byte bigint NOT NULL,
    chunk_content text NOT NULL,
    content_hash char(64) NOT NULL,
    version bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    last_served_at timestamptz,
    PRIMARY KEY (apikey_hash, id)
);
CREATE UNIQUE INDEX mcp_file_chunks_place ON mcp_file_chunks (apikey_hash, project, file_path, chunk_index);
CREATE INDEX mcp_file_chunks_prefix ON mcp_file_chunks (apikey_hash, project, file_path text_pattern_ops);

CREATE TABLE mcp_file_chunk_embeddings (
    apikey_hash char(64) NOT NULL,
    chunk_id bigint NOT NULL,
    model varchar(255) NOT NULL,
    embedding vector NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (apikey_hash, chunk_id, model),
    FOREIGN KEY (apikey_hash, chunk_id) REFERENCES mcp_file_chunks (apikey_hash, id) ON DELETE CASCADE
);

CREATE TABLE mcp_file_chunk_bm25 (
    apikey_hash char(64) NOT NULL,
    chunk_id bigint NOT NULL,
    tokens jsonb NOT NULL,
    token_count integer NOT NULL,
    tokenizer varchar(64) NOT NULL,
    tsv tsvector NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (apikey_hash, chunk_id),
    FOREIGN KEY (apikey_hash, chunk_id) REFERENCES mcp_file_chunks (apikey_hash, id) ON DELETE CASCADE
);
CREATE INDEX mcp_file_chunk_bm25_words ON mcp_file_chunk_bm25 USING gin (tsv);

ALTER TABLE mcp_file_chunks ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE mcp_file_chunk_embeddings ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE mcp_file_chunk_bm25 ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

CREATE POLICY tenant ON mcp_file_chunks
    USING (apikey_hash = (SELECT holdfast_tenant())) WITH CHECK (apikey_hash = (SELECT holdfast_tenant()));
CREATE POLICY tenant ON mcp_file_chunk_embeddings
    USING (apikey_hash = (SELECT holdfast_tenant())) WITH CHECK (apikey_hash = (SELECT holdfast_tenant()));
CREATE POLICY tenant ON mcp_file_chunk_bm25
    USING (apikey_hash = (SELECT holdfast_tenant())) WITH CHECK (apikey_hash = (SELECT holdfast_tenant()));

GRANT SELECT, INSERT, UPDATE, DELETE ON mcp_file_chunks, mcp_file_chunk_embeddings, mcp_file_chunk_bm25
    TO holdfast_app, holdfast_worker;
