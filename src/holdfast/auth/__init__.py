"""Who is calling: one value, made once at the door."""
