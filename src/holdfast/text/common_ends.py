"""Pure: how much two contents have in common at their beginnings and at their ends, without holding either in memory."""

from collections.abc import Callable
from typing import AnyStr

_STEP_BYTES = 1 << 20

ReadAt = Callable[[int, int], bytes]
"""Returns so many bytes from an offset on, as `os.pread` does."""


def common_ends(read: ReadAt, size: int, read_other: ReadAt, other_size: int) -> tuple[int, int]:
    """Return how many bytes are the same at the beginnings, and how many of the rest at the ends."""
    shorter = min(size, other_size)
    prefix = 0
    while prefix < shorter:
        step = min(_STEP_BYTES, shorter - prefix)
        equal = common_prefix(read(step, prefix), read_other(step, prefix))
        prefix += equal
        if equal < step:
            break
    suffix = 0
    while suffix < shorter - prefix:
        step = min(_STEP_BYTES, shorter - prefix - suffix)
        ours = read(step, size - suffix - step)[::-1]
        theirs = read_other(step, other_size - suffix - step)[::-1]
        equal = common_prefix(ours, theirs)
        suffix += equal
        if equal < step:
            break
    return prefix, suffix


def common_prefix(ours: AnyStr, theirs: AnyStr) -> int:
    """Return how many characters or bytes are the same at the beginnings."""
    low, high = 0, min(len(ours), len(theirs))
    while low < high:
        middle = (low + high + 1) // 2
        if ours[low:middle] == theirs[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
