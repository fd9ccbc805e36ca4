-- What each tenant holds in all its projects: live files, and versions and deleted files. A tenant's usage is the sum of its
-- rows, of which one alone may be below zero.

CREATE TABLE mcp_tenant_bytes (
    apikey_hash char(64) NOT NULL CHECK (apikey_hash <> ''),
    slot integer NOT NULL,
    live_bytes bigint NOT NULL,
    history_bytes bigint NOT NULL,
    PRIMARY KEY (apikey_hash, slot)
) WITH (fillfactor = 50);

-- The owner is behind the wall too; for this moment, in which nobody else can use the tables, it is not.
ALTER TABLE mcp_files NO FORCE ROW LEVEL SECURITY;
ALTER TABLE mcp_file_versions NO FORCE ROW LEVEL SECURITY;
INSERT INTO mcp_tenant_bytes (apikey_hash, slot, live_bytes, history_bytes)
SELECT apikey_hash, 0, sum(live_bytes), sum(history_bytes) FROM (
    SELECT apikey_hash, CASE WHEN deleted THEN 0 ELSE size END AS live_bytes,
           CASE WHEN deleted THEN size ELSE 0 END AS history_bytes
    FROM mcp_files
    UNION ALL
    SELECT apikey_hash, 0, size FROM mcp_file_versions
) AS kept
GROUP BY apikey_hash;
ALTER TABLE mcp_files FORCE ROW LEVEL SECURITY;
ALTER TABLE mcp_file_versions FORCE ROW LEVEL SECURITY;

ALTER TABLE mcp_tenant_bytes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON mcp_tenant_bytes
    USING (apikey_hash = (SELECT holdfast_tenant())) WITH CHECK (apikey_hash = (SELECT holdfast_tenant()));
CREATE POLICY worker_usage ON mcp_tenant_bytes FOR SELECT TO holdfast_worker USING (true);
GRANT SELECT, INSERT, UPDATE ON mcp_tenant_bytes TO holdfast_app, holdfast_worker;

-- Over its share a tenant loses its oldest versions and deleted files; a live file cannot be removed.
CREATE INDEX mcp_files_oldest ON mcp_files (apikey_hash, deleted_at) WHERE deleted;
CREATE INDEX mcp_file_versions_oldest ON mcp_file_versions (apikey_hash, kept_at);
GRANT DELETE ON mcp_files TO holdfast_app;
CREATE POLICY only_deleted ON mcp_files AS RESTRICTIVE FOR DELETE TO holdfast_app USING (deleted);
GRANT SELECT (size) ON mcp_file_versions TO holdfast_worker;
