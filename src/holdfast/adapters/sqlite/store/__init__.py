"""The project store in SQLite: one database file for each tenant."""
