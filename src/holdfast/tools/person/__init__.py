"""The person's tools for local folders, plans and the policy: what a console or a command needs and no agent may call."""
