"""Pure: what the organiser knows: files and units that were found, what they say, where they belong, what was left alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from holdfast.folders.access.file_version import FileVersion

KEEP = "Keep_Current_Location"
"""The category of a file that is right where it is."""

MIN_CHARS = 40
"""A text shorter than this says nothing of where it belongs."""


class FileType(StrEnum):
    """What an entry is on the disk, links not followed."""

    FILE = "file"
    LINK = "link"
    DIRECTORY = "dir"


class Unit(StrEnum):
    """Why several files, or a directory with all that is in it, stay together."""

    REPOSITORY = "repository"
    PROJECT = "project"
    BUNDLE = "bundle"
    PHOTO = "photo with its sidecars"
    ARCHIVE = "split archive"
    PAGE = "web page with its files"


class ScannedFile(NamedTuple):
    """Something that may be moved: a file, a link, or a unit that moves as one.

    `path` is absolute, in the words of the allowed directory; `relative` is the path from the scanned folder.
    A unit of files is named by its main file, and `members` are those that go with it; a unit that is a directory has
    no members and size 0: nothing in it was looked at.
    """

    path: str
    relative: str
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    device: int = 0
    inode: int = 0
    kind: FileType = FileType.FILE
    unit: Unit | None = None
    members: tuple["ScannedFile", ...] = ()

    @property
    def name(self) -> str:
        """Return the file's own name."""
        return self.relative.rpartition("/")[2]

    @property
    def folder(self) -> str:
        """Return the path of the containing folder from the scanned one, empty for that one itself."""
        return self.relative.rpartition("/")[0]

    @property
    def suffix(self) -> str:
        """Return the suffix in lower case with its dot, empty when there is none."""
        stem, dot, last = self.name.rpartition(".")
        return f".{last.lower()}" if dot and stem.strip(".") else ""

    @property
    def version(self) -> FileVersion:
        """Return which version of which file the scan saw."""
        return FileVersion(self.device, self.inode, self.size, self.mtime_ns, self.ctime_ns)

    @property
    def look(self) -> str:
        """Return a text that differs when the file was replaced, written or renamed since."""
        return self.version.scan_text


class SkipReason(StrEnum):
    """Why an entry was left alone, in the words that a person is shown."""

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
    """What was left alone: its path from the scanned folder, why, and what more there is to say.

    UNREADABLE is an item with an error; every other reason is a matter of course.
    """

    relative: str
    reason: SkipReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What a file says. Tier 0 is its name and type alone, tier 1 its ends, tier 2 its text.

    `note` says why there is less than there could be: a broken document, a bomb, bytes that are no text. One that
    `is_transient` is not the file's doing, so it is not kept: the next scan reads the file again.
    """

    text: str
    tier: int = 1
    bytes_read: int = 0
    content_type: str = "application/octet-stream"
    note: str = ""
    is_transient: bool = False


@dataclass(frozen=True, slots=True)
class Example:
    """A file known to belong somewhere: by lying there, or because a person said so. Its text outlives the file."""

    file_hash: str
    name: str
    category: str
    text: str = ""
    content_type: str = ""


@dataclass(frozen=True, slots=True)
class Category:
    """One place that files may go: its name, its folder from the scanned one, and files that belong there."""

    name: str
    folder: str
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a verdict stands on: the nearest files already there, the words that matched, the rule that hit."""

    nearest: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Where a file belongs, how sure that is (0 to 1), and why."""

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
    kept: int = 0
    skipped: Mapping[SkipReason, int] = field(default_factory=dict)

    @property
    def cache_hit_rate(self) -> float:
        """Return the share of files whose verdict was known."""
        return self.cache_hits / self.files if self.files else 0.0

    @property
    def tokens_saved(self) -> int:
        """Return the tokens of what was not read, four bytes each."""
        return max(0, self.size_bytes - self.bytes_read) // 4

    @property
    def safety_skips(self) -> int:
        """Return how many entries were left alone."""
        return sum(self.skipped.values())

    @property
    def do_nothing_ratio(self) -> float:
        """Return the share of files that stay where they are."""
        return self.kept / self.files if self.files else 0.0


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to a chat model: about how many files, when, with how many tokens, and what went wrong with it."""

    model: str
    files: int
    started_ns: int
    ended_ns: int
    usage: Mapping[str, int] = field(default_factory=dict)
    fault: str = ""


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """What an observer is told of a plan that was made or revised: numbers, and never a name or a text of a file.

    `measures` is None for a revision, and for a plan that was not made because of `fault`.
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
    """A file that stays where it is because nobody is sure: the best guess, and why it was not enough.

    `look` is the file's at the time of the scan.
    """

    relative: str
    file_hash: str
    category: str
    confidence: float
    reasoning: str
    look: str = ""


@dataclass(frozen=True, slots=True)
class DestinationFolder:
    """One folder of the proposed order: whether a person made it, and how many files of it were learned from."""

    name: str
    folder: str
    is_new: bool
    known: int = 0


@dataclass(frozen=True, slots=True)
class Notes:
    """What is known of a plan beside its moves; `decisions` are the folders that somebody chose, None to leave a file.

    `folder` is what the plan is for, known before there is a plan; all other paths are from there. Of very many doubts
    and skips the first are kept; `doubted` counts them all.
    A `deep` plan sorts the files in subfolders as well. `maker` is the client that asked for it.
    """

    decider: str
    folder: str = ""
    shelves: tuple[DestinationFolder, ...] = ()
    doubts: tuple[UncertainFile, ...] = ()
    doubted: int = 0
    skips: tuple[SkippedFile, ...] = ()
    measures: Measures = Measures()
    decisions: Mapping[str, str | None] = field(default_factory=dict)
    deep: bool = False
    remark: str = ""
    maker: str = ""


@dataclass(frozen=True, slots=True)
class PastMove:
    """One move that a path has to do with, as it is in the journal; times and ids are those of its plan."""

    plan_id: str
    seq: int
    kind: str
    at: str
    src: str
    dest: str
    status: str
    reasoning: str
    confidence: float | None
    file_hash: str
