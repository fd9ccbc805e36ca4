"""The organiser's parts on real files."""
