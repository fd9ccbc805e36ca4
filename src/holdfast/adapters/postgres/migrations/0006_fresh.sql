-- A search asks for the fresh changes of its own tenant, however many files wait to be indexed anew.

CREATE INDEX mcp_file_index_jobs_fresh ON mcp_file_index_jobs (apikey_hash, project, file_path)
    WHERE status IN ('pending', 'processing') AND stage = 'words' AND NOT is_backlog;
