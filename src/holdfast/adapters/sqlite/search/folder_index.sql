-- Statements on the files of a local folder's index; those on chunks, words and vectors are in search.sql.

-- name: indexed_files
-- Only files whose words are stored: one that was interrupted in between counts as never read.
SELECT f.path, f.look, f.kind, f.digest, f.size
FROM mcp_files AS f
JOIN mcp_file_chunk_states AS s
  ON s.apikey_hash = f.apikey_hash AND s.project = f.project AND s.file_path = f.path AND s.version = f.version
WHERE f.apikey_hash = :apikey_hash AND f.project = :project;

-- name: put_file
INSERT INTO mcp_files (apikey_hash, project, path, size, version, look, kind, digest)
VALUES (:apikey_hash, :project, :path, :size, 1, :look, :kind, :digest)
ON CONFLICT (apikey_hash, project, path) DO UPDATE
SET size = excluded.size, version = version + 1, look = excluded.look, kind = excluded.kind, digest = excluded.digest
RETURNING version;

-- name: delete_file
DELETE FROM mcp_files
WHERE apikey_hash = :apikey_hash AND project = :project AND path = :path
RETURNING version;

-- name: count_lines_before
SELECT total(length(chunk_content) - length(replace(chunk_content, char(10), '')))
FROM mcp_file_chunks
WHERE apikey_hash = :apikey_hash AND project = :project AND file_path = :path AND start_byte < :start;
