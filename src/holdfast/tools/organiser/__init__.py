"""The tools of the organiser, for the agent and for the person."""
