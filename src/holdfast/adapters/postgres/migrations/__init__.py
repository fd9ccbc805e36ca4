"""The shape of the PostgreSQL store, one numbered file after another; a file that has been released is never edited."""
