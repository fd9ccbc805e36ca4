"""Pure: identifies a version of a file by device, inode, size and times.

The stored forms differ in what they leave out. Device numbers change when a machine starts, so what must
outlive a restart leaves them out; the time of the last status change is left out where a rename must not count.
"""

from hashlib import sha256
from typing import NamedTuple, Protocol

END_BYTES = 4096
"""How many bytes at the beginning and at the end of a file its composite hash covers."""


class FileStatus(Protocol):
    """What is used of an `os.stat_result`."""

    @property
    def st_dev(self) -> int: ...  # noqa: D102  the names are those of stat(2)
    @property
    def st_ino(self) -> int: ...  # noqa: D102
    @property
    def st_size(self) -> int: ...  # noqa: D102
    @property
    def st_mtime_ns(self) -> int: ...  # noqa: D102
    @property
    def st_ctime_ns(self) -> int: ...  # noqa: D102


class FileVersion(NamedTuple):
    """One version of one file: it differs when the file was replaced, written, renamed or given other rights."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def from_stat(cls, status: FileStatus) -> "FileVersion":
        """Return the version that a status describes."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    @property
    def scan_text(self) -> str:
        """Return the form that a plan keeps of a file it left in doubt: everything."""
        return f"{self.device:x}.{self.inode:x}.{self.size:x}.{self.mtime_ns:x}.{self.ctime_ns:x}"

    @property
    def index_text(self) -> str:
        """Return the form that the index of a folder keeps: without the device."""
        return f"{self.inode:x}.{self.size:x}.{self.mtime_ns:x}.{self.ctime_ns:x}"

    @property
    def content_text(self) -> str:
        """Return the form in a cursor: without device and ctime, so that a rename between two reads does not count."""
        return f"{self.inode:x}.{self.size:x}.{self.mtime_ns:x}"


class HashedVersion(NamedTuple):
    """A version of a file and the composite hash that was computed from it."""

    version: FileVersion
    composite_hash: str


def identity_text(status: FileStatus) -> str:
    """Return device and inode in the form that is journalled."""
    return f"{status.st_dev}:{status.st_ino}"


def hash_ends(status: FileStatus, head: bytes, tail: bytes) -> str:
    """Return the composite hash of a file: size, mtime, first and last 4 KB; `tail` counts only in a longer file.

    A change in the middle that keeps size and time keeps the hash: it tells files apart, it does not prove content.
    """
    digest = sha256(b"%d\0%d\0%b" % (status.st_size, status.st_mtime_ns, head))
    if status.st_size > END_BYTES:
        digest.update(tail)
    return digest.hexdigest()
