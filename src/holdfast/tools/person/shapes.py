"""Arguments and answers of the person's tools for local folders.

A path is an address: absolute, or a `file:` URI where a name in it is not UTF-8. Names are given beside it for showing.
"""

from typing import Literal

from pydantic import BaseModel, Field

from holdfast.folders.finding.browse import FolderOrder
from holdfast.tools.registry import Arguments

_PATH = "Absolute path, or its file: URI where a name is not UTF-8."


class KnownRootFacts(BaseModel):
    """One directory that the person works in."""

    path: str
    name: str
    exists: bool
    writable: bool
    sources: list[str] = Field(
        description="how it is known: server (given to serve), client (a client was connected with it), settings, changes"
    )


class KnownRootsAnswer(BaseModel):
    """Answer of known_roots."""

    roots: list[KnownRootFacts]


class BrowseFolder(Arguments):
    """Arguments of browse_folder."""

    path: str = Field(max_length=20_000, description=_PATH)
    offset: int = Field(0, ge=0, description="How many entries to skip.")
    limit: int = Field(200, ge=1, le=1_000, description="Maximum number of entries.")
    sort: FolderOrder = Field(
        FolderOrder.NAME, description="name: directories first; size: largest first; modified: newest first."
    )
    filter: str = Field("", max_length=255, description="Only names that hold this text, in any case of letters.")


class FolderEntryFacts(BaseModel):
    """One entry of a directory."""

    name: str = Field(description="for showing: bytes that are not UTF-8 and lone surrogates are U+FFFD")
    path: str = Field(description="what other tools take")
    type: Literal["file", "directory", "link", "other"]
    size_bytes: int | None = Field(None, description="of a regular file")
    modified_at: str | None = None
    is_hidden: bool = Field(description="its name begins with a dot")
    access: str = Field(
        description="what a rule of the policy gives every agent here: allow, review, read-only or deny"
    )


class BrowseFolderAnswer(BaseModel):
    """Answer of browse_folder: a page; `total` counts what passes the filter."""

    path: str
    entries: list[FolderEntryFacts]
    total: int
    has_more: bool


class PersonPath(Arguments):
    """Arguments of a tool of the person that takes one path."""

    path: str = Field(max_length=20_000, description=_PATH)


class OpenedFile(BaseModel):
    """Answer of open_file: the whole text, or why there is none."""

    path: str
    name: str
    text: str | None = None
    hash: str | None = Field(None, description="what save_file takes; none for a file that is larger than is opened")
    size_bytes: int
    modified_at: str
    encoding: str | None = None
    line_ending: str | None = Field(None, description="LF, CRLF, CR, mixed or none")
    media_type: str
    is_binary: bool
    can_save: bool = Field(description="save_file can write a text here")
    access: str = Field(description="what a rule of the policy gives every agent here")
    reason: str | None = Field(None, description="why there is no text, or why it cannot be saved")


class SaveFile(Arguments):
    """Arguments of save_file."""

    path: str = Field(max_length=20_000, description=_PATH)
    text: str = Field(description="The whole text. Lines that were there keep their line ends.")
    expected_hash: str | None = Field(
        None,
        description="hash of open_file: refused when the file has another one; left out, no file may be there yet.",
    )


class SaveFileAnswer(BaseModel):
    """Answer of save_file; `change_id` is none when the file holds just that already."""

    path: str
    hash: str
    change_id: str | None


class HistoryOf(Arguments):
    """Arguments of history_of."""

    path: str = Field(max_length=20_000, description=_PATH)
    limit: int = Field(50, ge=1, le=500, description="Maximum number of changes.")
    older_than: str | None = Field(None, max_length=64, description="Only changes before the one with this id.")


class MoveForPerson(Arguments):
    """Arguments of move_for_person."""

    path: str = Field(max_length=20_000, description=_PATH)
    destination: str = Field(max_length=20_000, description="Its new path, where nothing may be yet.")


class PreviewDeleteAnswer(BaseModel):
    """Answer of preview_delete: what would go. An undo brings all of it back while its content is kept."""

    path: str
    type: str
    entries: int = Field(description="everything that would go, itself included")
    files: int
    directories: int
    size_bytes: int
    can_be_undone: bool = Field(description="the content is small enough to be kept for an undo")


class DeleteForPerson(Arguments):
    """Arguments of delete_for_person."""

    path: str = Field(max_length=20_000, description=_PATH)
    expected_entries: int | None = Field(
        None, ge=1, description="entries of preview_delete: refused when there are not so many. A directory needs it."
    )


class PersonChange(BaseModel):
    """Answer of a change that the person made; `change_id` is none where nothing had to be done."""

    change_id: str | None
    path: str


class PassageAnswer(BaseModel):
    """One hit; a web page has no line."""

    path: str
    line: int | None = None
    text: str
    score: float


class PassagesAnswer(BaseModel):
    """Hits, best first, notices about them, and how much of the index is ready, in percent."""

    hits: list[PassageAnswer]
    notices: list[str]
    ready: int


class FindNames(Arguments):
    """Arguments of find_names."""

    text: str = Field(min_length=1, max_length=255, description="Part of the name.")
    path: str = Field("", max_length=20_000, description="Directory to search, as an address; '' is everywhere.")
    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of hits.")


class FoundPath(BaseModel):
    """One file or directory whose name matches."""

    path: str
    name: str
    type: Literal["file", "directory", "link", "other"]


class FoundNames(BaseModel):
    """Answer of find_names, in the order of paths."""

    hits: list[FoundPath]
    is_whole: bool = Field(description="there are no more hits")


class FindLines(Arguments):
    """Arguments of find_lines."""

    text: str = Field(min_length=1, max_length=2_000, description="Text, or regular expression, to look for.")
    path: str = Field(
        "", max_length=20_000, description="Directory or file to search, as an address; '' is everywhere."
    )
    is_pattern: bool = Field(False, description="The text is a regular expression.")
    match_case: bool = Field(False, description="Upper and lower case differ.")
    limit: int = Field(200, ge=1, le=2_000, description="Maximum number of hits.")


class FoundLine(BaseModel):
    """One line that matches."""

    path: str
    line: int
    text: str


class FoundLines(BaseModel):
    """Answer of find_lines, in the order of paths and lines."""

    hits: list[FoundLine]
    is_whole: bool = Field(description="there are no more hits")
