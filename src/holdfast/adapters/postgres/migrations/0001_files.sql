-- Files, versions, projects, index jobs; two roles; a wall of row-level security around every tenant's rows.

DO $$
BEGIN
    CREATE ROLE holdfast_app NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
DO $$
BEGIN
    CREATE ROLE holdfast_worker NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
DO $$
BEGIN
    EXECUTE format('GRANT holdfast_app, holdfast_worker TO %I', current_user);
EXCEPTION WHEN OTHERS THEN
    IF NOT (pg_has_role(current_user, 'holdfast_app', 'MEMBER') AND pg_has_role(current_user, 'holdfast_worker', 'MEMBER'))
    THEN RAISE;
    END IF;
END $$;

CREATE FUNCTION holdfast_tenant() RETURNS character
LANGUAGE sql STABLE PARALLEL SAFE
RETURN nullif(current_setting('holdfast.apikey_hash', true), '')::bpchar;

-- The least path after this one whose first so many components differ from its own. Everything in it is immutable, so that
-- it becomes part of the query that calls it.
CREATE FUNCTION holdfast_beyond(path text, components integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN length(path) - length(replace(path, '/', '')) <= components THEN path || '!'
            ELSE substring(path FROM '^((?:/[^/]*){' || components::text || '})') || '0' END;

CREATE TABLE mcp_projects (
    apikey_hash char(64) NOT NULL CHECK (apikey_hash <> ''),
    project varchar(128) COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    file_count bigint NOT NULL CHECK (file_count >= 0),
    total_bytes bigint NOT NULL CHECK (total_bytes >= 0),
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (apikey_hash, project)
);

CREATE TABLE mcp_files (
    id bigint GENERATED ALWAYS AS IDENTITY,
    apikey_hash char(64) NOT NULL CHECK (apikey_hash <> ''),
    project varchar(128) COLLATE "C" NOT NULL,
    path varchar(1024) COLLATE "C" NOT NULL,
    content bytea NOT NULL,
    size bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    deleted boolean NOT NULL DEFAULT false,
    deleted_at timestamptz,
    version bigint NOT NULL,
    written_version bigint NOT NULL,
    PRIMARY KEY (apikey_hash, id)
);
-- Of two indexes that look equally good the planner takes the later one. Ranges need the one in collation "C": with the
-- other they read the whole project, and before the first ANALYZE the two look the same.
CREATE INDEX mcp_files_prefix ON mcp_files (apikey_hash, project, path text_pattern_ops) WHERE NOT deleted;
CREATE UNIQUE INDEX mcp_files_live ON mcp_files (apikey_hash, project, path) WHERE NOT deleted;
CREATE INDEX mcp_files_deleted ON mcp_files (apikey_hash, project, path) WHERE deleted;
CREATE INDEX mcp_files_purge ON mcp_files (deleted_at) WHERE deleted;

CREATE TABLE mcp_file_versions (
    apikey_hash char(64) NOT NULL,
    project varchar(128) COLLATE "C" NOT NULL,
    file_id bigint NOT NULL,
    version bigint NOT NULL,
    content bytea NOT NULL,
    size bigint NOT NULL,
    written_at timestamptz NOT NULL,
    kept_at timestamptz NOT NULL,
    PRIMARY KEY (apikey_hash, file_id, version),
    FOREIGN KEY (apikey_hash, file_id) REFERENCES mcp_files (apikey_hash, id) ON DELETE CASCADE
);
CREATE INDEX mcp_file_versions_purge ON mcp_file_versions (kept_at);

CREATE TABLE mcp_applied (
    apikey_hash char(64) NOT NULL CHECK (apikey_hash <> ''),
    project varchar(128) COLLATE "C" NOT NULL,
    key varchar(255) NOT NULL,
    digest char(64) NOT NULL,
    answer bigint NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (apikey_hash, project, key)
);
CREATE INDEX mcp_applied_purge ON mcp_applied (created_at);

CREATE TABLE mcp_file_index_jobs (
    id bigint GENERATED ALWAYS AS IDENTITY,
    apikey_hash char(64) NOT NULL CHECK (apikey_hash <> ''),
    project varchar(128) COLLATE "C" NOT NULL,
    file_path varchar(1024) COLLATE "C" NOT NULL,
    operation varchar(16) NOT NULL CHECK (operation IN ('UPSERT', 'DELETE')),
    file_updated_at timestamptz NOT NULL,
    version bigint NOT NULL,
    status varchar(24) NOT NULL
        CHECK (status IN ('pending', 'processing', 'waiting_credential', 'done', 'failed')),
    retry_count integer NOT NULL DEFAULT 0,
    available_at timestamptz NOT NULL,
    claim varchar(64),
    last_error text,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (apikey_hash, id)
);
CREATE UNIQUE INDEX mcp_file_index_jobs_open ON mcp_file_index_jobs (apikey_hash, project, file_path)
    WHERE status IN ('pending', 'processing', 'waiting_credential');
CREATE INDEX mcp_file_index_jobs_due ON mcp_file_index_jobs (status, available_at, id);

ALTER TABLE mcp_projects ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE mcp_files ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE mcp_file_versions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE mcp_applied ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE mcp_file_index_jobs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

CREATE POLICY tenant ON mcp_projects
    USING (apikey_hash = (SELECT holdfast_tenant())) WITH CHECK (apikey_hash = (SELECT holdfast_tenant()));
CREATE POLICY tenant ON mcp_files
    USING (apikey_hash = (SELECT holdfast_tenant())) WITH CHECK (apikey_hash = (SELECT holdfast_tenant()));
CREATE POLICY tenant ON mcp_file_versions
    USING (apikey_hash = (SELECT holdfast_tenant())) WITH CHECK (apikey_hash = (SELECT holdfast_tenant()));
CREATE POLICY tenant ON mcp_applied
    USING (apikey_hash = (SELECT holdfast_tenant())) WITH CHECK (apikey_hash = (SELECT holdfast_tenant()));
CREATE POLICY tenant ON mcp_file_index_jobs
    USING (apikey_hash = (SELECT holdfast_tenant())) WITH CHECK (apikey_hash = (SELECT holdfast_tenant()));

-- Across tenants the worker sees jobs, and what may be purged; for all else it sets the tenant.
CREATE POLICY worker_jobs ON mcp_file_index_jobs TO holdfast_worker USING (true) WITH CHECK (true);
CREATE POLICY worker_purge ON mcp_files FOR SELECT TO holdfast_worker USING (deleted);
CREATE POLICY worker_purge ON mcp_file_versions FOR SELECT TO holdfast_worker USING (true);
CREATE POLICY worker_purge ON mcp_applied FOR SELECT TO holdfast_worker USING (true);

GRANT SELECT, INSERT, UPDATE ON mcp_projects, mcp_files, mcp_file_index_jobs TO holdfast_app;
GRANT SELECT, INSERT, DELETE ON mcp_file_versions TO holdfast_app;
GRANT SELECT, INSERT ON mcp_applied TO holdfast_app;
GRANT SELECT, DELETE ON mcp_files TO holdfast_worker;
GRANT SELECT (apikey_hash, project, file_id, version, kept_at), DELETE ON mcp_file_versions TO holdfast_worker;
GRANT SELECT (apikey_hash, project, created_at), DELETE ON mcp_applied TO holdfast_worker;
GRANT SELECT, UPDATE, DELETE ON mcp_file_index_jobs TO holdfast_worker;
