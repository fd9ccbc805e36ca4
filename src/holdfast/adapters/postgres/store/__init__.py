"""The project store in PostgreSQL."""
