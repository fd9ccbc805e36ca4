"""The person's web console: its sessions, its JSON API, its events, and the built pages."""
