-- The call log: one row for each call of a tenant, with what is recorded of its parameters.

CREATE TABLE mcp_calls (
    apikey_hash char(64) NOT NULL CHECK (apikey_hash <> ''),
    position bigint GENERATED ALWAYS AS IDENTITY,
    id varchar(32) NOT NULL,
    tool varchar(64) NOT NULL,
    kind varchar(16) NOT NULL,
    identity text NOT NULL,
    client_name text NOT NULL,
    client_version text NOT NULL,
    door varchar(16) NOT NULL,
    started_at timestamptz NOT NULL,
    duration_ms double precision NOT NULL,
    status varchar(16) NOT NULL CHECK (status IN ('ok', 'error', 'cancelled', 'input_required')),
    code varchar(64) NOT NULL,
    cost double precision NOT NULL,
    parameters text NOT NULL,
    PRIMARY KEY (apikey_hash, position)
);
CREATE INDEX mcp_calls_age ON mcp_calls (started_at);

ALTER TABLE mcp_calls ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON mcp_calls
    USING (apikey_hash = (SELECT holdfast_tenant())) WITH CHECK (apikey_hash = (SELECT holdfast_tenant()));
CREATE POLICY worker_calls ON mcp_calls TO holdfast_worker USING (true);
GRANT SELECT, INSERT, DELETE ON mcp_calls TO holdfast_app;
GRANT SELECT (apikey_hash, position, started_at), DELETE ON mcp_calls TO holdfast_worker;
