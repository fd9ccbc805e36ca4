"""The MCP protocol: messages, wire forms, progress, elicitation, and the SDK server behind them."""
