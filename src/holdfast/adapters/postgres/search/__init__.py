"""The search index in PostgreSQL."""
