"""What can be called: the table of tools and the one path of every call."""
