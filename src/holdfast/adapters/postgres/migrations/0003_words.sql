-- What search keeps besides chunks: which version of a file the index holds, and its words as blocks of postings.

-- The wall of row-level security keeps an index from being asked by an operator that is not leakproof, and @@ is none.
-- Words are looked up by equality instead: one row for each term and block, its postings packed.
DROP INDEX mcp_file_chunk_bm25_words;
ALTER TABLE mcp_file_chunk_bm25
    ALTER COLUMN tsv DROP NOT NULL,
    ADD COLUMN project varchar(128) COLLATE "C" NOT NULL,
    ADD COLUMN block integer,
    ADD COLUMN slot integer;
CREATE INDEX mcp_file_chunk_bm25_loose ON mcp_file_chunk_bm25 (apikey_hash, chunk_id) WHERE block IS NULL;
CREATE INDEX mcp_file_chunk_bm25_slots ON mcp_file_chunk_bm25 (apikey_hash, block, slot) WHERE block IS NOT NULL;

ALTER TABLE mcp_file_chunk_embeddings ADD COLUMN project varchar(128) COLLATE "C" NOT NULL;
CREATE INDEX mcp_file_chunk_embeddings_project ON mcp_file_chunk_embeddings (apikey_hash, model, project, chunk_id);
CREATE INDEX mcp_file_chunks_text ON mcp_file_chunks (apikey_hash, content_hash);

CREATE TABLE mcp_file_chunk_states (
    apikey_hash char(64) NOT NULL CHECK (apikey_hash <> ''),
    project varchar(128) COLLATE "C" NOT NULL,
    file_path varchar(1024) COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (apikey_hash, project, file_path)
);

-- A block is a numbered row of chunks. It knows the token count of each slot as two bytes, and the project of each as two
-- bytes that number its names; `dead` are the slots whose chunk is gone.
CREATE TABLE mcp_file_chunk_blocks (
    apikey_hash char(64) NOT NULL CHECK (apikey_hash <> ''),
    block integer NOT NULL,
    chunks integer NOT NULL,
    tokens bigint NOT NULL,
    dead integer NOT NULL DEFAULT 0,
    names json NOT NULL,
    lengths bytea NOT NULL,
    projects bytea NOT NULL,
    PRIMARY KEY (apikey_hash, block)
);
ALTER TABLE mcp_file_chunk_blocks
    ALTER COLUMN lengths SET STORAGE EXTERNAL, ALTER COLUMN projects SET STORAGE EXTERNAL;

-- The chunks of a block that hold a term: the slot of each as two bytes, and how often it holds the term as one.
CREATE TABLE mcp_file_chunk_words (
    apikey_hash char(64) NOT NULL CHECK (apikey_hash <> ''),
    term varchar(64) COLLATE "C" NOT NULL,
    block integer NOT NULL,
    chunks integer NOT NULL,
    slots bytea NOT NULL,
    counts bytea NOT NULL,
    PRIMARY KEY (apikey_hash, term, block)
);
ALTER TABLE mcp_file_chunk_words ALTER COLUMN slots SET STORAGE EXTERNAL, ALTER COLUMN counts SET STORAGE EXTERNAL;
CREATE INDEX mcp_file_chunk_words_block ON mcp_file_chunk_words (apikey_hash, block);

ALTER TABLE mcp_file_chunk_states ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE mcp_file_chunk_blocks ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE mcp_file_chunk_words ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

CREATE POLICY tenant ON mcp_file_chunk_states
    USING (apikey_hash = (SELECT holdfast_tenant())) WITH CHECK (apikey_hash = (SELECT holdfast_tenant()));
CREATE POLICY tenant ON mcp_file_chunk_blocks
    USING (apikey_hash = (SELECT holdfast_tenant())) WITH CHECK (apikey_hash = (SELECT holdfast_tenant()));
CREATE POLICY tenant ON mcp_file_chunk_words
    USING (apikey_hash = (SELECT holdfast_tenant())) WITH CHECK (apikey_hash = (SELECT holdfast_tenant()));

-- Which tenants have an index is the worker's to know; what is in it is not.
CREATE POLICY worker_states ON mcp_file_chunk_states FOR SELECT TO holdfast_worker USING (true);

GRANT SELECT, INSERT, UPDATE, DELETE ON mcp_file_chunk_states, mcp_file_chunk_blocks, mcp_file_chunk_words TO holdfast_app;
GRANT SELECT (apikey_hash) ON mcp_file_chunk_states TO holdfast_worker;
