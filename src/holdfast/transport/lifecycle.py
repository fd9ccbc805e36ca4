"""Takes the lock that makes a process the one server of a state folder, from a background server if need be."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast import __version__
from holdfast.errors import ResourceBusy
from holdfast.transport.client.dial import NoServer, ServerRefusal, send_control
from holdfast.transport.client.launch import LOCK_HELD_STATUS
from holdfast.transport.shutdown import MAX_SHUTDOWN_SECONDS
from holdfast.transport.state_folder import StateFolder

BACKGROUND, FOREGROUND, IN_PROCESS = "background", "foreground", "in-process"
COMMAND = "command"
"""A command that works on the state itself because no server is running; others wait for it."""
_TAKE_OVER_SECONDS = MAX_SHUTDOWN_SECONDS + 5
_PREDECESSOR_WAIT_SECONDS = MAX_SHUTDOWN_SECONDS + 1
_SHORT_WAIT_SECONDS = 0.3


class LockHeld(ResourceBusy):
    """Another server holds the lock of this state folder."""

    exit_status = LOCK_HELD_STATUS


@contextmanager
def hold_server_lock(folder: StateFolder, kind: str) -> Iterator[None]:
    """Be the one server of this state folder. Raises LockHeld naming the process that already is.

    A foreground server asks a background one to drain and takes its place; meanwhile it holds `start.lock`, so that
    relays that lose their server wait for this one. A background server waits for a predecessor that is ending.
    A server's lock goes with its process and not before, so no thread of it works beside its successor.
    """
    wait = _PREDECESSOR_WAIT_SECONDS if kind == BACKGROUND else _SHORT_WAIT_SECONDS
    if kind == FOREGROUND:
        _take_over(folder)
    elif not folder.server_lock.take(wait, **_holder_facts(kind)):
        raise _lock_held(folder)
    try:
        yield
    finally:
        folder.forget()
        folder.start_lock.release()
        if kind == COMMAND:
            folder.server_lock.release()


def _take_over(folder: StateFolder) -> None:
    """Take the server's lock; the start lock stays held until `release_start_lock` or the end of the server."""
    folder.start_lock.take(_TAKE_OVER_SECONDS)
    deadline = time.monotonic() + _TAKE_OVER_SECONDS
    try:
        while not folder.server_lock.take(_SHORT_WAIT_SECONDS, **_holder_facts(FOREGROUND)):
            if folder.server_lock.holder().get("kind") in (FOREGROUND, IN_PROCESS) or time.monotonic() > deadline:
                raise _lock_held(folder)
            try:
                send_control(folder, "drain")
            except (NoServer, ServerRefusal):
                # It is starting or ending; its lock says which.
                continue
    except BaseException:
        folder.start_lock.release()
        raise


def release_start_lock(folder: StateFolder) -> None:
    """Let waiting relays connect: the socket is open."""
    folder.start_lock.release()


def _holder_facts(kind: str) -> dict[str, object]:
    return {"kind": kind, "version": __version__}


def _lock_held(folder: StateFolder) -> LockHeld:
    holder = folder.server_lock.holder()
    kind = holder.get("kind", "unknown")
    return LockHeld(
        f"A {kind} server is already running here (pid {holder.get('pid', 'unknown')}); `holdfast stop` ends it."
    )
