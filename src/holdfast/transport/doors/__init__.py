"""The doors of a server: Unix socket, stdio, HTTP and WebSocket, and the guard in front of them."""
