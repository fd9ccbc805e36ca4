-- The call log, in state.db for the user of this machine and in each tenant's own file.

-- name: save_call
INSERT INTO mcp_calls (
    apikey_hash, id, tool, kind, identity, client_name, client_version, door, started_at, duration_ms, status, code, cost,
    parameters
) VALUES (
    :apikey_hash, :id, :tool, :kind, :identity, :client_name, :client_version, :door, :started_at, :duration_ms, :status,
    :code, :cost, :parameters
);

-- name: find_calls
SELECT position, apikey_hash, id, tool, kind, identity, client_name, client_version, door, started_at, duration_ms, status,
       code, cost, parameters
FROM mcp_calls
WHERE apikey_hash = :apikey_hash
  AND (:older_than IS NULL OR position < :older_than)
  AND (:tool = '' OR tool = :tool)
  AND (:status = '' OR status = :status)
  AND (:code = '' OR code = :code)
  AND (:client = '' OR client_name = :client)
  AND (:kind = '' OR kind = :kind)
  AND (:since IS NULL OR started_at >= :since)
  AND (:until IS NULL OR started_at < :until)
ORDER BY position DESC
LIMIT :limit OFFSET :offset;

-- name: count_calls
SELECT count(*) AS total
FROM mcp_calls
WHERE apikey_hash = :apikey_hash
  AND (:older_than IS NULL OR position < :older_than)
  AND (:tool = '' OR tool = :tool)
  AND (:status = '' OR status = :status)
  AND (:code = '' OR code = :code)
  AND (:client = '' OR client_name = :client)
  AND (:kind = '' OR kind = :kind)
  AND (:since IS NULL OR started_at >= :since)
  AND (:until IS NULL OR started_at < :until);

-- name: trim_calls
DELETE FROM mcp_calls
WHERE apikey_hash = :apikey_hash AND position <= (
    SELECT position FROM mcp_calls WHERE apikey_hash = :apikey_hash ORDER BY position DESC LIMIT 1 OFFSET :max_rows
);

-- name: expire_calls
-- The oldest rows have the lowest positions; an index on the time would make every insert dearer.
DELETE FROM mcp_calls
WHERE started_at < :before AND (apikey_hash, position) IN (
    SELECT apikey_hash, position FROM mcp_calls ORDER BY position LIMIT :limit
);
