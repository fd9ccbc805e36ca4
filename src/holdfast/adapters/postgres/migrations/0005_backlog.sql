-- Jobs of files to be indexed anew are told from those of fresh changes, which go first.

ALTER TABLE mcp_file_index_jobs ADD COLUMN is_backlog boolean NOT NULL DEFAULT false;
DROP INDEX mcp_file_index_jobs_stage;
CREATE INDEX mcp_file_index_jobs_turn ON mcp_file_index_jobs (stage, is_backlog, available_at, id)
    WHERE status IN ('pending', 'processing');

-- Chunks of the same text are found newest first in one index, whatever the planner believes about the others.
DROP INDEX mcp_file_chunks_text;
CREATE INDEX mcp_file_chunks_text ON mcp_file_chunks (apikey_hash, content_hash, id);
