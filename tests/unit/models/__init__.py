"""Tests of the models behind search."""
