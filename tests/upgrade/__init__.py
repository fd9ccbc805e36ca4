"""Tests: state made by earlier releases."""
