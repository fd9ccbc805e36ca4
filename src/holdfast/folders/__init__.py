"""Local folders: the jail, and everything that reads through it."""
