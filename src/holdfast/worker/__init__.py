"""Background work on the store: lanes that keep the search index up to date, and the purge of what is out of retention."""
