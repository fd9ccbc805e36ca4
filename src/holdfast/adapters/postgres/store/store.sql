-- Every statement that the store runs on PostgreSQL, by name; the SQLite file has the same names and parameters.
-- Row-level security is a second wall behind the tenant that each statement names. Paths compare in collation "C".

-- name: project_state
SELECT version, file_count, total_bytes, updated_at
FROM mcp_projects WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s;

-- name: find_applied
SELECT key, digest, answer
FROM mcp_applied WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND key = %(key)s;

-- name: find_file
SELECT id, path, size, created_at, CASE WHEN %(with_content)s::boolean THEN content END AS content
FROM mcp_files WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path = %(path)s AND NOT deleted;

-- name: any_file_in
SELECT EXISTS (
    SELECT 1 FROM mcp_files
    WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path >= %(low)s AND path < %(high)s AND NOT deleted
) AS found;

-- name: files_in
SELECT path, size, created_at, updated_at
FROM mcp_files
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path >= %(low)s AND path < %(high)s AND NOT deleted
ORDER BY path;

-- name: files_among
SELECT path
FROM mcp_files
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s
  AND path = ANY (ARRAY(SELECT json_array_elements_text(%(paths)s::json))) AND NOT deleted
ORDER BY path;

-- name: directories_among
-- The LIMIT keeps the planner from reading all files once instead of seeking once for each path.
SELECT wanted.path
FROM json_array_elements_text(%(paths)s::json) AS wanted (path)
CROSS JOIN LATERAL (
    SELECT f.id FROM mcp_files AS f
    WHERE f.apikey_hash = %(apikey_hash)s AND f.project = %(project)s
      AND f.path >= wanted.path || '/' AND f.path < wanted.path || '0' AND NOT f.deleted
    ORDER BY f.path LIMIT 1
) AS inside
ORDER BY wanted.path COLLATE "C";

-- name: insert_file
INSERT INTO mcp_files (apikey_hash, project, path, content, size, created_at, updated_at, version, written_version)
VALUES (%(apikey_hash)s, %(project)s, %(path)s, %(content)s, %(size)s, %(at)s, %(at)s, %(version)s, %(version)s);

-- name: keep_version
INSERT INTO mcp_file_versions (apikey_hash, project, file_id, version, content, size, written_at, kept_at)
SELECT apikey_hash, project, id, written_version, content, size, updated_at, %(at)s::timestamptz
FROM mcp_files WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path = %(path)s AND NOT deleted;

-- name: update_file
UPDATE mcp_files
SET content = %(content)s, size = %(size)s, updated_at = %(at)s, version = %(version)s, written_version = %(version)s
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path = %(path)s AND NOT deleted;

-- name: append_file
UPDATE mcp_files
SET content = content || %(tail)s::bytea, size = %(size)s, updated_at = %(at)s, version = %(version)s, written_version = %(version)s
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path = %(path)s AND NOT deleted;

-- name: prune_versions
DELETE FROM mcp_file_versions
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND file_id = %(id)s AND version <= (
    SELECT v.version FROM mcp_file_versions AS v
    WHERE v.apikey_hash = %(apikey_hash)s AND v.project = %(project)s AND v.file_id = %(id)s
    ORDER BY v.version DESC LIMIT 1 OFFSET %(kept)s
)
RETURNING size;

-- name: tenant_usage
SELECT coalesce(sum(live_bytes), 0)::bigint AS live_bytes, coalesce(sum(history_bytes), 0)::bigint AS history_bytes
FROM mcp_tenant_bytes WHERE apikey_hash = %(apikey_hash)s;

-- name: count_bytes
-- A tenant has several rows, and a connection adds to one of them, so that the tenant's other projects need not wait.
INSERT INTO mcp_tenant_bytes (apikey_hash, slot, live_bytes, history_bytes)
VALUES (%(apikey_hash)s, mod(pg_backend_pid(), 16), %(live_bytes)s::bigint, %(history_bytes)s::bigint)
ON CONFLICT (apikey_hash, slot) DO UPDATE SET
    live_bytes = mcp_tenant_bytes.live_bytes + excluded.live_bytes,
    history_bytes = mcp_tenant_bytes.history_bytes + excluded.history_bytes;

-- name: oldest_versions
SELECT file_id, version, size, kept_at
FROM mcp_file_versions WHERE apikey_hash = %(apikey_hash)s ORDER BY kept_at LIMIT %(limit)s;

-- name: oldest_deleted
SELECT id, size, deleted_at
FROM mcp_files WHERE apikey_hash = %(apikey_hash)s AND deleted ORDER BY deleted_at LIMIT %(limit)s;

-- name: evict_versions
-- The array repeats the files so that the versions are sought by their key, however many the tenant has.
DELETE FROM mcp_file_versions
USING (
    SELECT (value ->> 0)::bigint AS file_id, (value ->> 1)::bigint AS version FROM json_array_elements(%(versions)s::json)
) AS evicted
WHERE mcp_file_versions.apikey_hash = %(apikey_hash)s AND mcp_file_versions.file_id = evicted.file_id
  AND mcp_file_versions.version = evicted.version
  AND mcp_file_versions.file_id = ANY (ARRAY(SELECT (value ->> 0)::bigint FROM json_array_elements(%(versions)s::json)))
RETURNING size;

-- name: evict_files
-- A file whose versions are not gone yet stays: its cascade would remove them uncounted.
DELETE FROM mcp_files
WHERE mcp_files.apikey_hash = %(apikey_hash)s AND mcp_files.deleted
  AND mcp_files.id = ANY (ARRAY(SELECT value::text::bigint FROM json_array_elements(%(files)s::json))) AND NOT EXISTS (
    SELECT 1 FROM mcp_file_versions AS v WHERE v.apikey_hash = %(apikey_hash)s AND v.file_id = mcp_files.id
)
RETURNING size;

-- name: list_usages
SELECT sum(live_bytes)::bigint AS live_bytes, sum(history_bytes)::bigint AS history_bytes
FROM mcp_tenant_bytes GROUP BY apikey_hash;

-- name: delete_files
UPDATE mcp_files
SET deleted = true, deleted_at = %(at)s, version = %(version)s
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path >= %(low)s AND path < %(high)s AND NOT deleted;

-- name: move_files
-- The array repeats the sources so that the files are sought by path, however many the project has.
UPDATE mcp_files
SET path = move.target, version = %(version)s
FROM (
    SELECT value ->> 0 AS source, value ->> 1 AS target FROM json_array_elements(%(moves)s::json)
) AS move
WHERE mcp_files.apikey_hash = %(apikey_hash)s AND mcp_files.project = %(project)s AND mcp_files.path = move.source
  AND mcp_files.path = ANY (ARRAY(SELECT value ->> 0 FROM json_array_elements(%(moves)s::json)))
  AND NOT mcp_files.deleted;

-- name: enqueue_jobs
-- A running words job goes on and is repeated afterwards; a running meaning job, which may be slow, loses its claim at once.
INSERT INTO mcp_file_index_jobs (
    apikey_hash, project, file_path, operation, file_updated_at, version, status, retry_count, available_at,
    created_at, updated_at, traceparent
)
SELECT %(apikey_hash)s, %(project)s, value ->> 0, value ->> 1, %(at)s::timestamptz, %(version)s::bigint, 'pending', 0,
       %(at)s::timestamptz, %(at)s::timestamptz, %(at)s::timestamptz, %(traceparent)s::text
FROM json_array_elements(%(jobs)s::json)
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
VALUES (%(apikey_hash)s, %(project)s, %(version)s, %(file_count)s, %(total_bytes)s, %(at)s)
ON CONFLICT (apikey_hash, project) DO UPDATE SET
    version = CASE WHEN mcp_projects.version = excluded.version - 1 THEN excluded.version END,
    file_count = excluded.file_count, total_bytes = excluded.total_bytes, updated_at = excluded.updated_at;

-- name: remember_applied
INSERT INTO mcp_applied (apikey_hash, project, key, digest, answer, created_at)
VALUES (%(apikey_hash)s, %(project)s, %(key)s, %(digest)s, %(answer)s, %(at)s);

-- name: stat_path
SELECT 'FILE' AS type, size, created_at, updated_at
FROM mcp_files WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path = %(path)s AND NOT deleted
UNION ALL
SELECT 'DIRECTORY', 0::bigint, NULL::timestamptz, max(updated_at)
FROM mcp_files
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path >= %(low)s AND path < %(high)s AND NOT deleted
GROUP BY apikey_hash, project;

-- name: read_window
SELECT 'FILE' AS type, size, substr(content, %(start)s::integer + 1, %(count)s::integer) AS data
FROM mcp_files WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path = %(path)s AND NOT deleted
UNION ALL
SELECT 'DIRECTORY', 0::bigint, NULL::bytea
WHERE EXISTS (
    SELECT 1 FROM mcp_files
    WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path >= %(low)s AND path < %(high)s AND NOT deleted
);

-- name: list_heads
-- A loose index scan: each step seeks the first file after the group of the last one.
WITH RECURSIVE head (path, size, created_at, updated_at, number) AS (
    (
        SELECT f.path, f.size, f.created_at, f.updated_at, 1
        FROM mcp_files AS f
        WHERE f.apikey_hash = %(apikey_hash)s AND f.project = %(project)s AND f.path >= %(low)s AND f.path < %(high)s
          AND NOT f.deleted
        ORDER BY f.path LIMIT 1
    )
    UNION ALL
    SELECT later.path, later.size, later.created_at, later.updated_at, head.number + 1
    FROM head CROSS JOIN LATERAL (
        SELECT f.path, f.size, f.created_at, f.updated_at
        FROM mcp_files AS f
        WHERE f.apikey_hash = %(apikey_hash)s AND f.project = %(project)s
          AND f.path >= holdfast_beyond(head.path, %(components)s::integer) AND f.path < %(high)s AND NOT f.deleted
        ORDER BY f.path LIMIT 1
    ) AS later
    WHERE head.number < %(limit)s
)
SELECT path, size, created_at, updated_at FROM head ORDER BY number;

-- name: known_path
-- Live and deleted files of a path are queried separately: each has an index of its own, and none serves both.
SELECT (
    SELECT count(*) FROM mcp_files
    WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path = %(path)s AND NOT deleted
) + (
    SELECT count(*) FROM mcp_files
    WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path = %(path)s AND deleted
) AS found;

-- name: list_versions
WITH f AS (
    SELECT id, apikey_hash FROM mcp_files
    WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path = %(path)s AND NOT deleted
    UNION ALL
    SELECT id, apikey_hash FROM mcp_files
    WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path = %(path)s AND deleted
)
SELECT v.version, v.size, v.written_at, v.kept_at AS replaced_at
FROM f JOIN mcp_file_versions AS v ON v.apikey_hash = f.apikey_hash AND v.file_id = f.id
WHERE v.kept_at >= %(since)s
UNION ALL
SELECT written_version, size, updated_at, deleted_at FROM mcp_files
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path = %(path)s AND deleted
ORDER BY 1 DESC LIMIT %(limit)s;

-- name: version_content
WITH f AS (
    SELECT id, apikey_hash, written_version, content FROM mcp_files
    WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path = %(path)s AND NOT deleted
    UNION ALL
    SELECT id, apikey_hash, written_version, content FROM mcp_files
    WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND path = %(path)s AND deleted
)
SELECT v.content
FROM f JOIN mcp_file_versions AS v ON v.apikey_hash = f.apikey_hash AND v.file_id = f.id
WHERE v.version = %(version)s AND v.kept_at >= %(since)s
UNION ALL
SELECT content FROM f WHERE written_version = %(version)s;

-- name: list_projects
SELECT project, file_count, total_bytes, updated_at
FROM mcp_projects WHERE apikey_hash = %(apikey_hash)s AND file_count > 0 ORDER BY project;

-- name: claim_jobs
UPDATE mcp_file_index_jobs AS job
SET status = 'processing', available_at = %(until)s, claim = %(claim)s, updated_at = %(at)s
FROM (
    SELECT apikey_hash, id FROM mcp_file_index_jobs
    WHERE stage = %(stage)s AND is_backlog = %(is_backlog)s AND status IN ('pending', 'processing')
      AND available_at <= %(at)s
    ORDER BY available_at, id LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
) AS due
WHERE job.apikey_hash = due.apikey_hash AND job.id = due.id
RETURNING job.apikey_hash, job.project, job.file_path, job.operation, job.version, job.retry_count, job.id, job.stage,
          job.is_backlog, job.file_updated_at, job.traceparent;

-- name: next_due
SELECT apikey_hash, available_at AS due_at
FROM mcp_file_index_jobs
WHERE stage = %(stage)s AND is_backlog = %(is_backlog)s AND status IN ('pending', 'processing')
ORDER BY available_at, id LIMIT 1;

-- name: renew_job
UPDATE mcp_file_index_jobs
SET available_at = %(until)s, updated_at = %(at)s
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND id = %(id)s AND claim = %(claim)s AND status = 'processing'
  AND version = %(version)s;

-- name: finish_job
-- A job whose file changed while it ran is due at once, from its first stage on.
UPDATE mcp_file_index_jobs
SET status = CASE WHEN version = %(version)s THEN %(status)s::text ELSE 'pending' END,
    stage = CASE WHEN version = %(version)s THEN %(stage)s::text ELSE 'words' END,
    retry_count = 0, available_at = %(at)s, claim = NULL, last_error = NULL, updated_at = %(at)s
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND id = %(id)s AND claim = %(claim)s AND status = 'processing';

-- name: return_job
-- A job whose file changed while it ran is due at once, with all its attempts.
UPDATE mcp_file_index_jobs
SET status = CASE WHEN version = %(version)s THEN %(status)s::text ELSE 'pending' END,
    available_at = CASE WHEN version = %(version)s THEN %(due_at)s::timestamptz ELSE %(at)s::timestamptz END,
    retry_count = CASE WHEN version = %(version)s THEN retry_count + %(attempts)s::integer ELSE 0 END,
    claim = NULL, last_error = %(error)s::text, updated_at = %(at)s::timestamptz
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND id = %(id)s AND claim = %(claim)s AND status = 'processing';

-- name: open_jobs
SELECT project, file_path AS path, id, status = 'waiting_credential' AS is_waiting
FROM mcp_file_index_jobs
WHERE apikey_hash = %(apikey_hash)s AND status IN ('pending', 'processing', 'waiting_credential') AND operation = 'UPSERT'
ORDER BY is_backlog, status DESC, id LIMIT %(limit)s;

-- name: rearm_job
UPDATE mcp_file_index_jobs
SET status = 'pending', available_at = %(at)s, last_error = NULL, updated_at = %(at)s
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND id = %(id)s AND status = 'waiting_credential';

-- name: count_jobs
SELECT apikey_hash, stage, status, count(*) AS jobs, min(file_updated_at) AS oldest_at
FROM mcp_file_index_jobs WHERE status IN ('pending', 'processing', 'waiting_credential', 'failed')
GROUP BY apikey_hash, stage, status;

-- name: failed_jobs
SELECT apikey_hash, project, file_path, stage, retry_count, last_error, updated_at
FROM mcp_file_index_jobs WHERE status = 'failed' ORDER BY updated_at DESC, id DESC LIMIT %(limit)s;

-- name: retry_failed
-- Only the last job of a path; an earlier one is covered by it.
UPDATE mcp_file_index_jobs
SET status = 'pending', retry_count = 0, available_at = %(at)s, updated_at = %(at)s
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
SELECT apikey_hash, project, path, 'UPSERT', %(at)s::timestamptz, version, 'pending', %(stage)s::text, true, 0,
       %(at)s::timestamptz, %(at)s::timestamptz, %(at)s::timestamptz
FROM mcp_files WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND NOT deleted ORDER BY path
ON CONFLICT (apikey_hash, project, file_path) WHERE status IN ('pending', 'processing', 'waiting_credential')
DO NOTHING;

-- name: purge_candidates
SELECT apikey_hash, project FROM mcp_files WHERE deleted AND deleted_at < %(deleted_before)s
UNION
SELECT apikey_hash, project FROM mcp_file_versions WHERE kept_at < %(versions_before)s
UNION
SELECT apikey_hash, project FROM mcp_applied WHERE created_at < %(others_before)s
UNION
SELECT apikey_hash, project FROM mcp_file_index_jobs WHERE status IN ('done', 'failed') AND updated_at < %(others_before)s
ORDER BY 1, 2;

-- name: purge_file_versions
-- The versions of the files that go next, before their cascade would remove them uncounted.
DELETE FROM mcp_file_versions
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND file_id IN (
    SELECT f.id FROM mcp_files AS f
    WHERE f.apikey_hash = %(apikey_hash)s AND f.deleted AND f.deleted_at < %(deleted_before)s
)
RETURNING size;

-- name: purge_files
DELETE FROM mcp_files
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND deleted AND deleted_at < %(deleted_before)s
RETURNING size;

-- name: purge_versions
DELETE FROM mcp_file_versions
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND kept_at < %(versions_before)s
RETURNING size;

-- name: purge_applied
DELETE FROM mcp_applied WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND created_at < %(others_before)s;

-- name: purge_jobs
DELETE FROM mcp_file_index_jobs
WHERE apikey_hash = %(apikey_hash)s AND project = %(project)s AND status IN ('done', 'failed') AND updated_at < %(others_before)s;

-- name: purge_done
DELETE FROM mcp_file_index_jobs
WHERE (apikey_hash, id) IN (
    SELECT apikey_hash, id FROM mcp_file_index_jobs WHERE status = 'done' AND available_at < %(before)s
    ORDER BY available_at, id LIMIT %(limit)s
);
