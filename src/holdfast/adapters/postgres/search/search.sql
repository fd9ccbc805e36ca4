-- Statements of search on PostgreSQL. Statements of the same name for SQLite have the same parameters; words are stored
-- in blocks of postings here and in FTS5 there, so each database has its own statements to find them.
-- A chunk counts only while its file is live at the version that is indexed. live_slots and live_chunks repeat the joins
-- for that: as a function in the schema they would be out of reach of the test that drops each condition in turn.

-- name: load_file
SELECT version, content
FROM mcp_files WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path = %(path)s AND NOT deleted;

-- name: live_version
SELECT version
FROM mcp_files WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path = %(path)s AND NOT deleted;

-- name: indexed_chunks
SELECT id, chunk_index, start_byte, end_byte, content_hash
FROM mcp_file_chunks WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND file_path = %(path)s
ORDER BY chunk_index, id;

-- name: claim_state
-- Returns a row only when no later version of the file is indexed; a second writer of the file waits here.
INSERT INTO mcp_file_chunk_states (apikey_hash, project, file_path, version, updated_at)
VALUES (%(apikey_hash)s, %(project)s, %(path)s, %(version)s, %(at)s)
ON CONFLICT (apikey_hash, project, file_path) DO UPDATE SET version = excluded.version, updated_at = excluded.updated_at
WHERE mcp_file_chunk_states.version <= excluded.version
RETURNING version;

-- name: move_chunks
-- Positions are negative at first, because two chunks may exchange theirs.
UPDATE mcp_file_chunks
SET chunk_index = -1 - moved.position, start_byte = moved.low, end_byte = moved.high, updated_at = %(at)s
FROM json_to_recordset(%(chunks)s::json) AS moved (id bigint, position integer, low bigint, high bigint)
WHERE mcp_file_chunks.apikey_hash = %(apikey_hash)s AND mcp_file_chunks.project = %(project)s
  AND mcp_file_chunks.id = moved.id
  AND mcp_file_chunks.id = ANY (ARRAY(SELECT (value ->> 'id')::bigint FROM json_array_elements(%(chunks)s::json)));

-- name: restore_positions
UPDATE mcp_file_chunks
SET chunk_index = -1 - chunk_index
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND file_path = %(path)s AND chunk_index < 0;

-- name: delete_state
DELETE FROM mcp_file_chunk_states
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND file_path = %(path)s;

-- name: insert_chunks
INSERT INTO mcp_file_chunks (
    apikey_hash, project, file_path, chunk_index, start_byte, end_byte, chunk_content, content_hash, version,
    created_at, updated_at
)
SELECT %(apikey_hash)s, %(project)s, %(path)s, position, low, high, text, content_hash, %(version)s::bigint,
       %(at)s::timestamptz, %(at)s::timestamptz
FROM json_to_recordset(%(chunks)s::json)
     AS added (position integer, low bigint, high bigint, text text, content_hash text)
RETURNING id, chunk_index;

-- name: insert_words
INSERT INTO mcp_file_chunk_bm25 (
    apikey_hash, project, chunk_id, tokens, token_count, tokenizer, created_at, updated_at
)
SELECT %(apikey_hash)s, %(project)s, id, tokens, token_count, %(tokenizer)s, %(at)s::timestamptz, %(at)s::timestamptz
FROM json_to_recordset(%(words)s::json) AS added (id bigint, tokens jsonb, token_count integer);

-- name: copy_vectors
-- Each LIMIT keeps the planner from reordering the joins: seek by id, by text, by chunk, however stale its statistics are.
INSERT INTO mcp_file_chunk_embeddings (apikey_hash, project, chunk_id, model, embedding, created_at, updated_at)
SELECT DISTINCT ON (new.id, made.model)
       new.apikey_hash, new.project, new.id, made.model, made.embedding, %(at)s::timestamptz, %(at)s::timestamptz
FROM json_array_elements_text(%(ids)s::json) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT c.apikey_hash, c.project, c.id, c.content_hash FROM mcp_file_chunks AS c
    WHERE c.apikey_hash = %(apikey_hash)s AND c.id = wanted.id::bigint
    ORDER BY c.id LIMIT 1
) AS new
CROSS JOIN LATERAL (
    SELECT o.id FROM mcp_file_chunks AS o
    WHERE o.apikey_hash = %(apikey_hash)s AND o.content_hash = new.content_hash AND o.id <> new.id
    ORDER BY o.id DESC LIMIT 8
) AS old
CROSS JOIN LATERAL (
    SELECT e.model, e.embedding FROM mcp_file_chunk_embeddings AS e
    WHERE e.apikey_hash = %(apikey_hash)s AND e.chunk_id = old.id
    ORDER BY e.chunk_id, e.model LIMIT 8
) AS made
WHERE new.project = %(project)s
ON CONFLICT (apikey_hash, chunk_id, model) DO NOTHING;

-- name: count_dead_slots
UPDATE mcp_file_chunk_blocks
SET dead = dead + gone.slots
FROM (
    SELECT b.block, count(*)::integer AS slots
    FROM mcp_file_chunk_bm25 AS b
    WHERE b.apikey_hash = %(apikey_hash)s
      AND b.chunk_id = ANY (ARRAY(SELECT json_array_elements_text(%(ids)s::json)::bigint)) AND b.block IS NOT NULL
    GROUP BY b.block
) AS gone
WHERE mcp_file_chunk_blocks.apikey_hash = %(apikey_hash)s AND mcp_file_chunk_blocks.block = gone.block;

-- name: delete_chunks
DELETE FROM mcp_file_chunks
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s
  AND id = ANY (ARRAY(SELECT json_array_elements_text(%(ids)s::json)::bigint));

-- name: chunks_without_vectors
SELECT c.id, c.content_hash, c.chunk_content
FROM mcp_file_chunks AS c
WHERE c.apikey_hash = %(apikey_hash)s AND c.project = %(project)s AND c.file_path = %(path)s AND NOT EXISTS (
    SELECT 1 FROM mcp_file_chunk_embeddings AS e
    WHERE e.apikey_hash = %(apikey_hash)s AND e.chunk_id = c.id AND e.model = %(model)s
)
ORDER BY c.chunk_index, c.id;

-- name: insert_vectors
INSERT INTO mcp_file_chunk_embeddings (apikey_hash, project, chunk_id, model, embedding, created_at, updated_at)
SELECT c.apikey_hash, c.project, c.id, %(model)s, made.embedding::vector, %(at)s::timestamptz, %(at)s::timestamptz
FROM json_to_recordset(%(vectors)s::json) AS made (id bigint, content_hash text, embedding text)
JOIN mcp_file_chunks AS c
  ON c.apikey_hash = %(apikey_hash)s AND c.id = made.id AND c.content_hash = made.content_hash
ON CONFLICT (apikey_hash, chunk_id, model) DO NOTHING;

-- name: many_unpacked
SELECT chunk_id FROM mcp_file_chunk_bm25
WHERE apikey_hash = %(apikey_hash)s AND block IS NULL
ORDER BY chunk_id LIMIT 1 OFFSET %(most)s;

-- name: unpacked_chunks
SELECT chunk_id, project, token_count, tokens
FROM mcp_file_chunk_bm25
WHERE apikey_hash = %(apikey_hash)s AND block IS NULL
ORDER BY chunk_id LIMIT %(limit)s
FOR UPDATE SKIP LOCKED;

-- name: last_block
SELECT block, chunks, names
FROM mcp_file_chunk_blocks WHERE apikey_hash = %(apikey_hash)s ORDER BY block DESC LIMIT 1;

-- name: extend_block
INSERT INTO mcp_file_chunk_blocks (apikey_hash, block, chunks, tokens, names, lengths, projects)
VALUES (%(apikey_hash)s, %(block)s, %(chunks)s, %(tokens)s, %(names)s::json, %(lengths)s, %(projects)s)
ON CONFLICT (apikey_hash, block) DO UPDATE SET
    chunks = mcp_file_chunk_blocks.chunks + excluded.chunks, tokens = mcp_file_chunk_blocks.tokens + excluded.tokens,
    names = excluded.names, lengths = mcp_file_chunk_blocks.lengths || excluded.lengths,
    projects = mcp_file_chunk_blocks.projects || excluded.projects;

-- name: extend_words
INSERT INTO mcp_file_chunk_words (apikey_hash, term, block, chunks, slots, counts)
SELECT %(apikey_hash)s, term, %(block)s::integer, chunks, slots, counts
FROM unnest(%(terms)s::text[], %(chunks)s::integer[], %(slots)s::bytea[], %(counts)s::bytea[])
     AS added (term, chunks, slots, counts)
ON CONFLICT (apikey_hash, term, block) DO UPDATE SET
    chunks = mcp_file_chunk_words.chunks + excluded.chunks, slots = mcp_file_chunk_words.slots || excluded.slots,
    counts = mcp_file_chunk_words.counts || excluded.counts;

-- name: assign_slots
UPDATE mcp_file_chunk_bm25
SET block = %(block)s, slot = given.slot
FROM unnest(%(ids)s::bigint[], %(slots)s::integer[]) AS given (id, slot)
WHERE mcp_file_chunk_bm25.apikey_hash = %(apikey_hash)s AND mcp_file_chunk_bm25.chunk_id = given.id
  AND mcp_file_chunk_bm25.chunk_id = ANY (%(ids)s::bigint[]);

-- name: mostly_dead_block
SELECT block FROM mcp_file_chunk_blocks
WHERE apikey_hash = %(apikey_hash)s AND dead * 2 > chunks ORDER BY block LIMIT 1;

-- name: unpack_chunks
UPDATE mcp_file_chunk_bm25
SET block = NULL, slot = NULL
WHERE apikey_hash = %(apikey_hash)s AND block = %(block)s;

-- name: delete_words
DELETE FROM mcp_file_chunk_words WHERE apikey_hash = %(apikey_hash)s AND block = %(block)s;

-- name: delete_block
DELETE FROM mcp_file_chunk_blocks WHERE apikey_hash = %(apikey_hash)s AND block = %(block)s;

-- name: blocks
SELECT block, chunks, tokens, names, lengths, projects
FROM mcp_file_chunk_blocks WHERE apikey_hash = %(apikey_hash)s ORDER BY block;

-- name: postings
SELECT term, block, chunks, slots, counts
FROM mcp_file_chunk_words
WHERE apikey_hash = %(apikey_hash)s AND term = ANY (ARRAY(SELECT json_array_elements_text(%(terms)s::json)));

-- name: unpacked_words
SELECT b.chunk_id, b.project, b.token_count, (
    SELECT json_object_agg(wanted.term, b.tokens -> wanted.term)
    FROM json_array_elements_text(%(terms)s::json) AS wanted (term) WHERE b.tokens -> wanted.term IS NOT NULL
) AS counts
FROM mcp_file_chunk_bm25 AS b
WHERE b.apikey_hash = %(apikey_hash)s AND b.block IS NULL;

-- name: scope_slots
SELECT b.block, b.slot
FROM mcp_file_chunks AS c
JOIN mcp_file_chunk_bm25 AS b ON b.apikey_hash = %(apikey_hash)s AND b.chunk_id = c.id
WHERE c.apikey_hash = %(apikey_hash)s AND c.project = %(project)s
  AND c.file_path >= %(low)s AND c.file_path < %(high)s AND b.block IS NOT NULL
LIMIT %(limit)s;

-- name: live_slots
-- Each LIMIT keeps the planner from reordering the joins: begin with the wanted rows, however stale its statistics are.
SELECT b.block, b.slot, b.chunk_id
FROM json_array_elements(%(slots)s::json) AS wanted
CROSS JOIN LATERAL (
    SELECT b.block, b.slot, b.chunk_id FROM mcp_file_chunk_bm25 AS b
    WHERE b.apikey_hash = %(apikey_hash)s AND b.block = (wanted ->> 0)::integer AND b.slot = (wanted ->> 1)::integer
    ORDER BY b.block LIMIT 1
) AS b
CROSS JOIN LATERAL (
    SELECT c.project, c.file_path FROM mcp_file_chunks AS c
    WHERE c.apikey_hash = %(apikey_hash)s AND c.id = b.chunk_id
    ORDER BY c.id LIMIT 1
) AS c
CROSS JOIN LATERAL (
    SELECT s.version FROM mcp_file_chunk_states AS s
    WHERE s.apikey_hash = %(apikey_hash)s AND s.project = c.project AND s.file_path = c.file_path
    ORDER BY s.file_path LIMIT 1
) AS s
CROSS JOIN LATERAL (
    SELECT f.size FROM mcp_files AS f
    WHERE f.apikey_hash = %(apikey_hash)s AND f.project = c.project AND f.path = c.file_path AND NOT f.deleted
      AND f.version = s.version
    ORDER BY f.path LIMIT 1
) AS f
WHERE (%(project)s::text IS NULL OR c.project = %(project)s) AND c.file_path >= %(low)s AND c.file_path < %(high)s;

-- name: count_vectors
SELECT count(*) AS vectors FROM (
    SELECT 1 FROM mcp_file_chunk_embeddings
    WHERE apikey_hash = %(apikey_hash)s AND model = %(model)s AND (%(project)s::text IS NULL OR project = %(project)s)
    LIMIT %(limit)s
) AS counted;

-- name: nearest_exactly
-- An endpoint may change the length of its vectors under one model name: other lengths cannot be compared.
SELECT chunk_id, 1 - cosine_distance(embedding, %(vector)s::vector) AS score
FROM mcp_file_chunk_embeddings
WHERE apikey_hash = %(apikey_hash)s AND model = %(model)s AND (%(project)s::text IS NULL OR project = %(project)s)
  AND vector_dims(embedding) = vector_dims(%(vector)s::vector)
ORDER BY cosine_distance(embedding, %(vector)s::vector), chunk_id LIMIT %(most)s;

-- name: nearest_in_scope
SELECT e.chunk_id, 1 - cosine_distance(e.embedding, %(vector)s::vector) AS score
FROM mcp_file_chunks AS c
JOIN mcp_file_chunk_embeddings AS e ON e.apikey_hash = %(apikey_hash)s AND e.chunk_id = c.id AND e.model = %(model)s
WHERE c.apikey_hash = %(apikey_hash)s AND c.project = %(project)s
  AND c.file_path >= %(low)s AND c.file_path < %(high)s
  AND vector_dims(e.embedding) = vector_dims(%(vector)s::vector)
ORDER BY cosine_distance(e.embedding, %(vector)s::vector), e.chunk_id LIMIT %(most)s;

-- name: nearest_approximately
-- halfvec(1) is replaced by the model's dimensions. Vectors are normalised, so the order by distance is the order by cosine.
SELECT chunk_id, 1 - cosine_distance(embedding, %(vector)s::vector) AS score
FROM (
    SELECT chunk_id, embedding
    FROM mcp_file_chunk_embeddings
    WHERE apikey_hash = %(apikey_hash)s AND model = %(model)s AND (%(project)s::text IS NULL OR project = %(project)s)
    ORDER BY embedding::halfvec(1) <-> %(vector)s::vector::halfvec(1) LIMIT %(most)s
) AS near
ORDER BY score DESC, chunk_id;

-- name: live_chunks
-- Each LIMIT keeps the planner from reordering the joins: begin with the wanted rows, however stale its statistics are.
SELECT c.id, c.project, c.file_path, c.start_byte, c.end_byte, c.chunk_content, f.size
FROM json_array_elements_text(%(ids)s::json) AS wanted
CROSS JOIN LATERAL (
    SELECT c.id, c.project, c.file_path, c.start_byte, c.end_byte, c.chunk_content FROM mcp_file_chunks AS c
    WHERE c.apikey_hash = %(apikey_hash)s AND c.id = wanted::bigint
    ORDER BY c.id LIMIT 1
) AS c
CROSS JOIN LATERAL (
    SELECT s.version FROM mcp_file_chunk_states AS s
    WHERE s.apikey_hash = %(apikey_hash)s AND s.project = c.project AND s.file_path = c.file_path
    ORDER BY s.file_path LIMIT 1
) AS s
CROSS JOIN LATERAL (
    SELECT f.size FROM mcp_files AS f
    WHERE f.apikey_hash = %(apikey_hash)s AND f.project = c.project AND f.path = c.file_path AND NOT f.deleted
      AND f.version = s.version
    ORDER BY f.path LIMIT 1
) AS f
WHERE (%(project)s::text IS NULL OR c.project = %(project)s) AND c.file_path >= %(low)s AND c.file_path < %(high)s;

-- name: pending_files
-- Each ORDER BY keeps the planner from reordering the joins: first the jobs by the index of fresh ones, then each file by path.
WITH waiting AS (
    SELECT f.project, f.path, f.size, row_number() OVER (ORDER BY j.updated_at DESC, j.id DESC) AS number
    FROM (
        SELECT project, file_path, updated_at, id FROM mcp_file_index_jobs
        WHERE apikey_hash = %(apikey_hash)s AND (%(project)s::text IS NULL OR project = %(project)s)
          AND status IN ('pending', 'processing') AND stage = 'words' AND NOT is_backlog AND operation = 'UPSERT'
          AND file_path >= %(low)s AND file_path < %(high)s
        ORDER BY project, file_path
    ) AS j
    CROSS JOIN LATERAL (
        SELECT project, path, size, version FROM mcp_files
        WHERE apikey_hash = %(apikey_hash)s AND project = j.project AND path = j.file_path AND NOT deleted
        ORDER BY path OFFSET 0
    ) AS f
    LEFT JOIN LATERAL (
        SELECT version FROM mcp_file_chunk_states
        WHERE apikey_hash = %(apikey_hash)s AND project = j.project AND file_path = j.file_path
        ORDER BY file_path OFFSET 0
    ) AS s ON true
    WHERE s.version IS DISTINCT FROM f.version
    ORDER BY number LIMIT %(limit)s
),
running AS (
    SELECT project, path, number, sum(size) OVER (ORDER BY number) AS total FROM waiting
)
SELECT running.project, running.path, f.version, f.content
FROM running CROSS JOIN LATERAL (
    SELECT version, content FROM mcp_files
    WHERE apikey_hash = %(apikey_hash)s AND project = running.project AND path = running.path AND NOT deleted
    ORDER BY path OFFSET 0
) AS f
WHERE running.number = 1 OR running.total <= %(max_bytes)s
ORDER BY running.number;

-- name: live_versions
SELECT f.project, f.path, f.version
FROM json_array_elements(%(files)s::json) AS wanted
JOIN mcp_files AS f
  ON f.apikey_hash = %(apikey_hash)s AND f.project = (wanted ->> 0) AND f.path = (wanted ->> 1) AND NOT f.deleted;

-- name: slice_file
SELECT substr(content, %(start)s::integer + 1, %(count)s::integer) AS data
FROM mcp_files WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path = %(path)s AND NOT deleted;

-- name: mark_served
UPDATE mcp_file_chunks
SET last_served_at = %(at)s
WHERE apikey_hash = %(apikey_hash)s AND id = ANY (ARRAY(SELECT json_array_elements_text(%(ids)s::json)::bigint));

-- name: files_without_vectors
SELECT DISTINCT c.project, c.file_path
FROM mcp_file_chunks AS c
JOIN mcp_file_chunk_states AS s
  ON s.apikey_hash = %(apikey_hash)s AND s.project = c.project AND s.file_path = c.file_path
JOIN mcp_files AS f
  ON f.apikey_hash = %(apikey_hash)s AND f.project = c.project AND f.path = c.file_path AND NOT f.deleted
  AND f.version = s.version
WHERE c.apikey_hash = %(apikey_hash)s AND NOT EXISTS (
    SELECT 1 FROM mcp_file_chunk_embeddings AS e
    WHERE e.apikey_hash = %(apikey_hash)s AND e.chunk_id = c.id AND e.model = %(model)s
)
ORDER BY 1, 2 LIMIT %(limit)s;

-- name: next_model
SELECT model
FROM mcp_file_chunk_embeddings
WHERE apikey_hash = %(apikey_hash)s AND model > %(after_model)s ORDER BY model LIMIT 1;

-- name: delete_outdated_vectors
DELETE FROM mcp_file_chunk_embeddings
WHERE (apikey_hash, chunk_id, model) IN (
    SELECT e.apikey_hash, e.chunk_id, e.model
    FROM mcp_file_chunk_embeddings AS e
    JOIN mcp_file_chunk_embeddings AS present
      ON present.apikey_hash = %(apikey_hash)s AND present.chunk_id = e.chunk_id AND present.model = %(model)s
    WHERE e.apikey_hash = %(apikey_hash)s AND e.model = %(outdated)s AND present.created_at < %(before)s
    LIMIT %(limit)s
);

-- name: list_tenants
SELECT DISTINCT apikey_hash FROM mcp_file_chunk_states ORDER BY 1;
