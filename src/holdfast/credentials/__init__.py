"""Keys of callers that wait for a worker: sealed, short-lived, opened only for the job that they were sealed for."""
