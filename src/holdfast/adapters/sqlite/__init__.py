"""State on this machine: SQLite in the state folder, every statement in queries.sql."""
