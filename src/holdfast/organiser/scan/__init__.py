"""Scanning a folder: the walk, rules for skipped entries and units, and a cheap first read of each file."""
