"""What was done to local files: listed, shown, compared with the present, and previewed before it is undone."""
