"""Reaching the server, starting one in the background when there is none; many relays at once start exactly one.

Standard library only. Whoever starts or replaces a server holds `start.lock`; the others wait and find it running.
"""

import os
import socket
import sys
import time
from collections.abc import Callable

from holdfast import __version__
from holdfast.config.environment import background_environment
from holdfast.transport.client.dial import Client, Message, NoServer, ServerRefusal, dial, send_control
from holdfast.transport.state_folder import LOG, StateFolder

START_SECONDS = 30.0
LOCK_HELD_STATUS = 76
"""Exit status of a server that found another one holding the lock, and of nothing else."""
_POLL_SECONDS = 0.01


class CannotStart(Exception):
    """No server could be started; the message holds the end of its log."""


def reach(folder: StateFolder, client: Client, *, own_version: bool) -> tuple[socket.socket, Message]:
    """Return a connection to the server. With `own_version` a background server of another version is replaced.

    Raises ServerRefusal when the server refuses the roots, CannotStart when no server comes up.
    """
    try:
        line, welcome = dial(folder, client)
        if not (own_version and _is_replaceable(welcome)):
            return line, welcome
        line.close()
    except NoServer:
        pass
    if not folder.start_lock.take(START_SECONDS):
        raise CannotStart("Another process has been starting the server for too long; see `holdfast status`.")
    try:
        return _start(folder, client, own_version)
    finally:
        folder.start_lock.release()


def _start(folder: StateFolder, client: Client, own_version: bool) -> tuple[socket.socket, Message]:
    deadline = time.monotonic() + START_SECONDS
    server = _Background(folder)
    while True:
        try:
            line, welcome = dial(folder, client)
        except NoServer:
            server.make_sure_of_it()
        else:
            if not (own_version and _is_replaceable(welcome)):
                return line, welcome
            line.close()
            drain(folder)
        if time.monotonic() > deadline:
            raise CannotStart(f"The server did not come up within {START_SECONDS:g} s. {server.last_words()}")
        time.sleep(_POLL_SECONDS)


def _is_replaceable(welcome: Message) -> bool:
    """A server that a person keeps in a terminal stays, whatever its version."""
    return welcome.get("version") != __version__ and welcome.get("kind") == "background"


def drain(folder: StateFolder) -> bool:
    """Ask the running server to finish its calls and end; False when there is none."""
    try:
        send_control(folder, "drain")
    except (NoServer, ServerRefusal):
        return False
    return True


class _Background:
    def __init__(self, folder: StateFolder) -> None:
        self._folder = folder
        self._poll: Callable[[], int | None] | None = None
        self._log_start = 0

    def make_sure_of_it(self) -> None:
        """Start the server unless it is on its way; one that gave way to another is started again."""
        if self._poll is None:
            self._spawn()
            return
        status = self._poll()
        if status in (0, LOCK_HELD_STATUS):
            self._poll = None
        elif status is not None:
            raise CannotStart(f"The server ended with status {status} while starting. {self.last_words()}")

    def last_words(self) -> str:
        """Return where the log is and how it ends."""
        return f"Its log, {self._folder.file(LOG)!r}, ends: {self._folder.log_tail(self._log_start)}"

    def _spawn(self) -> None:
        from subprocess import DEVNULL, Popen  # here, because only the one who starts the server needs it

        log = self._folder.open_log()
        try:
            self._log_start = os.fstat(log).st_size
            self._poll = Popen(
                [sys.executable, "-P", "-m", "holdfast", "serve", "--background"],
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder.path,
                env=background_environment(self._folder.path),
                start_new_session=True,
            ).poll
        finally:
            os.close(log)
