"""Tests: backups."""
