"""What a process and its children ask of the system, seen by strace: connections, lookups, and files made or changed."""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import holdfast

_CREATING = "creat,mkdir,mkdirat,link,linkat,symlink,symlinkat,rename,renameat,renameat2,mknod,mknodat"
_REMOVING = "truncate,unlink,unlinkat,rmdir"
_OPENING = "open,openat,openat2"
_SENDING = "bind,connect,sendto,sendmsg,sendmmsg"
_TWO_PLACES = ("rename", "renameat", "renameat2")
_WRITES = re.compile("O_WRONLY|O_RDWR|O_CREAT|O_TMPFILE|O_TRUNC")
_PATH = re.compile(r'(?:<([^>]*)>, )?"((?:[^"\\]|\\.)*)"')
_FAMILY = re.compile(r"sa_family=(AF_\w+)")
_PORT = re.compile(r"port=htons\((\d+)\)")
_HOST = re.compile(r'(?:inet_addr\(|inet_pton\(AF_INET6, )"([^"]*)"')
_UNIX = re.compile(r'sun_path=(@?)"([^"]*)"')
_LOOKUPS = ("/etc/resolv.conf", "/nscd/socket", "/systemd/resolve/")
_LOOPBACK = ("127.0.0.1", "::1")
_INWARD = ("AF_NETLINK", "AF_UNSPEC")
"""The kernel itself, and no address at all."""
_PACKAGES = (sys.prefix, sys.base_prefix, str(Path(holdfast.__file__).parent))


def traced(log: Path) -> list[str]:
    """Return the prefix of a command that is traced, with its children, into a log."""
    calls = f"{_OPENING},{_CREATING},{_REMOVING},{_SENDING}"
    return ["strace", "-f", "--seccomp-bpf", "-qq", "-y", "-s", "4096", "-o", str(log), "-e", f"trace={calls}"]


@dataclass(frozen=True)
class Allowance:
    """Where a process may write, and to which ports of this machine it may connect."""

    folders: tuple[Path, ...]
    ports: frozenset[int] = frozenset()

    def offences(self, log: Path) -> list[str]:
        """Return what the trace shows beyond the allowance, each once, in order."""
        offences: dict[str, None] = {}
        for line in log.read_text(errors="replace").splitlines():
            call = line.partition(" ")[2].strip()
            name, _, arguments = call.partition("(")
            if name in _SENDING.split(","):
                offences.update(dict.fromkeys(self._of_address(name, arguments)))
            elif name in f"{_OPENING},{_CREATING},{_REMOVING}".split(","):
                offences.update(dict.fromkeys(self._of_path(name, arguments)))
        return list(offences)

    def _of_address(self, name: str, arguments: str) -> list[str]:
        family = _FAMILY.search(arguments)
        if family is None or family[1] in _INWARD:
            return []
        if family[1] == "AF_UNIX":
            place = _UNIX.search(arguments)
            is_own = place is None or (not place[1] and self._may_write(place[2]))
            return [] if is_own or place is None else [f"{name} to the socket {place[1]}{place[2]}"]
        host, port = _HOST.search(arguments), _PORT.search(arguments)
        if host is not None and port is not None and host[1] in _LOOPBACK:
            is_server = name == "bind"  # what it listens at is of this machine alone
            if is_server or int(port[1]) in self.ports:
                return []
        return [f"{name} to {host[1] if host else family[1]} port {port[1] if port else '?'}"]

    def _of_path(self, name: str, arguments: str) -> list[str]:
        paths = [os.path.normpath(os.path.join(*pair)) for pair in _PATH.findall(arguments)]
        if any(lookup in path for path in paths for lookup in _LOOKUPS):
            return [f"lookup: {path}" for path in paths]
        if name in _OPENING.split(",") and not _WRITES.search(arguments):
            return []
        changed = paths if name in _TWO_PLACES else paths[-1:]
        return [f"{name} of {path}" for path in changed if not self._may_write(path)]

    def _may_write(self, path: str) -> bool:
        if path.startswith("/proc/self/fd/"):
            return True  # an open directory of its own; what is opened through it is traced by its path
        if "/__pycache__" in path and path.startswith(_PACKAGES):
            return True  # Python's own, beside its modules; an installation that is compiled has it already
        return path in ("/dev/null", "/dev/tty") or any(Path(path).is_relative_to(folder) for folder in self.folders)
