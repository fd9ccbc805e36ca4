"""The composition root: the one place that names adapters and puts the parts together."""

import os
import threading
from dataclasses import dataclass, field

from holdfast.app import App
from holdfast.auth.context import Caller
from holdfast.changes.service import Changes
from holdfast.config.settings import FolderSettings, Settings
from holdfast.folders.jail import Jail
from holdfast.folders.roots import close_roots, identity_of, open_roots
from holdfast.folders.service import Folders
from holdfast.tools.changing import CHANGING
from holdfast.tools.dispatch import Dispatcher
from holdfast.tools.finding import FINDING
from holdfast.tools.reading import READING
from holdfast.tools.registry import Registry

TOOLS = Registry([*READING, *FINDING, *CHANGING])


@dataclass
class FolderBook:
    """The open roots of every connection, each set of roots opened once and shared."""

    settings: FolderSettings
    state_dir: str
    _open: dict[tuple[str, tuple[str, ...]], Folders] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def folders_of(self, caller: Caller) -> Folders:
        """Return the folders of a caller; InvalidArgument when none of its roots can be used."""
        key = (caller.cwd, caller.roots)
        with self._lock:
            if key not in self._open:
                self._open[key] = self._opened(caller)
            return self._open[key]

    def close(self) -> None:
        """Give every descriptor back."""
        with self._lock:
            for folders in self._open.values():
                close_roots(folders.jail.roots)
            self._open.clear()

    def _opened(self, caller: Caller) -> Folders:
        roots = open_roots(caller.roots, caller.cwd, self.state_dir)
        return Folders(Jail(roots, hidden=[identity_of(os.stat(self.state_dir))]), self.settings)


@dataclass(frozen=True)
class Wired:
    """A server's inside, ready for its doors."""

    dispatcher: Dispatcher
    folders: FolderBook
    app: App

    def open_roots(self, caller: Caller) -> list[str]:
        """Open a caller's roots now, so that a bad one is said at the door; return their real paths.

        A caller without roots gets its working directory, so the door puts what comes back into the caller.
        """
        return self.folders.folders_of(caller).jail.allowed

    def close(self) -> None:
        """Close what was opened."""
        self.folders.close()


def build(settings: Settings, state_dir: str) -> Wired:
    """Put the parts together for one process that holds the lock of this state folder."""
    folders = FolderBook(settings.folders, state_dir)
    app = App(settings, folders.folders_of, Changes())
    return Wired(Dispatcher(app, TOOLS, settings), folders, app)
