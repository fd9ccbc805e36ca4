"""The schema of the PostgreSQL store as numbered migrations; a released one is never edited.

The two `text_pattern_ops` indexes are part of the documented schema, for programs that query the tables by LIKE.
Holdfast's own statements range over paths in collation "C": none uses `mcp_files_prefix`, and where the planner takes
`mcp_file_chunks_prefix`, `mcp_file_chunks_place` would serve as well.
"""
