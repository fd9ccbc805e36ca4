"""The tool `mcp_pipe`: several tool calls in one request."""
