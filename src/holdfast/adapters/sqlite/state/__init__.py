"""The state database (state.db): journal, plans, reviews, API keys, and what scans remember of files."""
