"""The store on PostgreSQL, for more than one machine: every statement in store.sql, every table in migrations."""
