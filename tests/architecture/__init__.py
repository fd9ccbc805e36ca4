"""Tests: architecture."""
