"""Writes the entry of Holdfast into the configuration files of MCP clients, byte for byte around it."""
