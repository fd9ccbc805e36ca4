"""Pure: what search in local folders knows: files as they were seen, passages with their line, how far an index is."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from holdfast.store.paths import Span
from holdfast.text.display import display_name

PROJECT = "folder"
"""The one project of a folder's index."""

WHOLE = 100

_LAST = "\U0010ffff"


class ContentKind(StrEnum):
    """How a file's text is come by, or why nothing is kept of it: it has none, or something was in the way."""

    TEXT = "text"
    DOCUMENT = "document"
    PAGE = "page"
    NONE = "none"
    NO_ROOM = "no room"
    UNREAD = "unread"
    UNOPENED = "unopened"
    TOO_LARGE = "too large"

    @property
    def is_extracted(self) -> bool:
        """Return whether a confined child takes the text out."""
        return self in (ContentKind.DOCUMENT, ContentKind.PAGE)

    @property
    def is_transient(self) -> bool:
        """Return whether a server that starts anew should try the file again."""
        return self in (ContentKind.NO_ROOM, ContentKind.UNREAD, ContentKind.UNOPENED, ContentKind.TOO_LARGE)


class FileRecord(NamedTuple):
    """A file as the index holds it: what its status was, and a hash of its text, or of its bytes when extracted.

    An empty look means that it must be read again at the next scan, because it was written a moment before.
    """

    look: str
    kind: ContentKind
    digest: str = ""
    size: int = 0

    def holds_as(self, read: "FileRecord") -> bool:
        """Return whether a file that was read again gives the text that is known."""
        return (self.kind, self.digest) == (read.kind, read.digest)


class IndexProgress(NamedTuple):
    """How many files a scanned root has, how many of them are read, and how many have all their vectors.

    `unread` are those that count as read although their readers failed; `unruled` are the directories whose ignore rules
    are too many to follow.
    """

    is_scanned: bool
    total: int
    read: int
    embedded: int
    is_cut: bool
    unread: int = 0
    unruled: tuple[str, ...] = ()

    @property
    def words(self) -> int:
        """Return the share of files whose words are in, in percent."""
        return self._percent(self.read)

    @property
    def meaning(self) -> int:
        """Return the share of files whose meaning is in, in percent."""
        return self._percent(self.embedded)

    def notices(self, root: str) -> list[str]:
        """Return what a caller should know of an answer from here."""
        found, name = [], display_name(root)
        if self.words < WHOLE:
            found.append(
                f"The index of {name} is {self.words} % ready. What it lacks was searched by words, for 2 seconds at most: "
                "search again later for the rest."
            )
        elif self.meaning < WHOLE:
            found.append(f"The index of {name} has all words; meaning is {self.meaning} % ready.")
        if self.is_cut:
            found.append(f"{name} has more files or text than settings.search_folders allows: some are left out.")
        if self.unread:
            files = _counted(self.unread, "file", "files")
            found.append(f"{files} of {name} could not be read this time, for no fault of theirs: try again later.")
        if self.unruled:
            more = f" (and {len(self.unruled) - 1} more)" if len(self.unruled) > 1 else ""
            found.append(
                f"{display_name(self.unruled[0])}{more} has more ignore rules than are followed, so nothing in it is searched; "
                "grep_content follows them all."
            )
        return found

    def _percent(self, done: int) -> int:
        if not self.is_scanned:
            return 0
        return WHOLE * done // self.total if self.total else WHOLE


class UnsearchedCounts(NamedTuple):
    """How many are there and not searched, although no rule leaves them out."""

    files: int = 0
    directories: int = 0
    too_large: int = 0
    textless: int = 0

    def notices(self, root: str) -> list[str]:
        """Return what a caller should know of it."""
        told = [
            (self.directories, "directory", "directories", "that could not be opened"),
            (self.files, "file", "files", "that could not be opened"),
            (self.too_large, "file", "files", "over the size that the settings allow"),
            (self.textless, "document", "documents", "that gave no text (damaged, locked, or pictures alone)"),
        ]
        sorts = [f"{_counted(count, one, more)} {why}" for count, one, more, why in told if count]
        return [f"Not searched in {display_name(root)}: {'; '.join(sorts)}."] if sorts else []


@dataclass(frozen=True, slots=True)
class FolderLimits:
    """The numbers that settings change."""

    max_files: int
    max_bytes: int
    max_file_bytes: int
    max_document_bytes: int
    keep_days: float


@dataclass(frozen=True, slots=True)
class FolderHit:
    """A passage of a file; `line` is where it begins as read_text_file counts, None for a page of HTML."""

    path: str
    line: int | None
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class FolderAnswer:
    """Hits, best first, what the caller should know of them, and how much of the indexes is made, in percent."""

    hits: Sequence[FolderHit]
    notices: Sequence[str]
    ready: int


def _counted(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"


def key_of(tokenizer: str, root: str) -> str:
    """Return the name of a root's index, which says nothing of the root; words cut otherwise have another index."""
    return hashlib.sha256(f"{tokenizer}\0{root}".encode()).hexdigest()[:32]


def within(path: str) -> Span:
    """Return the span of everything below a directory, by its path beneath the root; "" is the root itself."""
    return Span(f"{path}/", f"{path}/{_LAST}")


def only(path: str) -> Span:
    """Return the span of one file."""
    return Span(path, f"{path}\x01")
