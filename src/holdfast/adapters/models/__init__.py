"""Models behind search: one on this machine, or any endpoint that speaks as OpenAI's and Cohere's do."""
