"""Watches directories with the library `watchfiles`, one thread for each set of directories.

Nothing in them is opened: a name that was replaced by a link may report changes of another directory, never its content.
"""

import logging
import sys
import threading
from collections.abc import Callable, Sequence

MAX_DIRECTORIES = 4_000
"""Systems allow a user 8,192 watches or more in all, and other programs need some of them."""

_DEBOUNCE_MS = 500
_STEP_MS = 100
_JOIN_SECONDS = 1.0

_log = logging.getLogger(__name__)


class DirectoryWatch:
    """Calls `on_change` when something in one of the directories changed; ends by itself when they cannot be watched."""

    def __init__(self, directories: Sequence[str], on_change: Callable[[], None]) -> None:
        self._directories = directories
        self._on_change = on_change
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast-directories", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Return whether changes are still reported."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()
        self._thread.join(_JOIN_SECONDS)

    def _run(self) -> None:
        try:
            try:
                self._watch(lenient=False)
            except PermissionError:
                self._watch(lenient=True)
        except (OSError, RuntimeError) as error:
            _log.info("directories cannot be watched and are scanned instead: %s", type(error).__name__)
            self._on_change()

    def _watch(self, *, lenient: bool) -> None:
        """Watch until stopped; `lenient` skips directories that cannot be watched, whatever the reason."""
        from watchfiles import watch

        # macOS watches a whole tree at no cost per directory, so it gets only the topmost one.
        recursive = sys.platform == "darwin"
        for _ in watch(
            *(self._directories[:1] if recursive else self._directories),
            watch_filter=None,
            debounce=_DEBOUNCE_MS,
            step=_STEP_MS,
            stop_event=self._stop,
            recursive=recursive,
            ignore_permission_denied=lenient,
            force_polling=False,
            raise_interrupt=False,
        ):
            self._on_change()


def watch_directories(directories: Sequence[str], on_change: Callable[[], None]) -> DirectoryWatch | None:
    """Watch directories, the top one first; None when they are too many."""
    return DirectoryWatch(directories, on_change) if len(directories) <= MAX_DIRECTORIES else None
