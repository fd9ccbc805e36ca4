"""Scanning a folder: walk, skip rules, units that stay together, and a cheap first read of each file."""
