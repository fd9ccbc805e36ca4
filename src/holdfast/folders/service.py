"""The folders of a caller: its jail and limits, opened once for each set of roots and rules, shared by connections."""

import os
import threading
import time
import weakref
from collections import OrderedDict
from dataclasses import dataclass, field, replace

from holdfast.auth.context import Caller, CallerKind
from holdfast.config.settings import FolderSettings
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.policy_rules import CHECK_SECONDS, PolicyRules, Rules, follow_links, policy_for
from holdfast.folders.access.roots import close_roots, identity_of, open_roots

_MAX_OPEN = 64
_MAX_CONNECTED = 200

FoldersKey = tuple[str, tuple[str, ...], Rules, Rules]


@dataclass(frozen=True)
class Folders:
    """What the folder tools work with; one for each set of roots and rules, shared by all calls of its connections."""

    jail: Jail
    settings: FolderSettings

    def approved(self) -> "Folders":
        """Return the same folders for changes that a person approved."""
        return replace(self, jail=self.jail.approved())


@dataclass
class _CachedFolders:
    """Open folders, with the rules for what links led to when they were last looked at."""

    folders: Folders
    linked_rules: Rules
    looked_at: float

    def is_outdated(self, binding: Rules) -> bool:
        """Return whether a root was removed since it was opened, or a link that a rule leads through has another target.

        A new directory at the same path does not count. Links are looked at twice a second at most.
        """
        jail = self.folders.jail
        if any(os.fstat(root.fd).st_nlink == 0 for root in jail.roots):
            return True
        if not binding or time.monotonic() - self.looked_at < CHECK_SECONDS:
            return False
        self.looked_at = time.monotonic()
        return follow_links(binding, jail.allowed_paths) != self.linked_rules


@dataclass
class OpenFolders:
    """A cache of the open roots of connections, by working directory, roots and rules; the least recently used leave first.

    One that has left is closed when its last call ends, and opened again when it is needed.
    """

    settings: FolderSettings
    state_dir: str
    rules: PolicyRules = field(default_factory=PolicyRules)
    _open: OrderedDict[FoldersKey, _CachedFolders] = field(default_factory=OrderedDict)
    _connected: OrderedDict[str, bool] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def folders_of(self, caller: Caller) -> Folders:
        """Return the folders of a caller; InvalidArgument when none of its roots can be used."""
        binding, common = self.rules.binding(caller)
        key = (caller.cwd, caller.roots, binding, common)
        with self._lock:
            cached = self._open.get(key)
            if cached is None or cached.is_outdated(binding):
                cached = self._open[key] = self._open_roots(caller, binding, common)
            self._open.move_to_end(key)
            if len(self._open) > _MAX_OPEN:
                self._open.popitem(last=False)
            return cached.folders

    def open_roots(self, caller: Caller) -> list[str]:
        """Open a caller's roots now, so that a bad one is refused before the first call; return their real paths.

        A caller without roots gets its working directory, so the door puts what comes back into the caller.
        """
        paths = self.folders_of(caller).jail.allowed_paths
        if caller.kind is CallerKind.AGENT and not caller.client.is_command:
            with self._lock:
                for path in paths:
                    self._connected[path] = self._connected.pop(path, False) or caller.door is None
                while len(self._connected) > _MAX_CONNECTED:
                    self._connected.popitem(last=False)
        return paths

    def connected_roots(self) -> list[tuple[str, bool]]:
        """Return the directories that agents were given since the server started, the last one first.

        With each comes whether it was given to the server itself, for callers over HTTP.
        """
        with self._lock:
            return list(reversed(self._connected.items()))

    def close(self) -> None:
        """Drop every set of roots; each is closed when its last call ends."""
        with self._lock:
            self._open.clear()

    def _open_roots(self, caller: Caller, binding: Rules, common: Rules) -> _CachedFolders:
        roots = open_roots(caller.roots, caller.cwd, self.state_dir)
        allowed, looked_at = [root.path for root in roots], time.monotonic()
        linked_rules = follow_links(binding, allowed)
        jail = Jail(roots, [identity_of(os.stat(self.state_dir))], policy_for(binding, allowed), common)
        weakref.finalize(jail, close_roots, roots)
        return _CachedFolders(Folders(jail, self.settings), linked_rules, looked_at)
