"""Tests of the index workers."""
