"""Open flags for files and directories that are reached without following a link, and a read that returns every byte."""

import os

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
