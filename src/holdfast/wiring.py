"""The composition root: the one place that names adapters and puts the parts together."""

import os
import threading
import weakref
from collections import OrderedDict
from dataclasses import dataclass, field

from holdfast.adapters.counters import MemoryCounters
from holdfast.adapters.redis import RedisCounters, redis_fault
from holdfast.adapters.sqlite.inspect import inspect_database
from holdfast.adapters.sqlite.journal import open_journal
from holdfast.adapters.sqlite.keys import SqliteKeys
from holdfast.adapters.store import OpenStore, build_store, migrate_store, missing_steps
from holdfast.app import App
from holdfast.auth.context import AuthContext, Caller
from holdfast.auth.keys import Keys
from holdfast.auth.limits import Admission
from holdfast.changes.service import Changes
from holdfast.config.environment import variable
from holdfast.config.settings import FolderSettings, Settings
from holdfast.folders.jail import Jail
from holdfast.folders.roots import close_roots, identity_of, is_gone, open_roots
from holdfast.folders.service import Folders
from holdfast.tools.changing import CHANGING
from holdfast.tools.dispatch import Dispatcher
from holdfast.tools.finding import FINDING
from holdfast.tools.pipe import MCP_PIPE
from holdfast.tools.reading import READING
from holdfast.tools.registry import Registry
from holdfast.tools.storing import STORING

KEPT_ROOT_SETS = 64

TOOLS = Registry([*READING, *FINDING, *CHANGING, *STORING, MCP_PIPE])


@dataclass
class FolderBook:
    """The open roots of the connections that were lately used; a set of roots is opened once and shared.

    One that has fallen out is closed when its last call ends, and opened again when it is needed.
    """

    settings: FolderSettings
    state_dir: str
    _open: OrderedDict[tuple[str, tuple[str, ...]], Folders] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def folders_of(self, caller: Caller) -> Folders:
        """Return the folders of a caller; InvalidArgument when none of its roots can be used."""
        key = (caller.cwd, caller.roots)
        with self._lock:
            found = self._open.get(key)
            if found is None or any(is_gone(root) for root in found.jail.roots):
                found = self._open[key] = self._opened(caller)
            self._open.move_to_end(key)
            if len(self._open) > KEPT_ROOT_SETS:
                self._open.popitem(last=False)
            return found

    def close(self) -> None:
        """Let go of every set of roots."""
        with self._lock:
            self._open.clear()

    def _opened(self, caller: Caller) -> Folders:
        roots = open_roots(caller.roots, caller.cwd, self.state_dir)
        jail = Jail(roots, hidden=[identity_of(os.stat(self.state_dir))])
        weakref.finalize(jail, close_roots, roots)
        return Folders(jail, self.settings)


@dataclass(frozen=True)
class Wired:
    """A server's inside, ready for its doors."""

    dispatcher: Dispatcher
    folders: FolderBook
    app: App
    admission: Admission
    opened: OpenStore
    keys: Keys | None = None

    def open_roots(self, caller: Caller) -> list[str]:
        """Open a caller's roots now, so that a bad one is said at the door; return their real paths.

        A caller without roots gets its working directory, so the door puts what comes back into the caller.
        """
        return self.folders.folders_of(caller).jail.allowed

    def tenant_of(self, apikey_hash: str) -> AuthContext | None:
        """Return the holder of a listed key by its hash, None for nobody."""
        return self.keys.tenant_of(apikey_hash) if self.keys else None

    def close(self) -> None:
        """Take no more calls and close what was opened."""
        self.dispatcher.close()
        self.admission.close()
        if self.keys is not None:
            self.keys.close()
        self.folders.close()
        self.app.changes.close()
        self.opened.close()


def build(settings: Settings, state_dir: str) -> Wired:
    """Put the parts together for one process that holds the lock of this state folder."""
    folders = FolderBook(settings.folders, state_dir)
    changes = Changes(open_journal(state_dir), state_dir, settings.journal)
    changes.recover()
    opened = build_store(settings.mcp.files, state_dir, variable("DATABASE_URL"))
    app = App(settings, folders.folders_of, changes, opened.store)
    keys = open_keys(state_dir) if settings.auth.mode == "listed" else None
    admission = _admission(settings, keys)
    return Wired(Dispatcher(app, TOOLS, settings, admission), folders, app, admission, opened, keys)


def _admission(settings: Settings, keys: Keys | None) -> Admission:
    url, local = variable("REDIS_URL"), MemoryCounters()
    tenants = RedisCounters(url) if url else local
    return Admission(settings.limits, tenants, local, keys.find if keys else None)


def open_keys(state_dir: str) -> Keys:
    """Open the list of keys of a state folder, beside a running server or without one."""
    return Keys(SqliteKeys(os.path.join(state_dir, "state.db")))


def migrate() -> list[str]:
    """Bring the project store of this deployment to the newest shape; returns the steps that were taken."""
    return migrate_store(variable("DATABASE_URL"))


def missing_migrations() -> list[str]:
    """Return the steps that `migrate` would take. Raises what keeps a server from using its store."""
    return missing_steps(variable("DATABASE_URL"))


def database_fault(path: str) -> str | None:
    """Return what is wrong with a state database, None when nothing is; the file is only looked at."""
    return inspect_database(path)


def counter_fault(redis_url: str) -> str | None:
    """Return what is wrong with the Redis at an address, None when it answers. InvalidArgument when it is none."""
    return redis_fault(redis_url)
