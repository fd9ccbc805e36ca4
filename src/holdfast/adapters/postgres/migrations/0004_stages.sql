-- Jobs have two stages, words and meaning; the worker may find every project, to index it anew.

ALTER TABLE mcp_file_index_jobs
    ADD COLUMN stage varchar(16) NOT NULL DEFAULT 'words' CHECK (stage IN ('words', 'meaning'));
CREATE INDEX mcp_file_index_jobs_stage ON mcp_file_index_jobs (stage, available_at, id)
    WHERE status IN ('pending', 'processing');
CREATE INDEX mcp_file_index_jobs_path ON mcp_file_index_jobs (apikey_hash, project, file_path, id);

CREATE POLICY worker_projects ON mcp_projects FOR SELECT TO holdfast_worker USING (true);
GRANT SELECT (apikey_hash, project) ON mcp_projects TO holdfast_worker;
GRANT INSERT ON mcp_file_index_jobs TO holdfast_worker;
