"""SQLite in the state folder; statements in the .sql files beside their modules."""
