"""Pure: the values of the organiser: scanned and skipped files, excerpts, categories, verdicts, notes and measures of a plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from holdfast.folders.access.file_version import FileVersion

KEEP = "Keep_Current_Location"
"""The category of a file that stays where it is."""

MIN_CHARS = 40
"""A shorter text does not say where its file belongs."""

MIN_GUESS = 0.3
"""The confidence below which the nearest folder is not named as a guess: it would be wrong more than twice as often as right."""


class FileType(StrEnum):
    """The type of a directory entry; links are not followed."""

    FILE = "file"
    LINK = "link"
    DIRECTORY = "dir"


class Unit(StrEnum):
    """Why several files, or a directory with everything in it, form a unit that moves as one."""

    REPOSITORY = "repository"
    PROJECT = "project"
    BUNDLE = "bundle"
    PHOTO = "photo with its sidecars"
    ARCHIVE = "split archive"
    PAGE = "web page with its files"
    FILM = "video with its subtitles"


class ScannedFile(NamedTuple):
    """A file, a link or a unit that may be moved.

    `path` is absolute, as the allowed directory spells it; `relative` is the path from the scanned folder. A unit of
    files is represented by its main file, and `members` are the files that go with it. A unit that is a directory has no
    members and size 0: its content is not scanned.
    """

    path: str
    relative: str
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    device: int = 0
    inode: int = 0
    type: FileType = FileType.FILE
    unit: Unit | None = None
    members: tuple["ScannedFile", ...] = ()

    @property
    def name(self) -> str:
        """Return the file name without its folder."""
        return self.relative.rpartition("/")[2]

    @property
    def folder(self) -> str:
        """Return the folder of the file, by its path from the scanned folder; empty for the scanned folder itself."""
        return self.relative.rpartition("/")[0]

    @property
    def suffix(self) -> str:
        """Return the suffix in lower case with its dot, empty if there is none."""
        stem, dot, last = self.name.rpartition(".")
        return f".{last.lower()}" if dot and stem.strip(".") else ""

    @property
    def version(self) -> FileVersion:
        """Return the version of the file at the time of the scan."""
        return FileVersion(self.device, self.inode, self.size, self.mtime_ns, self.ctime_ns)


class SkipReason(StrEnum):
    """Why an entry was skipped, in the words that a person reads."""

    HIDDEN = "hidden"
    DEPENDENCIES = "installed packages"
    ENVIRONMENT = "virtual environment"
    BUNDLE = "application or library bundle"
    PLACEHOLDER = "cloud placeholder"
    IN_PROGRESS = "download in progress"
    BEING_WRITTEN = "still being written"
    IN_USE = "open in another program"
    SYSTEM = "belongs to the system"
    OWN = "belongs to Holdfast"
    LINK = "symbolic link"
    SPECIAL = "not a regular file"
    WHOLE = "folder kept whole"
    UNREADABLE = "cannot be read"


class SkippedFile(NamedTuple):
    """A file or directory that the scan skipped, by its path from the scanned folder; `detail` adds to the reason.

    UNREADABLE is an error; every other reason is expected.
    """

    relative: str
    reason: SkipReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Text of a file. Tier 0 is name and type alone, tier 1 the beginning and the end, tier 2 the whole text.

    `note` says why there is no tier 2 text: a broken document, a decompression bomb, bytes that are not text. A failure
    that `is_transient` is not the file's fault, so it is not cached and the next scan reads the file again.
    """

    text: str
    tier: int = 1
    bytes_read: int = 0
    content_type: str = "application/octet-stream"
    note: str = ""
    is_transient: bool = False


@dataclass(frozen=True, slots=True)
class Example:
    """A file known to belong to a category: it lies there, or a person put it there. The text is kept when the file is gone."""

    file_hash: str
    name: str
    category: str
    text: str = ""
    content_type: str = ""


@dataclass(frozen=True, slots=True)
class Category:
    """A place that files may go to: its name, its folder by the path from the scanned one, and files that belong there."""

    name: str
    folder: str
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """The reasons for a verdict: the most similar files in the category, the words that matched, the rule that applied."""

    nearest: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The category of a file, the confidence in it (0 to 1), and why; `decider` is the key that it is cached under."""

    category: str
    confidence: float
    requires_deep_scan: bool = False
    reasoning: str = ""
    evidence: Evidence = Evidence()
    decider: str = ""


@dataclass(frozen=True, slots=True)
class Measures:
    """The counts behind the four measures of a plan."""

    files: int = 0
    cache_hits: int = 0
    size_bytes: int = 0
    bytes_read: int = 0
    staying: int = 0
    skipped: Mapping[SkipReason, int] = field(default_factory=dict)

    @property
    def cache_hit_rate(self) -> float:
        """Return the share of files whose verdict was in the cache."""
        return self.cache_hits / self.files if self.files else 0.0

    @property
    def tokens_saved(self) -> int:
        """Return the number of tokens that were not read, at four bytes each."""
        return max(0, self.size_bytes - self.bytes_read) // 4

    @property
    def safety_skips(self) -> int:
        """Return how many entries were skipped."""
        return sum(self.skipped.values())

    @property
    def do_nothing_ratio(self) -> float:
        """Return the share of files that stay where they are."""
        return self.staying / self.files if self.files else 0.0


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to a chat model: the number of files in it, its times, the tokens used, and the error if it failed."""

    model: str
    files: int
    started_ns: int
    ended_ns: int
    usage: Mapping[str, int] = field(default_factory=dict)
    fault: str = ""


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """What an observer learns of a plan that was created or corrected: numbers, never the name or the text of a file.

    `measures` is None for a correction, and for a plan that could not be created because of `fault`.
    """

    plan_id: str
    event: str
    started_ns: int
    ended_ns: int
    counts: Mapping[str, int] = field(default_factory=dict)
    calls: tuple[ModelCall, ...] = ()
    measures: Measures | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class UncertainFile:
    """A file that stays because the confidence is below the gate: the best guess, and why it was not enough.

    `version_text` is the version of the file at the time of the scan.
    """

    relative: str
    file_hash: str
    category: str
    confidence: float
    reasoning: str
    version_text: str = ""


@dataclass(frozen=True, slots=True)
class DestinationFolder:
    """A folder that files may be sorted into: whether the plan creates it, and how many files in it are examples."""

    name: str
    folder: str
    is_new: bool
    example_count: int = 0


@dataclass(frozen=True, slots=True)
class Notes:
    """What is known of a plan besides its moves.

    `folder` is the folder that the plan is for, known before the plan is complete; all other paths are relative to it.
    `uncertain` and `skipped` hold the first of very many; `uncertain_count` counts them all. `decisions` are the folders
    that the user or the agent chose for single files, None for a file that is to stay; `agent_decisions` are the files
    that the agent decided on. `made_by` is the client that asked for the plan.
    """

    decider: str
    folder: str = ""
    destinations: tuple[DestinationFolder, ...] = ()
    uncertain: tuple[UncertainFile, ...] = ()
    uncertain_count: int = 0
    skipped: tuple[SkippedFile, ...] = ()
    measures: Measures = Measures()
    decisions: Mapping[str, str | None] = field(default_factory=dict)
    agent_decisions: frozenset[str] = frozenset()
    include_subfolders: bool = False
    remark: str = ""
    made_by: str = ""


@dataclass(frozen=True, slots=True)
class PastMove:
    """One move in the journal; id, kind and time are those of its plan."""

    plan_id: str
    seq: int
    kind: str
    moved_at: str
    src: str
    dest: str
    status: str
    reasoning: str
    confidence: float | None
    file_hash: str
