"""Classifying files: which folder a file belongs to, and how confident the answer is."""
