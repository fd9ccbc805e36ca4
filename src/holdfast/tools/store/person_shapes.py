"""The arguments and answers of the person's tools of the project store; a tenant that is signed in calls them too."""

from typing import Literal

from pydantic import BaseModel, Field

from holdfast.tools.registry import Arguments

_PROJECT = "Name of the project."
_PATH = "Path in the project; '' is its root."


class BrowseProject(Arguments):
    """Arguments of browse_project."""

    project: str = Field(description=_PROJECT)
    path: str = Field("", description="Path of the directory in the project; '' is its root.")
    offset: int = Field(0, ge=0, description="How many entries to skip.")
    limit: int = Field(200, ge=1, le=1_000, description="Maximum number of entries.")
    filter: str = Field("", max_length=255, description="Only names that hold this text, in any case of letters.")


class StoredEntryFacts(BaseModel):
    """One entry of a directory of the store."""

    name: str
    path: str
    type: Literal["file", "directory"]
    size_bytes: int | None = Field(None, description="of a file")
    modified_at: str | None = Field(None, description="of a file")


class BrowseProjectAnswer(BaseModel):
    """Answer of browse_project: a page; `total` counts what passes the filter."""

    project: str
    path: str
    entries: list[StoredEntryFacts]
    total: int
    has_more: bool


class OpenStoredFile(Arguments):
    """Arguments of open_stored_file."""

    project: str = Field(description=_PROJECT)
    path: str = Field(description="Path of the file in the project.")
    version: int | None = Field(None, description="An earlier version, by its number of file_history.")


class OpenedStoredFile(BaseModel):
    """Answer of open_stored_file: the whole text, of the file or of one of its earlier versions."""

    project: str
    path: str
    text: str
    hash: str = Field(description="what save_stored_file takes")
    size_bytes: int
    created_at: str | None = None
    modified_at: str | None = None
    version: int | None = None


class SaveStoredFile(Arguments):
    """Arguments of save_stored_file."""

    project: str = Field(description=_PROJECT)
    path: str = Field(description="Path of the file in the project.")
    text: str = Field(description="The whole text.")
    expected_hash: str | None = Field(
        None,
        description="hash of open_stored_file: refused when the file has another one; left out, no file may be there yet.",
    )


class SaveStoredFileAnswer(BaseModel):
    """Answer of save_stored_file."""

    project: str
    path: str
    hash: str


class StoredPath(Arguments):
    """Arguments of a tool of the person that takes a path of a project."""

    project: str = Field(description=_PROJECT)
    path: str = Field(description=_PATH)


class StoredDeletionAnswer(BaseModel):
    """Answer of preview_stored_delete: what would go."""

    project: str
    path: str
    files: int
    size_bytes: int


class DeleteStored(Arguments):
    """Arguments of delete_stored."""

    project: str = Field(description=_PROJECT)
    path: str = Field(description="Path of the file or directory in the project.")
    expected_files: int = Field(ge=1, description="files of preview_stored_delete: refused when there are not so many.")


class DeletedStoredAnswer(BaseModel):
    """Answer of delete_stored: the paths that restore_stored brings back."""

    project: str
    paths: list[str]


class RestoreStored(Arguments):
    """Arguments of restore_stored."""

    project: str = Field(description=_PROJECT)
    paths: list[str] = Field(min_length=1, max_length=10_000, description="Paths of deleted files in the project.")


class StoredFileThatStayed(BaseModel):
    """A file that was not brought back, and why."""

    path: str
    code: str
    reason: str


class RestoredStoredAnswer(BaseModel):
    """Answer of restore_stored."""

    project: str
    restored: int
    stayed: list[StoredFileThatStayed]
