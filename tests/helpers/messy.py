"""A folder to be organised, in process: its jail, a call, and the results of a scan."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.adapters.sqlite.state.file_cache import SqliteFileCache, open_file_cache
from holdfast.auth.context import LOCAL_USER, Caller
from holdfast.call import Call
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.roots import close_roots, identity_of, open_roots
from holdfast.organiser.model import Excerpt, ScannedFile, SkipReason
from holdfast.organiser.scan.directory import ScanBatch, ScanOptions
from holdfast.organiser.scan.read import PeekedFile, peek_files, read_texts
from holdfast.organiser.scan.survey import FolderScan, Survey


class Messy:
    """Scans and reads one root."""

    def __init__(self, root: Path, jail: Jail, cache: SqliteFileCache) -> None:
        self.root, self.jail, self.cache = root, jail, cache
        self.call = Call(Caller(LOCAL_USER), timeout_seconds=100)

    def write(self, name: str, content: str | bytes = "words\n") -> Path:
        """Write a file, with the folders above it, and return its path."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def batches(
        self, folder: str = ".", *, include_hidden: bool = False, allow_symlinks: bool = False
    ) -> list[ScanBatch]:
        """Scan to the end."""
        return list(FolderScan(self.jail, self.call, folder, ScanOptions(include_hidden, allow_symlinks)))

    def scan(self, folder: str = ".", **options: bool) -> dict[str, ScannedFile]:
        """Return the files of a scan by relative path."""
        return {file.relative: file for batch in self.batches(folder, **options) for file in batch.files}

    def skipped(self, folder: str = ".", **options: bool) -> dict[str, SkipReason]:
        """Return the reasons of the skipped entries of a scan by relative path."""
        return {entry.relative: entry.reason for batch in self.batches(folder, **options) for entry in batch.skipped}

    def peek(self, name: str) -> PeekedFile:
        """Read the ends of one file."""
        return peek_files(self.jail, self.call, [self.scan()[name]])[0]

    def read_text(self, name: str, max_bytes: int = 100_000_000) -> Excerpt:
        """Read one file in both tiers."""
        result = self.peek(name)
        return read_texts(self.jail, self.call, [(result.file, result.excerpt)], max_bytes)[0]

    def survey(self, folder: str = ".") -> Survey:
        """Survey to the end and return it for its counts."""
        survey = Survey(self.jail, self.call, folder, ScanOptions(), self.cache)
        for _ in survey:
            pass
        return survey


@contextmanager
def messy_folder(place: Path) -> Iterator[Messy]:
    """Make a root and a state folder beside it."""
    root, state = place / "Downloads", place / "state"
    root.mkdir()
    state.mkdir(mode=0o700)
    roots = open_roots([str(root)], str(root), str(state))
    cache = open_file_cache(str(state))
    try:
        yield Messy(root, Jail(roots, hidden=[identity_of(state.stat())]), cache)
    finally:
        cache.close()
        close_roots(roots)
