"""The store and the search index on PostgreSQL; statements in .sql files, tables in migrations/."""
