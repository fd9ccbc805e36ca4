"""When descriptors run out: whichever open fails, each descriptor is closed exactly once and none stays open."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import HoldfastError
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.roots import close_roots, identity_of, open_roots
from holdfast.folders.access.syscalls import has_openat2
from tests.helpers.trees import plant

PATHS = ("a/b/c/file", "a/b/../b/c/file", "link/file", "a/b/up", "far/file", "a/missing/x", "a/b/c/file/x")


@pytest.fixture
def jail(root: Path, tmp_path: Path) -> Iterator[Jail]:
    """Give a jail that has to walk, since the state folder lies beneath its root."""
    plant(root, {"a": {"b": {"c": {"file": "x"}}}, "state": {}})
    (root / "link").symlink_to("a/b/../b/c")
    (root / "far").symlink_to(root / "a/b/c")
    (root / "a/b/up").symlink_to("../../a/b/c/file")
    roots = open_roots([str(root)], "/", str(root / "state"))
    assert roots[0].walk_only
    has_openat2()  # it looks once, by descriptors of its own
    yield Jail(roots, [identity_of((root / "state").stat())])
    close_roots(roots)


class Counted:
    """Stands for os.open, os.dup and os.close: one opening fails, every other is counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
        self.openings = 0
        self.open_now: set[int] = set()
        self.closed_twice: list[int] = []
        self._failing = failing
        self._close = os.close
        for name in ("open", "dup"):
            monkeypatch.setattr(os, name, self._counted(getattr(os, name)))
        monkeypatch.setattr(os, "close", self._closed)

    def _counted(self, real: Callable[..., int]) -> Callable[..., int]:
        def opening(*args: Any, **named: Any) -> int:
            self.openings += 1
            if self.openings == self._failing:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            fd = real(*args, **named)
            self.open_now.add(fd)
            return fd

        return opening

    def _closed(self, fd: int) -> None:
        if fd not in self.open_now:
            self.closed_twice.append(fd)
            return
        self.open_now.remove(fd)
        self._close(fd)


@pytest.mark.parametrize("path", PATHS)
def test_no_descriptor_is_closed_twice_or_left_open_whichever_open_fails(
    jail: Jail, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for failing in range(1, 30):
        for follow in (True, False):
            with monkeypatch.context() as patched:
                counted = Counted(patched, failing)
                with suppress(OSError, HoldfastError), jail.place(path, follow=follow):
                    pass
            assert (counted.closed_twice, counted.open_now) == ([], set()), failing
        with monkeypatch.context() as patched:
            counted = Counted(patched, failing)
            with suppress(OSError, HoldfastError), jail.open_file(path):
                pass
        assert (counted.closed_twice, counted.open_now) == ([], set()), failing
