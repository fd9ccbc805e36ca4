"""Files that another thread keeps changing, each holding the number of its last round, for races with search."""

import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Self

from tests.helpers import documents

NAMES = ("a.md", "b.md", "c.md", "d.pdf")
_ROUND = re.compile(r"round (\d{7}) end")
_PAUSE_SECONDS = 0.01


def round_of(text: str) -> int:
    """Return the round that a passage is from."""
    match = _ROUND.search(text)
    assert match is not None, text
    return int(match[1])


class Beacons:
    """`done` is the last round of each file; they are replaced, rewritten with their old times, made anew, swapped for links.

    Without a `secret` to link to they never go away, not for a moment.
    """

    def __init__(self, root: Path, secret: Path | None = None) -> None:
        self._root, self._secret = root, secret
        self.done: dict[str, int] = {}
        self._fault: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        for name in NAMES:
            self._replace(name, 0)
            self.done[name] = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join(30)
        assert self._fault is None

    def _run(self) -> None:
        random = Random(50)
        ways: list[Callable[[str, int], None]] = [self._replace, self._rewrite]
        if self._secret is not None:
            ways += [self._remake, self._link]
        try:
            for number in range(1, 10_000_000):
                name = random.choice(NAMES)
                random.choice(ways)(name, number)
                self.done[name] = number
                if self._stop.wait(_PAUSE_SECONDS):
                    return
        except BaseException as error:
            self._fault = error

    def _content(self, name: str, number: int) -> bytes:
        text = f"beacon round {number:07d} end"
        return documents.pdf(text) if name.endswith(".pdf") else f"{text}\n".encode()

    def _replace(self, name: str, number: int) -> None:
        spare = self._root / f".{name}"
        spare.write_bytes(self._content(name, number))
        spare.replace(self._root / name)

    def _rewrite(self, name: str, number: int) -> None:
        status = (self._root / name).stat()
        with (self._root / name).open("r+b") as file:
            file.write(self._content(name, number))
        os.utime(self._root / name, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _remake(self, name: str, number: int) -> None:
        (self._root / name).unlink()
        (self._root / name).write_bytes(self._content(name, number))

    def _link(self, name: str, number: int) -> None:
        assert self._secret is not None
        (self._root / name).unlink()
        (self._root / name).symlink_to(self._secret)
        self._replace(name, number)
