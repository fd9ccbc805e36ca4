"""What a server is made of: the parts that its doors need, how they end a wait, and in which order they close."""

import os
from dataclasses import dataclass

from holdfast.adapters.langfuse import LangfuseObserver
from holdfast.adapters.open_store import StorePorts
from holdfast.adapters.otlp import OtlpExporter
from holdfast.adapters.sqlite.state.file_cache import SqliteFileCache
from holdfast.adapters.sqlite.state.plan_notes import SqlitePlanNotes
from holdfast.app import App
from holdfast.auth.context import AuthContext
from holdfast.auth.keys import ApiKeys
from holdfast.auth.limits import Admission
from holdfast.auth.tokens import IssuerKeys
from holdfast.folders.service import OpenFolders
from holdfast.tools.dispatch import Dispatcher
from holdfast.tools.person.roots import list_known_roots
from holdfast.worker.service import Workers


@dataclass(frozen=True)
class OrganiserDatabases:
    """The tables of the organiser in state.db, each with a connection of its own."""

    files: SqliteFileCache
    notes: SqlitePlanNotes

    def close(self) -> None:
        """Close both."""
        self.files.close()
        self.notes.close()


@dataclass(frozen=True)
class ServerParts:
    """A server's inside, ready for its doors."""

    dispatcher: Dispatcher
    folders: OpenFolders
    app: App
    admission: Admission
    store_ports: StorePorts
    workers: Workers
    memory: OrganiserDatabases
    keys: ApiKeys | None = None
    plan_observer: LangfuseObserver | None = None
    exporter: OtlpExporter | None = None
    issuer_keys: IssuerKeys | None = None

    def tenant_of(self, apikey_hash: str) -> AuthContext | None:
        """Return the holder of a listed key by its hash, None when there is none."""
        return self.keys.tenant_of(apikey_hash) if self.keys else None

    def known_roots(self) -> list[str]:
        """Return the directories that are there, of those that agents were given, the settings name or changes were made in."""
        return [root.path for root in list_known_roots(self.app) if os.path.isdir(root.path)]

    def has_work(self) -> bool:
        """Return whether something waits here that a server must stay up for."""
        return self.app.reviews.has_pending() or self.workers.has_work() or self._is_reading()

    def _is_reading(self) -> bool:
        return bool(self.app.organiser.jobs.running()) or self.app.folder_search.has_work()

    def index_status(self) -> dict[str, object]:
        """Return how fresh the search index is, in plain values."""
        return {**self.workers.status().as_json(), "search": self.app.search.counts()}

    def release(self) -> None:
        """End the calls that wait for a person and the index workers, because the server is about to stop."""
        self.app.reviews.release()
        self.workers.release()

    def close(self) -> None:
        """Take no more calls and close what was opened."""
        self.dispatcher.close()
        self.app.observer.close()
        self.workers.stop()
        if self.exporter is not None:
            self.exporter.close()
        self.admission.close()
        if self.keys is not None:
            self.keys.close()
        self.app.organiser.close()
        self.app.folder_search.close()
        if self.plan_observer is not None:
            self.plan_observer.close()
        self.folders.close()
        self.app.reviews.close()
        self.memory.close()
        self.app.changes.close()
        self.store_ports.close()
