"""Says which version runs: its number, and the commit that a wheel was built from or a checkout is at."""

import subprocess
from importlib.resources import files
from pathlib import Path

from holdfast import __version__


def version_text() -> str:
    """Return the number with the commit in brackets; the number alone where the commit is not known."""
    commit = _built_commit() or _checkout_commit()
    return f"{__version__} ({commit})" if commit else __version__


def _built_commit() -> str:
    """Return what the build of the wheel wrote beside the package."""
    try:
        return files("holdfast").joinpath("commit.txt").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _checkout_commit() -> str:
    """Return where git is, when the package lies in the `src` folder of a checkout."""
    top = Path(__file__).resolve().parents[3]
    if not (top / ".git").exists() or top / "src" / "holdfast" / "cli" / "version.py" != Path(__file__).resolve():
        return ""
    command = ["git", "-C", str(top), "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return ran.stdout.strip()
