"""What the organiser needs from outside: a memory of files and plans, examples, a classifier, an embedder, an observer."""

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
    """What is kept of one file: which one it was, what it said, and where somebody decided that it belongs.

    None leaves what is already kept under the same hash.
    """

    found: ScannedFile
    file_hash: str
    excerpt: Excerpt | None = None
    verdict: Verdict | None = None


class FileCache(Protocol):
    """Remembers files by their composite hash, and finds that hash again without opening the file."""

    def hashes(self, files: Sequence[ScannedFile]) -> list[str | None]:
        """Return the hash of each file whose device, inode, size and mtime are known, in the same order."""

    def excerpts(self, hashes: Sequence[str]) -> dict[str, Excerpt]:
        """Return what the files said when they were read last."""

    def verdicts(self, hashes: Sequence[str], decider: str) -> dict[str, Verdict]:
        """Return what that very decider said of the files."""

    def remember(self, memories: Sequence[CachedFile]) -> None:
        """Keep them, all in one transaction; newer takes the place of older."""

    def trim(self, max_files: int) -> int:
        """Let go of the oldest memories beyond so many, and say how many went."""


class Examples(Protocol):
    """Corrections of a person, kept by the file's hash for each scanned folder; newer takes the place of older."""

    def teach(self, root_dir: str, examples: Sequence[Example]) -> None:
        """Keep corrections made in a folder."""

    def lessons(self, root_dir: str) -> list[Example]:
        """Return the corrections made in a folder, oldest first."""


class PlanNotes(Protocol):
    """What is known of plans beside their moves, and which moves a path has to do with."""

    def save(self, plan_id: str, notes: Notes) -> None:
        """Keep the notes of a plan; newer take the place of older."""

    def load(self, plan_id: str) -> Notes | None:
        """Return the notes of a plan, None when there are none."""

    def past_of(self, paths: Sequence[str], roots: Sequence[str]) -> list[PastMove]:
        """Return the moves from or to one of the paths, newest first, by plans that lie beneath the roots."""


class ClassifyFault(Exception):
    """A classifier could not judge all files: what it did judge, in the order of the files, and why not the rest."""

    def __init__(self, reason: str, verdicts: Sequence[Verdict | None]) -> None:
        super().__init__(reason)
        self.verdicts = verdicts


class Classifier(Protocol):
    """Says where files belong. `decider` names the classifier, its model, prompt, category names and settings.

    `sends_to` is whom names and excerpts of files are sent to, empty for nobody. ClassifyFault when it fails.
    """

    @property
    def sends_to(self) -> str:
        """Who else reads what is judged."""

    @property
    def decider(self) -> str:
        """The part of the cache key that changes when verdicts would."""

    def decide(
        self,
        files: Sequence[tuple[ScannedFile, Excerpt]],
        taxonomy: Sequence[Category],
        check: Callable[[], None],
        told: Callable[[ModelCall], None],
    ) -> list[Verdict]:
        """Return a verdict for each file, in the same order; `check` is called on the way and may stop it.

        `told` hears of each request to a model elsewhere.
        """


class SentenceEmbedder(Protocol):
    """Turns texts into vectors of one length, normalised."""

    @property
    def model(self) -> str:
        """The name that its vectors are kept under."""

    def embed(self, texts: Sequence[str], key: Secret | None, check: Callable[[], None]) -> list[Any]:
        """Return a vector of float32 for each text; `check` is called between pieces and may stop it."""


class Observer(Protocol):
    """Is told of plans."""

    def record(self, record: PlanRecord) -> None:
        """Take notice; never waits and never fails."""
