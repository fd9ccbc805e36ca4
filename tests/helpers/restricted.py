"""Command lines that run a program with less than the tests have: without root's way past permissions, or as nobody."""

import os
import subprocess
from functools import cache

NOBODY = 65534
_PAST_PERMISSIONS = "--bounding-set=-dac_override,-dac_read_search,-fowner"


def like_an_owner() -> list[str]:
    """Return the prefix of a command that the permissions of its own files hold for, root's too."""
    return ["setpriv", _PAST_PERMISSIONS] if os.geteuid() == 0 else []


def as_user(uid: int) -> list[str]:
    """Return the prefix of a command that runs as another user; only for root."""
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]


@cache
def may_change_user() -> bool:
    """Return whether processes can be started as another user."""
    return os.geteuid() == 0 and subprocess.run([*as_user(NOBODY), "true"], check=False).returncode == 0
