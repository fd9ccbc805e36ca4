"""What the environment says: where the state folder is and which settings file to read. Standard library only."""

import os
import sys
from pathlib import Path

STATE_DIR_VARIABLE = "HOLDFAST_STATE_DIR"
SETTINGS_VARIABLE = "HOLDFAST_SETTINGS"


def state_dir() -> str:
    """Return the state folder of this user: HOLDFAST_STATE_DIR, else the platform's data folder."""
    named = os.environ.get(STATE_DIR_VARIABLE)
    if named:
        return os.path.abspath(named)
    if sys.platform == "darwin":
        return str(Path.home() / "Library" / "Application Support" / "holdfast")
    data_home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return str(Path(data_home) / "holdfast")


def variable(name: str) -> str | None:
    """Return an environment variable, None when it is unset or empty."""
    return os.environ.get(name) or None
