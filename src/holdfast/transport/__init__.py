"""The doors: stdio relay, Unix socket, HTTP, WebSocket."""
