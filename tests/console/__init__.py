"""The console's pages in a real browser, against a real server with real agents."""
