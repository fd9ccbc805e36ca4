-- The call log of tenants.

-- name: save_call
INSERT INTO mcp_calls (
    apikey_hash, id, tool, kind, identity, client_name, client_version, door, started_at, duration_ms, status, code, cost,
    parameters
) VALUES (
    %(apikey_hash)s, %(id)s, %(tool)s, %(kind)s, %(identity)s, %(client_name)s, %(client_version)s, %(door)s,
    %(started_at)s, %(duration_ms)s, %(status)s, %(code)s, %(cost)s, %(parameters)s
);

-- name: has_files
-- Only PostgreSQL asks: on SQLite a tenant that stores something has a file.
SELECT EXISTS (SELECT 1 FROM mcp_projects WHERE apikey_hash = %(apikey_hash)s) AS has_files;

-- name: find_calls
SELECT position, apikey_hash, id, tool, kind, identity, client_name, client_version, door, started_at, duration_ms, status,
       code, cost, parameters
FROM mcp_calls
WHERE apikey_hash = %(apikey_hash)s
  AND (%(older_than)s::bigint IS NULL OR position < %(older_than)s)
  AND (%(tool)s = '' OR tool = %(tool)s)
  AND (%(status)s = '' OR status = %(status)s)
  AND (%(code)s = '' OR code = %(code)s)
  AND (%(client)s = '' OR client_name = %(client)s)
  AND (%(kind)s = '' OR kind = %(kind)s)
  AND (%(since)s::timestamptz IS NULL OR started_at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR started_at < %(until)s)
ORDER BY position DESC
LIMIT %(limit)s OFFSET %(offset)s;

-- name: count_calls
SELECT count(*) AS total
FROM mcp_calls
WHERE apikey_hash = %(apikey_hash)s
  AND (%(older_than)s::bigint IS NULL OR position < %(older_than)s)
  AND (%(tool)s = '' OR tool = %(tool)s)
  AND (%(status)s = '' OR status = %(status)s)
  AND (%(code)s = '' OR code = %(code)s)
  AND (%(client)s = '' OR client_name = %(client)s)
  AND (%(kind)s = '' OR kind = %(kind)s)
  AND (%(since)s::timestamptz IS NULL OR started_at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR started_at < %(until)s);

-- name: trim_calls
DELETE FROM mcp_calls
WHERE apikey_hash = %(apikey_hash)s AND position <= (
    SELECT position FROM mcp_calls WHERE apikey_hash = %(apikey_hash)s ORDER BY position DESC LIMIT 1 OFFSET %(max_rows)s
);

-- name: expire_calls
DELETE FROM mcp_calls
WHERE (apikey_hash, position) IN (
    SELECT apikey_hash, position FROM mcp_calls WHERE started_at < %(before)s ORDER BY started_at LIMIT %(limit)s
);
