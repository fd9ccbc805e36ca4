"""What lies outside: databases, models, other programs. Only wiring names these."""
