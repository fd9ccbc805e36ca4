-- Every statement that the store runs on SQLite, by name; the PostgreSQL file has the same names and parameters.
-- Each one names the tenant, although a tenant has its own file. Times are text whose order is the order of time.

-- name: project_state
SELECT version, file_count, total_bytes, updated_at
FROM mcp_projects WHERE apikey_hash = :apikey_hash AND project = :project;

-- name: find_applied
SELECT key, digest, answer
FROM mcp_applied WHERE apikey_hash = :apikey_hash AND project = :project AND key = :key;

-- name: find_file
SELECT id, path, size, created_at, CASE WHEN :with_content THEN content END AS content
FROM mcp_files WHERE apikey_hash = :apikey_hash AND project = :project AND path = :path AND NOT deleted;

-- name: any_file_in
SELECT EXISTS (
    SELECT 1 FROM mcp_files
    WHERE apikey_hash = :apikey_hash AND project = :project AND path >= :low AND path < :high AND NOT deleted
) AS found;

-- name: files_in
SELECT path, size, created_at, updated_at
FROM mcp_files
WHERE apikey_hash = :apikey_hash AND project = :project AND path >= :low AND path < :high AND NOT deleted
ORDER BY path;

-- name: files_among
SELECT path
FROM mcp_files
WHERE apikey_hash = :apikey_hash AND project = :project AND path IN (SELECT value FROM json_each(:paths)) AND NOT deleted
ORDER BY path;

-- name: directories_among
SELECT wanted.value AS path
FROM json_each(:paths) AS wanted
WHERE EXISTS (
    SELECT 1 FROM mcp_files AS f
    WHERE f.apikey_hash = :apikey_hash AND f.project = :project
      AND f.path >= wanted.value || '/' AND f.path < wanted.value || '0' AND NOT f.deleted
)
ORDER BY wanted.value;

-- name: insert_file
INSERT INTO mcp_files (apikey_hash, project, path, content, size, created_at, updated_at, version, written_version)
VALUES (:apikey_hash, :project, :path, :content, :size, :at, :at, :version, :version);

-- name: keep_version
INSERT INTO mcp_file_versions (apikey_hash, project, file_id, version, content, size, written_at, kept_at)
SELECT apikey_hash, project, id, written_version, content, size, updated_at, :at
FROM mcp_files WHERE apikey_hash = :apikey_hash AND project = :project AND path = :path AND NOT deleted;

-- name: update_file
UPDATE mcp_files
SET content = :content, size = :size, updated_at = :at, version = :version, written_version = :version
WHERE apikey_hash = :apikey_hash AND project = :project AND path = :path AND NOT deleted;

-- name: append_file
UPDATE mcp_files
SET content = CAST(content || :tail AS BLOB), size = :size, updated_at = :at, version = :version, written_version = :version
WHERE apikey_hash = :apikey_hash AND project = :project AND path = :path AND NOT deleted;

-- name: prune_versions
DELETE FROM mcp_file_versions
WHERE apikey_hash = :apikey_hash AND project = :project AND file_id = :id AND version <= (
    SELECT v.version FROM mcp_file_versions AS v
    WHERE v.apikey_hash = :apikey_hash AND v.project = :project AND v.file_id = :id
    ORDER BY v.version DESC LIMIT 1 OFFSET :kept
)
RETURNING size;

-- name: tenant_usage
SELECT coalesce(sum(live_bytes), 0) AS live_bytes, coalesce(sum(history_bytes), 0) AS history_bytes
FROM mcp_tenant_bytes WHERE apikey_hash = :apikey_hash;

-- name: count_bytes
-- SQLite has one writer per tenant, so one row is enough.
INSERT INTO mcp_tenant_bytes (apikey_hash, live_bytes, history_bytes)
VALUES (:apikey_hash, :live_bytes, :history_bytes)
ON CONFLICT (apikey_hash) DO UPDATE SET
    live_bytes = mcp_tenant_bytes.live_bytes + excluded.live_bytes,
    history_bytes = mcp_tenant_bytes.history_bytes + excluded.history_bytes;

-- name: oldest_versions
SELECT file_id, version, size, kept_at
FROM mcp_file_versions WHERE apikey_hash = :apikey_hash ORDER BY kept_at LIMIT :limit;

-- name: oldest_deleted
SELECT id, size, deleted_at
FROM mcp_files WHERE apikey_hash = :apikey_hash AND deleted ORDER BY deleted_at LIMIT :limit;

-- name: evict_versions
DELETE FROM mcp_file_versions
WHERE apikey_hash = :apikey_hash AND (file_id, version) IN (
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:versions)
)
RETURNING size;

-- name: evict_files
-- A file whose versions are not gone yet stays: its cascade would remove them uncounted.
DELETE FROM mcp_files
WHERE apikey_hash = :apikey_hash AND deleted AND id IN (SELECT value FROM json_each(:files)) AND NOT EXISTS (
    SELECT 1 FROM mcp_file_versions AS v WHERE v.apikey_hash = :apikey_hash AND v.file_id = mcp_files.id
)
RETURNING size;

-- name: list_usages
SELECT sum(live_bytes) AS live_bytes, sum(history_bytes) AS history_bytes
FROM mcp_tenant_bytes GROUP BY apikey_hash;

-- name: delete_files
UPDATE mcp_files
SET deleted = true, deleted_at = :at, version = :version
WHERE apikey_hash = :apikey_hash AND project = :project AND path >= :low AND path < :high AND NOT deleted;

-- name: move_files
-- The LIMIT makes the moves a table of their own, so that each file is sought by path, however many the project has.
UPDATE mcp_files
SET path = move.target, version = :version
FROM (
    SELECT json_extract(value, '$[0]') AS source, json_extract(value, '$[1]') AS target FROM json_each(:moves)
    LIMIT -1
) AS move
WHERE mcp_files.apikey_hash = :apikey_hash AND mcp_files.project = :project AND mcp_files.path = move.source
  AND NOT mcp_files.deleted;

-- name: enqueue_jobs
-- A running words job goes on and is repeated afterwards; a running meaning job, which may be slow, loses its claim at once.
INSERT INTO mcp_file_index_jobs (
    apikey_hash, project, file_path, operation, file_updated_at, version, status, retry_count, available_at,
    created_at, updated_at, traceparent
)
SELECT :apikey_hash, :project, json_extract(value, '$[0]'), json_extract(value, '$[1]'), :at, :version, 'pending', 0,
       :at, :at, :at, :traceparent
FROM json_each(:jobs) WHERE true
ON CONFLICT (apikey_hash, project, file_path) WHERE status IN ('pending', 'processing', 'waiting_credential')
DO UPDATE SET
    operation = excluded.operation, file_updated_at = excluded.file_updated_at, version = excluded.version,
    retry_count = 0, updated_at = excluded.updated_at, stage = 'words', is_backlog = false,
    traceparent = excluded.traceparent,
    status = CASE WHEN mcp_file_index_jobs.status = 'processing' AND mcp_file_index_jobs.stage = 'words' THEN 'processing'
                  ELSE 'pending' END,
    claim = CASE WHEN mcp_file_index_jobs.status = 'processing' AND mcp_file_index_jobs.stage = 'words'
                 THEN mcp_file_index_jobs.claim END,
    available_at = CASE WHEN mcp_file_index_jobs.status = 'processing' AND mcp_file_index_jobs.stage = 'words'
                        THEN mcp_file_index_jobs.available_at ELSE excluded.available_at END
WHERE excluded.version > mcp_file_index_jobs.version;

-- name: save_project
-- A version that is not the next one becomes NULL, which the column refuses: another mutation came in between.
INSERT INTO mcp_projects (apikey_hash, project, version, file_count, total_bytes, updated_at)
VALUES (:apikey_hash, :project, :version, :file_count, :total_bytes, :at)
ON CONFLICT (apikey_hash, project) DO UPDATE SET
    version = CASE WHEN mcp_projects.version = excluded.version - 1 THEN excluded.version END,
    file_count = excluded.file_count, total_bytes = excluded.total_bytes, updated_at = excluded.updated_at;

-- name: remember_applied
INSERT INTO mcp_applied (apikey_hash, project, key, digest, answer, created_at)
VALUES (:apikey_hash, :project, :key, :digest, :answer, :at);

-- name: stat_path
SELECT 'FILE' AS type, size, created_at, updated_at
FROM mcp_files WHERE apikey_hash = :apikey_hash AND project = :project AND path = :path AND NOT deleted
UNION ALL
SELECT 'DIRECTORY', 0, NULL, max(updated_at)
FROM mcp_files
WHERE apikey_hash = :apikey_hash AND project = :project AND path >= :low AND path < :high AND NOT deleted
GROUP BY apikey_hash, project;

-- name: read_window
SELECT 'FILE' AS type, size, substr(content, :start + 1, :count) AS data
FROM mcp_files WHERE apikey_hash = :apikey_hash AND project = :project AND path = :path AND NOT deleted
UNION ALL
SELECT 'DIRECTORY', 0, NULL
WHERE EXISTS (
    SELECT 1 FROM mcp_files
    WHERE apikey_hash = :apikey_hash AND project = :project AND path >= :low AND path < :high AND NOT deleted
);

-- name: list_heads
-- A loose index scan: each step seeks the first file after the group of the last one.
WITH RECURSIVE head (path, number) AS (
    SELECT (
        SELECT min(f.path) FROM mcp_files AS f
        WHERE f.apikey_hash = :apikey_hash AND f.project = :project AND f.path >= :low AND f.path < :high
          AND NOT f.deleted
    ), 1
    UNION ALL
    SELECT (
        SELECT min(f.path) FROM mcp_files AS f
        WHERE f.apikey_hash = :apikey_hash AND f.project = :project AND f.path >= beyond(head.path, :components)
          AND f.path < :high AND NOT f.deleted
    ), head.number + 1
    FROM head WHERE head.path IS NOT NULL AND head.number < :limit
)
SELECT f.path, f.size, f.created_at, f.updated_at
FROM head CROSS JOIN mcp_files AS f
WHERE f.apikey_hash = :apikey_hash AND f.project = :project AND f.path = head.path AND NOT f.deleted
ORDER BY head.number;

-- name: known_path
-- Live and deleted files of a path are queried separately: each has an index of its own, and none serves both.
SELECT (
    SELECT count(*) FROM mcp_files
    WHERE apikey_hash = :apikey_hash AND project = :project AND path = :path AND NOT deleted
) + (
    SELECT count(*) FROM mcp_files
    WHERE apikey_hash = :apikey_hash AND project = :project AND path = :path AND deleted
) AS found;

-- name: list_versions
WITH f AS (
    SELECT id, apikey_hash FROM mcp_files
    WHERE apikey_hash = :apikey_hash AND project = :project AND path = :path AND NOT deleted
    UNION ALL
    SELECT id, apikey_hash FROM mcp_files
    WHERE apikey_hash = :apikey_hash AND project = :project AND path = :path AND deleted
)
SELECT v.version, v.size, v.written_at, v.kept_at AS replaced_at
FROM f CROSS JOIN mcp_file_versions AS v
WHERE v.apikey_hash = f.apikey_hash AND v.file_id = f.id AND v.kept_at >= :since
UNION ALL
SELECT written_version, size, updated_at, deleted_at FROM mcp_files
WHERE apikey_hash = :apikey_hash AND project = :project AND path = :path AND deleted
ORDER BY 1 DESC LIMIT :limit;

-- name: version_content
WITH f AS (
    SELECT id, apikey_hash, written_version, content FROM mcp_files
    WHERE apikey_hash = :apikey_hash AND project = :project AND path = :path AND NOT deleted
    UNION ALL
    SELECT id, apikey_hash, written_version, content FROM mcp_files
    WHERE apikey_hash = :apikey_hash AND project = :project AND path = :path AND deleted
)
SELECT v.content
FROM f CROSS JOIN mcp_file_versions AS v
WHERE v.apikey_hash = f.apikey_hash AND v.file_id = f.id AND v.version = :version AND v.kept_at >= :since
UNION ALL
SELECT content FROM f WHERE written_version = :version;

-- name: list_projects
SELECT project, file_count, total_bytes, updated_at
FROM mcp_projects WHERE apikey_hash = :apikey_hash AND file_count > 0 ORDER BY project;

-- name: claim_jobs
UPDATE mcp_file_index_jobs
SET status = 'processing', available_at = :until, claim = :claim, updated_at = :at
WHERE (apikey_hash, id) IN (
    SELECT apikey_hash, id FROM mcp_file_index_jobs
    WHERE stage = :stage AND is_backlog = :is_backlog AND status IN ('pending', 'processing') AND available_at <= :at
    ORDER BY available_at, id LIMIT :limit
)
RETURNING apikey_hash, project, file_path, operation, version, retry_count, id, stage, is_backlog, file_updated_at,
          traceparent;

-- name: next_due
SELECT apikey_hash, available_at AS due_at
FROM mcp_file_index_jobs
WHERE stage = :stage AND is_backlog = :is_backlog AND status IN ('pending', 'processing')
ORDER BY available_at, id LIMIT 1;

-- name: renew_job
UPDATE mcp_file_index_jobs
SET available_at = :until, updated_at = :at
WHERE apikey_hash = :apikey_hash AND project = :project AND id = :id AND claim = :claim AND status = 'processing'
  AND version = :version;

-- name: finish_job
-- A job whose file changed while it ran is due at once, from its first stage on.
UPDATE mcp_file_index_jobs
SET status = CASE WHEN version = :version THEN :status ELSE 'pending' END,
    stage = CASE WHEN version = :version THEN :stage ELSE 'words' END,
    retry_count = 0, available_at = :at, claim = NULL, last_error = NULL, updated_at = :at
WHERE apikey_hash = :apikey_hash AND project = :project AND id = :id AND claim = :claim AND status = 'processing';

-- name: return_job
-- A job whose file changed while it ran is due at once, with all its attempts.
UPDATE mcp_file_index_jobs
SET status = CASE WHEN version = :version THEN :status ELSE 'pending' END,
    available_at = CASE WHEN version = :version THEN :due_at ELSE :at END,
    retry_count = CASE WHEN version = :version THEN retry_count + :attempts ELSE 0 END,
    claim = NULL, last_error = :error, updated_at = :at
WHERE apikey_hash = :apikey_hash AND project = :project AND id = :id AND claim = :claim AND status = 'processing';

-- name: open_jobs
SELECT project, file_path AS path, id, status = 'waiting_credential' AS is_waiting
FROM mcp_file_index_jobs
WHERE apikey_hash = :apikey_hash AND status IN ('pending', 'processing', 'waiting_credential') AND operation = 'UPSERT'
ORDER BY is_backlog, status DESC, id LIMIT :limit;

-- name: rearm_job
UPDATE mcp_file_index_jobs
SET status = 'pending', available_at = :at, last_error = NULL, updated_at = :at
WHERE apikey_hash = :apikey_hash AND project = :project AND id = :id AND status = 'waiting_credential';

-- name: count_jobs
SELECT apikey_hash, stage, status, count(*) AS jobs, min(file_updated_at) AS oldest_at
FROM mcp_file_index_jobs WHERE status IN ('pending', 'processing', 'waiting_credential', 'failed')
GROUP BY apikey_hash, stage, status;

-- name: failed_jobs
SELECT apikey_hash, project, file_path, stage, retry_count, last_error, updated_at
FROM mcp_file_index_jobs WHERE status = 'failed' ORDER BY updated_at DESC, id DESC LIMIT :limit;

-- name: retry_failed
-- Only the last job of a path; an earlier one is covered by it.
UPDATE mcp_file_index_jobs
SET status = 'pending', retry_count = 0, available_at = :at, updated_at = :at
WHERE status = 'failed' AND NOT EXISTS (
    SELECT 1 FROM mcp_file_index_jobs AS later
    WHERE later.apikey_hash = mcp_file_index_jobs.apikey_hash AND later.project = mcp_file_index_jobs.project
      AND later.file_path = mcp_file_index_jobs.file_path AND later.id > mcp_file_index_jobs.id
);

-- name: list_tenants
SELECT apikey_hash, project FROM mcp_projects ORDER BY apikey_hash, project;

-- name: requeue_files
INSERT INTO mcp_file_index_jobs (
    apikey_hash, project, file_path, operation, file_updated_at, version, status, stage, is_backlog, retry_count,
    available_at, created_at, updated_at
)
SELECT apikey_hash, project, path, 'UPSERT', :at, version, 'pending', :stage, true, 0, :at, :at, :at
FROM mcp_files WHERE apikey_hash = :apikey_hash AND project = :project AND NOT deleted ORDER BY path
ON CONFLICT (apikey_hash, project, file_path) WHERE status IN ('pending', 'processing', 'waiting_credential')
DO NOTHING;

-- name: purge_candidates
SELECT apikey_hash, project FROM mcp_files WHERE deleted AND deleted_at < :deleted_before
UNION
SELECT apikey_hash, project FROM mcp_file_versions WHERE kept_at < :versions_before
UNION
SELECT apikey_hash, project FROM mcp_applied WHERE created_at < :others_before
UNION
SELECT apikey_hash, project FROM mcp_file_index_jobs WHERE status IN ('done', 'failed') AND updated_at < :others_before
ORDER BY 1, 2;

-- name: purge_file_versions
-- The versions of the files that go next, before their cascade would remove them uncounted.
DELETE FROM mcp_file_versions
WHERE apikey_hash = :apikey_hash AND project = :project AND file_id IN (
    SELECT f.id FROM mcp_files AS f
    WHERE f.apikey_hash = :apikey_hash AND f.deleted AND f.deleted_at < :deleted_before
)
RETURNING size;

-- name: purge_files
DELETE FROM mcp_files
WHERE apikey_hash = :apikey_hash AND project = :project AND deleted AND deleted_at < :deleted_before
RETURNING size;

-- name: purge_versions
DELETE FROM mcp_file_versions
WHERE apikey_hash = :apikey_hash AND project = :project AND kept_at < :versions_before
RETURNING size;

-- name: purge_applied
DELETE FROM mcp_applied WHERE apikey_hash = :apikey_hash AND project = :project AND created_at < :others_before;

-- name: purge_jobs
DELETE FROM mcp_file_index_jobs
WHERE apikey_hash = :apikey_hash AND project = :project AND status IN ('done', 'failed') AND updated_at < :others_before;

-- name: purge_done
DELETE FROM mcp_file_index_jobs
WHERE (apikey_hash, id) IN (
    SELECT apikey_hash, id FROM mcp_file_index_jobs WHERE status = 'done' AND available_at < :before
    ORDER BY available_at, id LIMIT :limit
);
