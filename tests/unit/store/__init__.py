"""Tests of the project store's rules."""
