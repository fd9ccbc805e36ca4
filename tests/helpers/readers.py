"""Document readers that fail whatever the file is: they cannot start, are killed, or hang."""

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import holdfast
from holdfast.folders.children import confine
from tests.helpers.doors import until

_MODULE = b"holdfast.folders.children.extract_child"


@contextmanager
def no_reader() -> Iterator[None]:
    """Let no reader start in this process: none may read our own modules."""
    ours = str(Path(holdfast.__file__).parents[1])
    allowed = [path for path in confine._python_paths() if path != ours]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confine, "_python_paths", lambda: allowed)
        yield


def package_without_readers(place: Path) -> dict[str, str]:
    """Return the environment of a server whose readers cannot start: it runs from a copy, which they do not look in."""
    ours = Path(holdfast.__file__).parent
    shutil.copytree(ours, place / "holdfast", ignore=shutil.ignore_patterns("__pycache__"))
    return {"PYTHONPATH": str(place)}


@contextmanager
def signalled_reader(number: signal.Signals) -> Iterator[None]:
    """Send a signal to the first reader that this process starts meanwhile."""
    thread = threading.Thread(target=lambda: os.kill(until("a reader is there", _reader), number))
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _reader() -> int | None:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                words = Path("/proc", entry, "cmdline").read_bytes()
                parent = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
            if _MODULE in words and int(parent) == os.getpid():
                return int(entry)
    return None
