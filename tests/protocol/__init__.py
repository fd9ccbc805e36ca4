"""Tests: the protocol as the official suite, inspector and clients see it."""
