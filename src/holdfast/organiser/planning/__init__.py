"""Building, correcting and explaining a plan from classified files."""
