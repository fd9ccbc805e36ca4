"""Tests: tools."""
