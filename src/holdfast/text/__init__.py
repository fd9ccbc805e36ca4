"""Pure text rules: decoding, editing, diff, merge, media types, display, token budgets."""
