"""Tests: changes."""
