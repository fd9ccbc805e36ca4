"""Pure: the values of search in local folders: records of indexed files, progress of an index, hits with their line."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from holdfast.store.paths import PathRange
from holdfast.text.display import display_name, quantity

PROJECT = "folder"
"""The one project in the index of a folder."""

COMPLETE = 100

_MAX_CHARACTER = "\U0010ffff"


class ContentKind(StrEnum):
    """How the text of a file is read, or why the index has none of it. The values are stored."""

    TEXT = "text"
    DOCUMENT = "document"
    WEB_PAGE = "page"
    NO_TEXT = "none"
    NO_ROOM = "no room"
    READER_FAILED = "unread"
    UNOPENED = "unopened"
    TOO_LARGE = "too large"

    @property
    def is_extracted(self) -> bool:
        """Return whether the text is extracted by a confined child process."""
        return self in (ContentKind.DOCUMENT, ContentKind.WEB_PAGE)

    @property
    def is_transient(self) -> bool:
        """Return whether a server that starts should read the file again: limits or permissions may have changed."""
        return self in (
            ContentKind.NO_ROOM,
            ContentKind.READER_FAILED,
            ContentKind.UNOPENED,
            ContentKind.TOO_LARGE,
        )


class FileRecord(NamedTuple):
    """A file in the index: its version when it was read, and the hash of its text, or of its bytes when extracted.

    An empty version means that the file was written just before and must be read again at the next scan.
    """

    version: str
    kind: ContentKind
    digest: str = ""
    text_bytes: int = 0

    def has_text_of(self, record: "FileRecord") -> bool:
        """Return whether the file has the same text in another record."""
        return (self.kind, self.digest) == (record.kind, record.digest)


class IndexProgress(NamedTuple):
    """How many files a scanned root has, how many of them are read, and how many have all their vectors.

    `reader_failures` are files that count as read although their reader failed; `unsearched_directories` have more ignore
    rules than are followed.
    """

    is_scanned: bool
    total: int
    read: int
    embedded: int
    is_truncated: bool
    reader_failures: int = 0
    unsearched_directories: tuple[str, ...] = ()

    @property
    def words_percent(self) -> int:
        """Return the share of files whose words are indexed."""
        return self._percent(self.read)

    @property
    def meaning_percent(self) -> int:
        """Return the share of files whose vectors are made."""
        return self._percent(self.embedded)

    def notices(self, root: str) -> list[str]:
        """Return the notices for an answer from this root."""
        notices, name = [], display_name(root)
        if self.words_percent < COMPLETE:
            notices.append(
                f"The index of {name} is {self.words_percent} % ready. Files that are not indexed yet were searched by "
                "words, for 2 seconds at most: search again later for the rest."
            )
        elif self.meaning_percent < COMPLETE:
            notices.append(f"The index of {name} has all words; meaning is {self.meaning_percent} % ready.")
        if self.is_truncated:
            notices.append(f"{name} has more files or text than settings.search_folders allows: some are left out.")
        if self.reader_failures:
            files = quantity(self.reader_failures, "file")
            notices.append(f"{files} of {name} could not be read because of a temporary error; try again later.")
        if self.unsearched_directories:
            first, *others = self.unsearched_directories
            more = f" (and {len(others)} more)" if others else ""
            notices.append(
                f"{display_name(first)}{more} has more ignore rules than are followed, so nothing in it is searched; "
                "grep_content follows them all."
            )
        return notices

    def _percent(self, count: int) -> int:
        if not self.is_scanned:
            return 0
        return COMPLETE * count // self.total if self.total else COMPLETE


class UnsearchedCounts(NamedTuple):
    """How many files and directories are not searched although no ignore rule excludes them."""

    unopened_files: int = 0
    unopened_directories: int = 0
    too_large: int = 0
    documents_without_text: int = 0

    def notices(self, root: str) -> list[str]:
        """Return the notice for an answer from this root, if there is one."""
        reasons = [
            (self.unopened_directories, "directory", "directories", "that could not be opened"),
            (self.unopened_files, "file", "files", "that could not be opened"),
            (self.too_large, "file", "files", "over the size that the settings allow"),
            (self.documents_without_text, "document", "documents", "without text (damaged, locked, or only pictures)"),
        ]
        parts = [f"{quantity(count, singular, plural)} {why}" for count, singular, plural, why in reasons if count]
        return [f"Not searched in {display_name(root)}: {'; '.join(parts)}."] if parts else []


@dataclass(frozen=True, slots=True)
class FolderLimits:
    """The limits that the settings give."""

    max_files: int
    max_bytes: int
    max_file_bytes: int
    max_document_bytes: int
    keep_days: float


@dataclass(frozen=True, slots=True)
class FolderHit:
    """A passage of a file; `line` is where it begins, counted as read_text_file does, None for a web page."""

    path: str
    line: int | None
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class FolderAnswer:
    """Hits, best first, notices for the caller, and how much of the indexes is ready, in percent."""

    hits: Sequence[FolderHit]
    notices: Sequence[str]
    ready: int


def index_key(tokenizer: str, root: str) -> str:
    """Return the name of a root's index: a hash, which reveals nothing of the root; another tokenizer has another index."""
    return hashlib.sha256(f"{tokenizer}\0{root}".encode()).hexdigest()[:32]


def span_below(path: str) -> PathRange:
    """Return the span of everything below a directory, given by its path beneath the root; "" is the root itself."""
    return PathRange(f"{path}/", f"{path}/{_MAX_CHARACTER}")


def span_of_file(path: str) -> PathRange:
    """Return the span of one file."""
    return PathRange(path, f"{path}\x01")
