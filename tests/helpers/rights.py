"""A thread to which file permissions apply, though the tests run as root."""

import ctypes
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

_VERSION_3 = 0x20080522
_PAST_PERMISSIONS = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""


def like_anybody(run: Callable[[], None]) -> None:
    """Run something in a thread without root's right to open every file; threads that it starts lack it too."""

    def within() -> None:
        if sys.platform == "linux" and os.geteuid() == 0:
            _give_up_rights()
        run()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(within).result()


def _give_up_rights() -> None:
    """Take the two rights from this thread alone: the system keeps them by thread."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    rights = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, rights) == 0
    rights[0] &= ~_PAST_PERMISSIONS  # effective
    rights[1] &= ~_PAST_PERMISSIONS  # permitted: what access(2) goes by for root
    assert libc.capset(header, rights) == 0, os.strerror(ctypes.get_errno())
