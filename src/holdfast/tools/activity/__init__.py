"""What was called: the log of calls, for the person and for each tenant of its own calls."""
