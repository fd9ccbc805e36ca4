"""Single changes: write, edit, move, delete, create a directory, and their undo."""
