"""Holdfast: the file server that AI agents can be trusted with."""

__version__ = "0.1.0"
