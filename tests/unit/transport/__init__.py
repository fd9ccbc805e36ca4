"""Tests: the doors, in process."""
