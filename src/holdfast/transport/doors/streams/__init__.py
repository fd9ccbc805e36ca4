"""The doors that carry one connection of JSON-RPC messages: the Unix socket and stdio, and what they share with WebSocket."""
