"""Tests: folders."""
