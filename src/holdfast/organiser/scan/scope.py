"""Pure: which folders are too wide to organise: those of the system, and a whole home folder."""

from enum import Enum

_SYSTEM_FOLDERS = frozenset("/ /home /mnt/c /opt /private /private/var /run /Users /var /Volumes".split())  # noqa: SIM905
"""Folders whose own files belong to nobody or to everybody; what lies beneath may be a person's."""
_SYSTEM_TREES = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin", "/snap", "/sys", "/usr",
    "/var/cache", "/var/lib", "/var/log", "/var/spool",
    "/Applications", "/cores", "/Library", "/Network", "/private/etc", "/System",
    "/mnt/c/Program Files", "/mnt/c/Program Files (x86)", "/mnt/c/ProgramData", "/mnt/c/Windows",
)  # fmt: skip
"""Folders that belong to the system with everything beneath them."""


class FolderScope(Enum):
    """What a folder that is to be organised is."""

    FOLDER = "folder"
    HOME = "home"
    SYSTEM = "system"


def scope_of(path: str, home: str) -> FolderScope:
    """Return what the folder with that real path is, for the user with that home folder."""
    if path == home:
        return FolderScope.HOME
    if path in _SYSTEM_FOLDERS or any(path == tree or path.startswith(f"{tree}/") for tree in _SYSTEM_TREES):
        return FolderScope.SYSTEM
    return FolderScope.FOLDER
