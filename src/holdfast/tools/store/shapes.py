"""The arguments and answers of the tools of the project store."""

from typing import Annotated, Any

from pydantic import BaseModel, Field, WithJsonSchema, model_serializer

from holdfast.tools.registry import Arguments

NullableText = Annotated[str | None, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]})]

SHORT_TEXT_CHARS = 10_000
"""A text up to this length is also sent as a content block, for clients that show only those."""

_PROJECT = "Project name."
_FILE = "File path; ASCII without spaces, starts with '/'."
_PATH = "File or directory path; '' is the root."
_KEY = "Any text; a retry with the same text counts once."


class ProjectArguments(Arguments):
    """The argument that every tool of a project has."""

    project: str = Field(description=_PROJECT)


class MutationArguments(ProjectArguments):
    """Arguments of a tool that changes files, so a retry needs an idempotency key."""

    idempotency_key: str | None = Field(None, description=_KEY)


class FileStatArguments(ProjectArguments):
    """Arguments of file_stat."""

    path: str = Field(description=_PATH)


class FileReadArguments(ProjectArguments):
    """Arguments of file_read."""

    path: str = Field(description=_FILE)
    offset: int = Field(0, description="First byte to read.")
    length: int = Field(-1, description="Number of bytes; -1 reads to the end.")


class FileWriteArguments(MutationArguments):
    """Arguments of file_write."""

    path: str = Field(description=_FILE)
    content: str = Field(description="Text to write.")
    content_encoding: str = Field("utf-8", description="Must be utf-8.")
    offset: int = Field(0, description="First byte to overwrite; ignored by APPEND.")
    mode: str = Field("APPEND", description="APPEND, OVERWRITE (in place) or TRUNCATE (replace all).")


class FileDeleteArguments(MutationArguments):
    """Arguments of file_delete."""

    path: str = Field(description=_PATH)
    recursive: bool = Field(False, description="Delete a directory with all its files.")


class FileRenameArguments(MutationArguments):
    """Arguments of file_rename."""

    from_path: str = Field(description="File or directory to move.")
    to_path: str = Field(description="New path.")
    overwrite: bool = Field(False, description="Replace a file, or merge into a directory.")


class FileListArguments(ProjectArguments):
    """Arguments of file_list."""

    path: str = Field("", description="Directory path; '' is the root.")
    depth: int = Field(1, description="Levels; 0 lists the path itself.")
    limit: int = Field(256, description="Maximum number of entries.")


class FileSearchArguments(Arguments):
    """Arguments of file_search."""

    project: str = Field(description="Project name, or * for all projects.")
    query: str = Field(description="Words or a question.")
    path_prefix: str = Field("", description="Only paths that start with this.")
    limit: int = Field(5, description="Maximum number of hits.")


class FileHistoryArguments(ProjectArguments):
    """Arguments of file_history."""

    path: str = Field(description="File path; deleted files too.")


class FileRestoreArguments(MutationArguments):
    """Arguments of file_restore."""

    path: str = Field(description="File path; deleted files too.")
    version: int = Field(description="Version from file_history.")


class ExplicitNulls(BaseModel):
    """An answer that sends its absent values as null instead of leaving them out."""

    @model_serializer
    def _serialize(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in type(self).model_fields}


class StatAnswer(ExplicitNulls):
    """Answer of file_stat."""

    exists: bool
    type: NullableText
    size: int
    created_at: NullableText
    updated_at: NullableText


class ReadAnswer(BaseModel):
    """Answer of file_read: text of a file; start and end when the range was moved to character boundaries."""

    content: str
    content_encoding: str
    start: int | None = None
    end: int | None = None


class WriteAnswer(BaseModel):
    """Answer of file_write and file_restore: the number of bytes written."""

    bytes_written: int


class DeleteAnswer(BaseModel):
    """Answer of file_delete: the number of files deleted."""

    deleted_count: int


class RenameAnswer(BaseModel):
    """Answer of file_rename: the number of files moved."""

    moved_count: int


class EntryAnswer(ExplicitNulls):
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
    """One passage that matched."""

    file_path: str
    file_seek_start_bytes: int
    file_seek_end_bytes: int
    chunk_content: str
    score: float
    is_full_file: bool
    project: str | None = None


class SearchAnswer(BaseModel):
    """Passages that matched, best first."""

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
