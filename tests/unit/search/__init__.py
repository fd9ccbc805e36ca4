"""Tests of search: its pure rules, and its use cases with parts that fail on demand."""
