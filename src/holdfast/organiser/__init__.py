"""Turns a messy folder into a plan: scan, read, classify; carrying it out is a matter of changes."""
