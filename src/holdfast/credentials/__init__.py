"""Model keys of callers, kept for a worker: encrypted, short-lived, opened only for the job they were sealed for."""
