"""What is recorded of every call: the call log, metrics, traces; and what of it is left out."""
