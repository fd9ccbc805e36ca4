"""Connects to the server, starting one in the background when there is none; many relays at once start exactly one.

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
        connection, welcome = dial(folder, client)
        if not (own_version and _is_replaceable(welcome)):
            return connection, welcome
        connection.close()
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
    server = _BackgroundServer(folder)
    while True:
        try:
            connection, welcome = dial(folder, client)
        except NoServer:
            server.ensure_started()
        else:
            if not (own_version and _is_replaceable(welcome)):
                return connection, welcome
            connection.close()
            drain(folder)
        if time.monotonic() > deadline:
            raise CannotStart(f"The server did not come up within {START_SECONDS:g} s. {server.log_excerpt()}")
        time.sleep(_POLL_SECONDS)


def _is_replaceable(welcome: Message) -> bool:
    """Return whether the server has another version and no person keeps it in a terminal."""
    return welcome.get("version") != __version__ and welcome.get("kind") == "background"


def drain(folder: StateFolder) -> bool:
    """Ask the running server to finish its calls and end; False when there is none."""
    try:
        send_control(folder, "drain")
    except (NoServer, ServerRefusal):
        return False
    return True


class _BackgroundServer:
    """The server that this process starts, and what becomes of it while it starts."""

    def __init__(self, folder: StateFolder) -> None:
        self._folder = folder
        self._poll: Callable[[], int | None] | None = None
        self._log_start = 0

    def ensure_started(self) -> None:
        """Start the server unless it is starting already; one that ended because another held the lock is started again."""
        if self._poll is None:
            self._spawn()
            return
        status = self._poll()
        if status in (0, LOCK_HELD_STATUS):
            self._poll = None
        elif status is not None:
            raise CannotStart(f"The server ended with status {status} while starting. {self.log_excerpt()}")

    def log_excerpt(self) -> str:
        """Return where the log is and what the server wrote at its end."""
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
