-- Statements of search on SQLite. Statements of the same name for PostgreSQL have the same parameters; words are stored
-- in FTS5 here and in blocks of postings there, so each database has its own statements to find them.
-- A chunk counts only while its file is live at the version that is indexed.

-- name: load_file
SELECT version, content
FROM mcp_files WHERE apikey_hash = :apikey_hash AND project = :project AND path = :path AND NOT deleted;

-- name: live_version
SELECT version
FROM mcp_files WHERE apikey_hash = :apikey_hash AND project = :project AND path = :path AND NOT deleted;

-- name: indexed_chunks
SELECT id, chunk_index, start_byte, end_byte, content_hash
FROM mcp_file_chunks WHERE apikey_hash = :apikey_hash AND project = :project AND file_path = :path
ORDER BY chunk_index, id;

-- name: claim_state
-- Returns a row only when no later version of the file is indexed.
INSERT INTO mcp_file_chunk_states (apikey_hash, project, file_path, version, updated_at)
VALUES (:apikey_hash, :project, :path, :version, :at)
ON CONFLICT (apikey_hash, project, file_path) DO UPDATE SET version = excluded.version, updated_at = excluded.updated_at
WHERE mcp_file_chunk_states.version <= excluded.version
RETURNING version;

-- name: delete_state
DELETE FROM mcp_file_chunk_states
WHERE apikey_hash = :apikey_hash AND project = :project AND file_path = :path;

-- name: insert_chunk
INSERT INTO mcp_file_chunks (
    apikey_hash, project, file_path, chunk_index, start_byte, end_byte, chunk_content, content_hash, version,
    created_at, updated_at
)
VALUES (:apikey_hash, :project, :path, :position, :start, :end, :text, :content_hash, :version, :at, :at)
RETURNING id;

-- name: move_chunk
UPDATE mcp_file_chunks
SET chunk_index = :position, start_byte = :start, end_byte = :end, updated_at = :at
WHERE apikey_hash = :apikey_hash AND project = :project AND id = :id;

-- name: copy_vectors
INSERT INTO mcp_file_chunk_embeddings (apikey_hash, project, chunk_id, model, embedding, created_at, updated_at)
SELECT new.apikey_hash, new.project, new.id, e.model, e.embedding, :at, :at
FROM mcp_file_chunks AS new
CROSS JOIN mcp_file_chunks AS old
  ON old.apikey_hash = new.apikey_hash AND old.content_hash = new.content_hash AND old.id <> new.id
CROSS JOIN mcp_file_chunk_embeddings AS e ON e.apikey_hash = new.apikey_hash AND e.chunk_id = old.id
WHERE new.apikey_hash = :apikey_hash AND new.project = :project AND new.id IN (SELECT value FROM json_each(:ids))
GROUP BY new.id, e.model
ON CONFLICT (chunk_id, model, apikey_hash) DO NOTHING;

-- name: insert_words
INSERT INTO mcp_file_chunk_bm25 (chunk_id, apikey_hash, scope, tokens, token_count, tokenizer, created_at, updated_at)
VALUES (:id, :apikey_hash, :scope, :tokens, :token_count, :tokenizer, :at, :at);

-- name: add_to_full_text
INSERT INTO chunk_words (rowid, scope, tokens) VALUES (:id, :scope, :tokens);

-- name: remove_from_full_text
INSERT INTO chunk_words (chunk_words, rowid, scope, tokens)
SELECT 'delete', b.chunk_id, b.scope, b.tokens
FROM mcp_file_chunk_bm25 AS b
WHERE b.apikey_hash = :apikey_hash AND b.chunk_id IN (SELECT value FROM json_each(:ids));

-- name: count_tokens
SELECT count(*) AS chunks, total(token_count) AS tokens
FROM mcp_file_chunk_bm25 WHERE apikey_hash = :apikey_hash AND chunk_id IN (SELECT value FROM json_each(:ids));

-- name: add_totals
INSERT INTO mcp_file_chunk_totals (apikey_hash, chunks, tokens) VALUES (:apikey_hash, :chunks, :tokens)
ON CONFLICT (apikey_hash) DO UPDATE SET chunks = chunks + excluded.chunks, tokens = tokens + excluded.tokens;

-- name: delete_chunks
DELETE FROM mcp_file_chunks
WHERE apikey_hash = :apikey_hash AND project = :project AND id IN (SELECT value FROM json_each(:ids));

-- name: chunks_without_vectors
SELECT c.id, c.content_hash, c.chunk_content
FROM mcp_file_chunks AS c
WHERE c.apikey_hash = :apikey_hash AND c.project = :project AND c.file_path = :path AND NOT EXISTS (
    SELECT 1 FROM mcp_file_chunk_embeddings AS e
    WHERE e.apikey_hash = :apikey_hash AND e.chunk_id = c.id AND e.model = :model
)
ORDER BY c.chunk_index, c.id;

-- name: insert_vector
INSERT INTO mcp_file_chunk_embeddings (apikey_hash, project, chunk_id, model, embedding, created_at, updated_at)
SELECT apikey_hash, project, id, :model, :embedding, :at, :at
FROM mcp_file_chunks WHERE apikey_hash = :apikey_hash AND id = :id AND content_hash = :content_hash
ON CONFLICT (chunk_id, model, apikey_hash) DO NOTHING;

-- name: totals
SELECT chunks, tokens FROM mcp_file_chunk_totals WHERE apikey_hash = :apikey_hash;

-- name: count_terms
SELECT term, doc
FROM chunk_terms WHERE term IN (SELECT value FROM json_each(:terms)) AND col = 'tokens';

-- name: match_words
-- Each tenant has a database file of its own, so this statement needs no tenant.
SELECT rowid AS chunk_id FROM chunk_words(:query) ORDER BY bm25(chunk_words, 0.0, 1.0) LIMIT :most;

-- name: live_words
SELECT b.chunk_id, b.tokens, b.token_count
FROM json_each(:ids) AS m
CROSS JOIN mcp_file_chunk_bm25 AS b ON b.apikey_hash = :apikey_hash AND b.chunk_id = m.value
CROSS JOIN mcp_file_chunks AS c ON c.apikey_hash = :apikey_hash AND c.id = m.value
CROSS JOIN mcp_file_chunk_states AS s
  ON s.apikey_hash = :apikey_hash AND s.project = c.project AND s.file_path = c.file_path
CROSS JOIN mcp_files AS f
  ON f.apikey_hash = :apikey_hash AND f.project = c.project AND f.path = c.file_path AND NOT f.deleted
  AND f.version = s.version
WHERE (:project IS NULL OR c.project = :project) AND c.file_path >= :low AND c.file_path < :high
ORDER BY m.key;

-- name: new_vectors
SELECT id, chunk_id, project, embedding
FROM mcp_file_chunk_embeddings
WHERE apikey_hash = :apikey_hash AND model = :model AND id > :after
ORDER BY id LIMIT :limit;

-- name: count_vectors
SELECT count(*) AS vectors FROM mcp_file_chunk_embeddings WHERE apikey_hash = :apikey_hash AND model = :model;

-- name: scope_chunks
SELECT id
FROM mcp_file_chunks
WHERE apikey_hash = :apikey_hash AND project = :project AND file_path >= :low AND file_path < :high
LIMIT :limit;

-- name: live_chunks
SELECT c.id, c.project, c.file_path, c.start_byte, c.end_byte, c.chunk_content, f.size
FROM json_each(:ids) AS wanted
CROSS JOIN mcp_file_chunks AS c ON c.apikey_hash = :apikey_hash AND c.id = wanted.value
CROSS JOIN mcp_file_chunk_states AS s
  ON s.apikey_hash = :apikey_hash AND s.project = c.project AND s.file_path = c.file_path
CROSS JOIN mcp_files AS f
  ON f.apikey_hash = :apikey_hash AND f.project = c.project AND f.path = c.file_path AND NOT f.deleted
  AND f.version = s.version
WHERE (:project IS NULL OR c.project = :project) AND c.file_path >= :low AND c.file_path < :high;

-- name: pending_files
WITH waiting AS (
    SELECT f.project, f.path, f.size, row_number() OVER (ORDER BY j.updated_at DESC, j.id DESC) AS number
    FROM mcp_file_index_jobs AS j INDEXED BY mcp_file_index_jobs_turn
    JOIN mcp_files AS f
      ON f.apikey_hash = :apikey_hash AND f.project = j.project AND f.path = j.file_path AND NOT f.deleted
    LEFT JOIN mcp_file_chunk_states AS s
      ON s.apikey_hash = :apikey_hash AND s.project = j.project AND s.file_path = j.file_path
    WHERE j.apikey_hash = :apikey_hash AND (:project IS NULL OR j.project = :project)
      AND j.status IN ('pending', 'processing') AND j.stage = 'words' AND j.is_backlog = false
      AND j.operation = 'UPSERT'
      AND j.file_path >= :low AND j.file_path < :high AND s.version IS NOT f.version
    ORDER BY number LIMIT :limit
),
running AS (
    SELECT project, path, number, sum(size) OVER (ORDER BY number) AS total FROM waiting
)
SELECT f.project, f.path, f.version, f.content
FROM running CROSS JOIN mcp_files AS f
  ON f.apikey_hash = :apikey_hash AND f.project = running.project AND f.path = running.path AND NOT f.deleted
WHERE running.number = 1 OR running.total <= :max_bytes
ORDER BY running.number;

-- name: live_versions
SELECT f.project, f.path, f.version
FROM json_each(:files) AS wanted
CROSS JOIN mcp_files AS f
  ON f.apikey_hash = :apikey_hash AND f.project = json_extract(wanted.value, '$[0]')
  AND f.path = json_extract(wanted.value, '$[1]') AND NOT f.deleted;

-- name: mark_served
-- The plus keeps SQLite from using the index on the tenant, which all chunks of this file share.
UPDATE mcp_file_chunks
SET last_served_at = :at
WHERE +apikey_hash = :apikey_hash AND id IN (SELECT value FROM json_each(:ids));

-- name: files_without_vectors
SELECT DISTINCT c.project, c.file_path
FROM mcp_file_chunks AS c
JOIN mcp_file_chunk_states AS s
  ON s.apikey_hash = :apikey_hash AND s.project = c.project AND s.file_path = c.file_path
JOIN mcp_files AS f
  ON f.apikey_hash = :apikey_hash AND f.project = c.project AND f.path = c.file_path AND NOT f.deleted
  AND f.version = s.version
WHERE c.apikey_hash = :apikey_hash AND NOT EXISTS (
    SELECT 1 FROM mcp_file_chunk_embeddings AS e
    WHERE e.apikey_hash = :apikey_hash AND e.chunk_id = c.id AND e.model = :model
)
ORDER BY 1, 2 LIMIT :limit;

-- name: next_model
SELECT model
FROM mcp_file_chunk_embeddings
WHERE apikey_hash = :apikey_hash AND model > :after_model ORDER BY model LIMIT 1;

-- name: delete_outdated_vectors
DELETE FROM mcp_file_chunk_embeddings
WHERE (apikey_hash, chunk_id, model) IN (
    SELECT e.apikey_hash, e.chunk_id, e.model
    FROM mcp_file_chunk_embeddings AS e
    CROSS JOIN mcp_file_chunk_embeddings AS present
      ON present.apikey_hash = :apikey_hash AND present.chunk_id = e.chunk_id AND present.model = :model
    WHERE e.apikey_hash = :apikey_hash AND e.model = :outdated AND present.created_at < :before
    LIMIT :limit
);

-- name: list_tenants
SELECT apikey_hash FROM mcp_file_chunk_totals;
