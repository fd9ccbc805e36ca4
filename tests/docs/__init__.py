"""Tests: docs."""
