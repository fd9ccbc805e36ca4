"""Background upkeep of the journal: packs and expires images, expires quarantined files, checkpoints the database."""

import logging
import threading

from holdfast.changes.disk.images import Images
from holdfast.changes.disk.pack_images import ImagePacker
from holdfast.changes.disk.quarantine import Quarantine
from holdfast.changes.ports import Journal
from holdfast.clock import utc_days_ago
from holdfast.config.settings import JournalSettings

_log = logging.getLogger(__name__)
_INTERVAL_SECONDS = 1.0


class JournalUpkeep:
    """A thread that runs after changes, at most once a second, and sleeps while nothing changes."""

    def __init__(self, journal: Journal, images: Images, quarantine: Quarantine, settings: JournalSettings) -> None:
        self._journal = journal
        self._images = images
        self._quarantine = quarantine
        self._settings = settings
        self._warned: frozenset[str] = frozenset()
        self._due = threading.Event()
        self._closing = threading.Event()
        self._started = threading.Event()
        self._starting = threading.Lock()
        self.packer = ImagePacker(journal.images, images, self._closing.is_set)
        self._thread = threading.Thread(target=self._loop, name="journal-upkeep", daemon=True)

    def wake(self) -> None:
        """Ask for a round after a change; never waits."""
        if not self._started.is_set():
            self._start()
        self._due.set()

    def run(self) -> None:
        """Do one round now."""
        if self.packer.run():
            self._due.set()
        kept_since = utc_days_ago(self._settings.keep_days)
        files = self._journal.images.expire(self._images.room.cap_bytes, kept_since)
        self._images.remove_files(files)
        self._quarantine.purge(self._journal.plans, kept_since)
        self._journal.checkpoint()
        self._log_warnings()

    def _log_warnings(self) -> None:
        """Log which history is nearly full, once for each root."""
        warnings = self._images.room.warnings()
        for _ in warnings.keys() - self._warned:
            _log.warning("The undo history of an allowed directory is nearly full; `holdfast status` says of which.")
        self._warned = frozenset(warnings)

    def close(self) -> None:
        """Stop the thread and wait for it."""
        self._closing.set()
        self._due.set()
        with self._starting:
            if self._started.is_set():
                self._thread.join()
            self._started.set()

    def _start(self) -> None:
        with self._starting:
            if not self._started.is_set():
                self._thread.start()
                self._started.set()

    def _loop(self) -> None:
        while not self._closing.wait(_INTERVAL_SECONDS):
            self._due.wait()
            if self._closing.is_set():
                return
            self._due.clear()
            try:
                self.run()
            except Exception as error:  # noqa: BLE001 -- the thread outlives any failure of one round
                _log.warning("upkeep of the journal failed: %s", type(error).__name__)
