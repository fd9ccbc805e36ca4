"""The arguments and answers of the tools of the project store."""

from typing import Annotated, Any

from pydantic import BaseModel, Field, WithJsonSchema, model_serializer

from holdfast.tools.registry import Arguments

NullableText = Annotated[str | None, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]})]

_PROJECT = "Name of the project in the database."
_FILE = "Path in the project, not on disk: ASCII without spaces, starts with '/'."
_PATH = "Path of a file or directory in the project; '' is its root."
_KEY = "Any text; the same call with the same text is done once."


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
    offset: int = Field(0, description="First byte to read, from 0.")
    length: int = Field(-1, description="How many bytes to read; -1 reads to the end.")


class FileWriteArguments(MutationArguments):
    """Arguments of file_write."""

    path: str = Field(description=_FILE)
    content: str = Field(description="Text to write.")
    content_encoding: str = Field("utf-8", description="Encoding of the text, which must be utf-8.")
    offset: int = Field(0, description="First byte to overwrite; APPEND ignores it.")
    mode: str = Field(
        "APPEND",
        description="APPEND adds at the end, OVERWRITE writes in place from offset, TRUNCATE replaces the whole file.",
    )


class FileDeleteArguments(MutationArguments):
    """Arguments of file_delete."""

    path: str = Field(description=_PATH)
    recursive: bool = Field(False, description="Whether to delete a directory with all its files.")


class FileRenameArguments(MutationArguments):
    """Arguments of file_rename."""

    from_path: str = Field(description="Path of the file or directory to move.")
    to_path: str = Field(description="Its new path in the project.")
    overwrite: bool = Field(False, description="Whether to replace a file, or merge into a directory, at the new path.")


class FileListArguments(ProjectArguments):
    """Arguments of file_list."""

    path: str = Field("", description="Path of the directory in the project; '' is its root.")
    depth: int = Field(1, description="How many levels to list; 0 lists the path itself.")
    limit: int = Field(256, description="Most entries to list.")


class FileSearchArguments(Arguments):
    """Arguments of file_search."""

    project: str = Field(description="Name of the project, or * for all projects.")
    query: str = Field(description="Words or a question to look for.")
    path_prefix: str = Field("", description="Search only paths that begin with this.")
    limit: int = Field(5, description="Most hits to return.")


class FileHistoryArguments(ProjectArguments):
    """Arguments of file_history."""

    path: str = Field(description="Path of the file in the project, also of a deleted one.")


class FileRestoreArguments(MutationArguments):
    """Arguments of file_restore."""

    path: str = Field(description="Path of the file in the project, also of a deleted one.")
    version: int = Field(description="Number of the version, from file_history.")


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


class UsageAnswer(BaseModel):
    """What the caller holds in all projects; the limit is for both together, null when there is none."""

    file_bytes: int
    history_bytes: int
    limit_bytes: int | None


class ProjectsAnswer(BaseModel):
    """The caller's projects, and what it holds in all of them; history is versions and deleted files."""

    projects: list[ProjectAnswer]
    usage: UsageAnswer
