"""Tests of sealed keys."""
