"""The tools of local folders: read, find, change, search."""
