"""Edits configuration files byte for byte around what changes: those of MCP clients, and the rules in Holdfast's own settings."""
