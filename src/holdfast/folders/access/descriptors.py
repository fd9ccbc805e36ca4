"""Open flags that follow no link, a read that returns every byte, and the composite hash of an open file."""

import os

from holdfast.folders.access.file_version import END_BYTES, hash_ends

READ_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
"""A FIFO or device does not block the open, and the caller checks that it got a regular file."""

READ_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def read_fully(fd: int, offset: int, length: int) -> bytes:
    """Return `length` bytes at an offset, fewer only where the file ends."""
    piece = os.pread(fd, length, offset)
    if len(piece) == length or not piece:
        return piece
    pieces, got = [piece], len(piece)
    while got < length and (piece := os.pread(fd, length - got, offset + got)):
        pieces.append(piece)
        got += len(piece)
    return b"".join(pieces)


def read_ends(fd: int, size: int) -> tuple[bytes, bytes]:
    """Return the first and the last 4 KB of an open file of that size; a shorter file is both, and is read once."""
    head = os.pread(fd, END_BYTES, 0)
    return head, (os.pread(fd, END_BYTES, size - END_BYTES) if size > END_BYTES else head)


def composite_hash(fd: int, status: os.stat_result) -> str:
    """Return the composite hash of an open regular file, at most 8 KB of which are read."""
    return hash_ends(status, *read_ends(fd, status.st_size))
