"""The use cases that change local files; nothing else in Holdfast does."""


class Changes:
    """Writes, edits, moves and deletes through the journal, and takes them back."""
