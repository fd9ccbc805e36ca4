"""Attacks on a running server: floods by one client beside a quiet one, and what must end with the server."""
