"""Settings: the only rooms that read the environment and the settings file."""
