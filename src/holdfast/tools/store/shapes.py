"""What the tools of the project store take and answer."""

from typing import Annotated, Any

from pydantic import BaseModel, Field, WithJsonSchema, model_serializer

from holdfast.tools.registry import Arguments

NullableText = Annotated[str | None, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]})]

SHORT_TEXT_CHARS = 10_000
"""Up to here a text that was read is also shown as a block, for clients that show blocks alone."""

_PROJECT = "Project name."
_FILE = "File path: starts with '/', printable ASCII without spaces."
_PATH = "File or directory path; '' is the root."
_KEY = "Any text; a retry with the same text counts once."


class InProject(Arguments):
    """Arguments that every tool of a project has."""

    project: str = Field(description=_PROJECT)


class Retried(InProject):
    """Arguments of a call that may be sent again."""

    idempotency_key: str | None = Field(None, description=_KEY)


class StatOf(InProject):
    """Arguments of file_stat."""

    path: str = Field(description=_PATH)


class ReadOf(InProject):
    """Arguments of file_read."""

    path: str = Field(description=_FILE)
    offset: int = Field(0, description="First byte.")
    length: int = Field(-1, description="Bytes; -1 is the rest.")


class WriteOf(Retried):
    """Arguments of file_write."""

    path: str = Field(description=_FILE)
    content: str = Field(description="Text to write.")
    content_encoding: str = Field("utf-8", description="Only utf-8.")
    offset: int = Field(0, description="First byte to overwrite; APPEND ignores it.")
    mode: str = Field("APPEND", description="APPEND, OVERWRITE (in place) or TRUNCATE (replace all).")


class DeleteOf(Retried):
    """Arguments of file_delete."""

    path: str = Field(description=_PATH)
    recursive: bool = Field(False, description="Delete a directory with all in it.")


class RenameOf(Retried):
    """Arguments of file_rename."""

    from_path: str = Field(description="File or directory.")
    to_path: str = Field(description="Its new path.")
    overwrite: bool = Field(False, description="Replace a file, or merge into a directory.")


class ListOf(InProject):
    """Arguments of file_list."""

    path: str = Field("", description="Directory; '' is the root.")
    depth: int = Field(1, description="Levels; 0 is the path itself.")
    limit: int = Field(256, description="Maximum number of entries.")


class SearchOf(Arguments):
    """Arguments of file_search."""

    project: str = Field(description="Project, or * for all of yours.")
    query: str = Field(description="Words to find.")
    path_prefix: str = Field("", description="Only paths that start with this.")
    limit: int = Field(5, description="Maximum number of hits.")


class HistoryOf(InProject):
    """Arguments of file_history."""

    path: str = Field(description="File path; a deleted one too.")


class RestoreOf(Retried):
    """Arguments of file_restore."""

    path: str = Field(description="File path; a deleted one too.")
    version: int = Field(description="Number from file_history.")


class WithNulls(BaseModel):
    """An answer whose absent values are said, not left out."""

    @model_serializer
    def _all(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in type(self).model_fields}


class StatAnswer(WithNulls):
    """What is at a path."""

    exists: bool
    type: NullableText
    size: int
    created_at: NullableText
    updated_at: NullableText


class ReadAnswer(BaseModel):
    """Text of a file; start and end when the range was moved to whole characters."""

    content: str
    content_encoding: str
    start: int | None = None
    end: int | None = None


class WriteAnswer(BaseModel):
    """How much was written."""

    bytes_written: int


class DeleteAnswer(BaseModel):
    """How many files were deleted."""

    deleted_count: int


class RenameAnswer(BaseModel):
    """How many files were moved."""

    moved_count: int


class EntryAnswer(WithNulls):
    """One entry of a listing."""

    name: str
    path: str
    type: str
    size: int
    created_at: NullableText
    updated_at: NullableText


class ListAnswer(BaseModel):
    """Entries of a directory."""

    entries: list[EntryAnswer]
    has_more: bool


class ChunkAnswer(BaseModel):
    """One hit."""

    file_path: str
    file_seek_start_bytes: int
    file_seek_end_bytes: int
    chunk_content: str
    score: float
    is_full_file: bool
    project: str | None = None


class SearchAnswer(BaseModel):
    """Hits, best first."""

    chunks: list[ChunkAnswer]


class VersionAnswer(BaseModel):
    """One earlier version."""

    version: int
    size: int
    written_at: str
    replaced_at: str


class HistoryAnswer(BaseModel):
    """Earlier versions, newest first."""

    versions: list[VersionAnswer]


class ProjectAnswer(BaseModel):
    """One project."""

    project: str
    file_count: int
    total_bytes: int
    updated_at: str


class ProjectsAnswer(BaseModel):
    """The caller's projects."""

    projects: list[ProjectAnswer]
