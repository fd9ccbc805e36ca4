-- An index job names the span of the write that added it, where that was traced (W3C Trace Context).

ALTER TABLE mcp_file_index_jobs ADD COLUMN traceparent varchar(55);
