"""Plans of moves: build, approve, execute in batches, undo."""
