"""Attacks on a running server: floods beside a quiet client, what must end with the server, approvals of what nobody saw."""
