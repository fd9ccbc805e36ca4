"""Shows a review in VS Code: one process for each review, started without a shell.

The paths are absolute, so no file name can be read as an option.
"""

import os
import subprocess
import threading
from collections.abc import Sequence


class VscodePresenter:
    """Implements `holdfast.review.ports.Presenter`. `command` is the program and its own options."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self._lock = threading.Lock()
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def show(self, review_id: str, current: str, future: str) -> None:
        """Open the diff; a review that is shown already is not opened twice."""
        with self._lock:
            self._forget_ended()
            if review_id not in self._running:
                self._running[review_id] = _start([*self._command, "--wait", "--diff", current, future])

    def close(self, review_id: str) -> None:
        """End the program that waits for the diff to be closed."""
        with self._lock:
            process = self._running.pop(review_id, None)
            self._forget_ended()
        if process is not None and process.poll() is None:
            process.terminate()
            threading.Thread(target=process.wait, daemon=True).start()

    def end(self) -> None:
        """End every program that waits; the editor keeps its windows."""
        with self._lock:
            waiting = list(self._running)
        for review_id in waiting:
            self.close(review_id)

    def _forget_ended(self) -> None:
        """Forget the programs that have ended."""
        self._running = {key: process for key, process in self._running.items() if process.poll() is None}


def _start(arguments: list[str]) -> "subprocess.Popen[bytes]":
    if not all(os.path.isabs(path) for path in arguments[-2:]):
        raise ValueError("the files of a diff are named by absolute paths")
    return subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        close_fds=True,
    )
