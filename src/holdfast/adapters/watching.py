"""Watches directories through the library `watchfiles`, one thread for each set, until it is told to stop.

Paths are only listened to: a name that was swapped for a link may bring news of another directory, never its content.
"""

import logging
import sys
import threading
from collections.abc import Callable, Sequence

MOST_DIRECTORIES = 4_000
"""Systems allow a user 8,192 watches or more in all, and other programs want some."""

_DEBOUNCE_MS = 500
_STEP_MS = 100
_END_SECONDS = 1.0

_log = logging.getLogger(__name__)


class DirectoryWatch:
    """Calls `stir` when something in one of the directories changed; ends by itself when they cannot be watched."""

    def __init__(self, directories: Sequence[str], stir: Callable[[], None]) -> None:
        self._directories = directories
        self._stir = stir
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast-watch", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Return whether changes are still told."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Watch no more."""
        self._stop.set()
        self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        try:
            try:
                self._watch(lenient=False)
            except PermissionError:
                self._watch(lenient=True)
        except (OSError, RuntimeError) as error:
            _log.info("directories are not watched, and looked at instead: %s", type(error).__name__)
            self._stir()

    def _watch(self, *, lenient: bool) -> None:
        """Watch until the end; one that is `lenient` passes over what cannot be watched, whatever the reason."""
        from watchfiles import watch

        # A system that watches whole trees at no cost per directory is given the top one alone.
        whole = sys.platform == "darwin"
        for _ in watch(
            *(self._directories[:1] if whole else self._directories),
            watch_filter=None,
            debounce=_DEBOUNCE_MS,
            step=_STEP_MS,
            stop_event=self._stop,
            recursive=whole,
            ignore_permission_denied=lenient,
            force_polling=False,
            raise_interrupt=False,
        ):
            self._stir()


def watch_directories(directories: Sequence[str], stir: Callable[[], None]) -> DirectoryWatch | None:
    """Watch directories, the top one first; None when they are too many."""
    return DirectoryWatch(directories, stir) if len(directories) <= MOST_DIRECTORIES else None
