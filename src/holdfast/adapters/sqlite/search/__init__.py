"""The search indexes in SQLite: of the project store and of local folders."""
