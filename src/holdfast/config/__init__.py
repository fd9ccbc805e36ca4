"""Settings: the only package that reads the environment and the settings file."""
