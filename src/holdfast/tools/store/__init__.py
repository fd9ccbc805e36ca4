"""The tools of the project store."""
