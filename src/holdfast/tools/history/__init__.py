"""The person's view of changes: list, show, compare with the present, undo, redo, and let go of before-images."""
