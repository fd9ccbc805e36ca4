"""Runs programs with less than the tests have: without root's way past permissions, as nobody, or as on an older kernel.

python -m tests.helpers.restricted nobody COMMAND…     as another user; only for root
python -m tests.helpers.restricted older COMMAND…      without openat2 and Landlock, for all that the command starts
"""

import ctypes
import errno
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

NOBODY = 65534
_PAST_PERMISSIONS = "--bounding-set=-dac_override,-dac_read_search,-fowner"
_NEWER_CALLS = (437, 444, 445, 446)
"""openat2 and the three calls of Landlock; their numbers are the same on every architecture that is supported."""
_SET_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


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


def hide_newer_calls() -> None:
    """Let the kernel answer this process, and all that it starts, as one without openat2 and Landlock: ENOSYS."""
    jumps = len(_NEWER_CALLS)
    program = [struct.pack("=HBBI", _LOAD, 0, 0, 0)]
    for index, number in enumerate(_NEWER_CALLS):
        program.append(struct.pack("=HBBI", _JUMP_IF_EQUAL, jumps - index, 0, number))
    program.append(struct.pack("=HBBI", _RETURN, 0, 0, _ALLOW))
    program.append(struct.pack("=HBBI", _RETURN, 0, 0, _ERRNO | errno.ENOSYS))
    code = ctypes.create_string_buffer(b"".join(program))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0), (_SET_SECCOMP, _FILTER, header, 0, 0)):
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _run_as_nobody(command: list[str]) -> int:
    """Run a command as nobody, who has a home and a folder for temporary files, and return its exit status.

    Where Python lies in a home that is closed to others, the command gets a view of the file system of its own in which
    only the way to Python leads through it.
    """
    own = Path(tempfile.mkdtemp(prefix="nobody-"))
    os.chown(own, NOBODY, NOBODY)
    environment = {**os.environ, "HOME": str(own), "TMPDIR": str(own), "PYTHONDONTWRITEBYTECODE": "1"}
    script = "set -e\n"
    for closed, name in _ways_through_closed_folders():
        script += (
            f"mkdir {own}/way && mount --bind {closed / name} {own}/way && mount -t tmpfs -o mode=755 none {closed}\n"
            f"mkdir {closed / name} && mount --move {own}/way {closed / name} && rmdir {own}/way\n"
        )
    view = ["unshare", "-m", "sh", "-c", f'{script}exec "$@"', "sh"]
    try:
        return subprocess.run([*view, *as_user(NOBODY), *command], env=environment, check=False).returncode
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _ways_through_closed_folders() -> list[tuple[Path, str]]:
    """Return each folder above this Python that others cannot pass, and the name in it that leads on."""
    ways: dict[Path, str] = {}
    for path in (Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve()):
        for below, parent in zip((path, *path.parents), path.parents, strict=False):
            if not parent.stat().st_mode & 0o001:
                ways[parent] = below.name
    return sorted(ways.items())


def main(arguments: list[str]) -> None:
    """Run a command as the first argument says."""
    how, *command = arguments
    if how == "older":
        hide_newer_calls()
        os.execvp(command[0], command)
    elif how == "nobody":
        raise SystemExit(_run_as_nobody(command))
    raise SystemExit(f"nobody or older, not {how!r}")


if __name__ == "__main__":
    main(sys.argv[1:])
