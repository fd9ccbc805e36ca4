"""The tools of review, for the agent and for the person."""
