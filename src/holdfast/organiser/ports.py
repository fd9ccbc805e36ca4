"""What the organiser needs from outside: a file cache, corrections, notes of plans, a classifier, an embedder, an observer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast.organiser.model import (
    Category,
    Example,
    Excerpt,
    ModelCall,
    Notes,
    PastMove,
    PlanRecord,
    ScannedFile,
    Verdict,
)
from holdfast.secret import Secret


@dataclass(frozen=True, slots=True)
class CachedFile:
    """What the cache keeps of one file under its hash: an excerpt and a verdict. None leaves what is cached already."""

    file: ScannedFile
    file_hash: str
    excerpt: Excerpt | None = None
    verdict: Verdict | None = None


class FileCache(Protocol):
    """Keeps excerpts and verdicts by the composite hash of a file, and finds that hash without opening the file."""

    def find_hashes(self, files: Sequence[ScannedFile]) -> list[str | None]:
        """Return the hash of each file whose device, inode, size and mtime are cached, in the same order."""

    def load_excerpts(self, hashes: Sequence[str]) -> dict[str, Excerpt]:
        """Return the excerpts by hash, from when the files were read last."""

    def load_verdicts(self, hashes: Sequence[str], decider: str) -> dict[str, Verdict]:
        """Return the verdicts of exactly this decider, by hash."""

    def save(self, files: Sequence[CachedFile]) -> None:
        """Save all files in one transaction; newer values replace older ones."""

    def trim(self, max_files: int) -> int:
        """Delete the oldest files beyond the maximum and return how many there were."""


class Corrections(Protocol):
    """Keeps a person's corrections as examples, by file hash for each scanned folder; newer ones replace older ones."""

    def save_corrections(self, root_dir: str, examples: Sequence[Example]) -> None:
        """Save corrections made in a folder."""

    def load_corrections(self, root_dir: str) -> list[Example]:
        """Return the corrections made in a folder, oldest first."""

    def delete_corrections(self, root_dir: str, hashes: Sequence[str]) -> None:
        """Delete the corrections of these files that were made in a folder."""


class PlanNotes(Protocol):
    """Keeps the notes of plans, and finds moves in the journal by path."""

    def save(self, plan_id: str, notes: Notes) -> None:
        """Save the notes of a plan, in place of older ones."""

    def load(self, plan_id: str) -> Notes | None:
        """Return the notes of a plan, None if there are none."""

    def find_moves(self, paths: Sequence[str], roots: Sequence[str]) -> list[PastMove]:
        """Return the moves from or to any of the paths, newest first, by plans that lie beneath the roots."""


class ClassifyFault(Exception):
    """A classifier failed; `verdicts` are in the order of the files, None for each file that it did not classify."""

    def __init__(self, reason: str, verdicts: Sequence[Verdict | None]) -> None:
        super().__init__(reason)
        self.verdicts = verdicts


class Classifier(Protocol):
    """Chooses a category for files."""

    @property
    def sends_to(self) -> str:
        """The receiver of file names and excerpts; empty if everything stays on this machine."""

    @property
    def decider(self) -> str:
        """The key that verdicts are cached under: it names the classifier, its model, prompt and settings."""

    def classify(
        self,
        files: Sequence[tuple[ScannedFile, Excerpt]],
        taxonomy: Sequence[Category],
        check: Callable[[], None],
        on_model_call: Callable[[ModelCall], None],
    ) -> list[Verdict]:
        """Return a verdict for each file, in the same order. ClassifyFault when the classifier fails.

        `check` is called between steps and may raise to stop the work. `on_model_call` is called after each request to
        a remote model.
        """


class SentenceEmbedder(Protocol):
    """Turns texts into normalised vectors of one length."""

    @property
    def model(self) -> str:
        """The name of the model, part of the key that verdicts are cached under."""

    def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Any]:
        """Return a float32 vector for each text; `check` is called between batches and may raise to stop the work."""


class PlanObserver(Protocol):
    """Receives a record of each plan."""

    def record(self, record: PlanRecord) -> None:
        """Take the record; never waits and never fails."""
