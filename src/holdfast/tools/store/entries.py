"""The tools of the project store: durable text files by project and path."""

from collections.abc import Iterable
from datetime import datetime

from holdfast.app import App
from holdfast.auth.rates import Rate
from holdfast.call import Call
from holdfast.clock import format_utc
from holdfast.search.model import ALL_PROJECTS, no_matches_text
from holdfast.store.content import ENCODING
from holdfast.store.model import PathType
from holdfast.text.display import quantity
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Effect, Group, NoArguments, tool
from holdfast.tools.store.shapes import (
    SHORT_TEXT_CHARS,
    ChunkAnswer,
    DeleteAnswer,
    EntryAnswer,
    FileDeleteArguments,
    FileHistoryArguments,
    FileListArguments,
    FileReadArguments,
    FileRenameArguments,
    FileRestoreArguments,
    FileSearchArguments,
    FileStatArguments,
    FileWriteArguments,
    HistoryAnswer,
    ListAnswer,
    ProjectAnswer,
    ProjectsAnswer,
    ReadAnswer,
    RenameAnswer,
    SearchAnswer,
    StatAnswer,
    VersionAnswer,
    WriteAnswer,
)
from holdfast.tools.threads import Load


@tool("file_stat", group=Group.STORE, effect=Effect.READ, title="Stat stored file", output=StatAnswer)
def file_stat(app: App, call: Call, args: FileStatArguments) -> Answer:
    """Return whether a stored path exists, and its type, size and times."""
    stat = app.store.stat(call.caller.auth, args.project, args.path)
    data = StatAnswer(
        exists=stat.exists,
        type=stat.type,
        size=stat.size,
        created_at=_format_time(stat.created_at),
        updated_at=_format_time(stat.updated_at),
    )
    summary = f"{stat.type}, {quantity(stat.size, 'byte')}, created {data.created_at}, updated {data.updated_at}"
    return Answer.of(summary if stat.exists else "does not exist", data=data)


@tool("file_read", group=Group.STORE, effect=Effect.READ, title="Read stored file", output=ReadAnswer)
def file_read(app: App, call: Call, args: FileReadArguments) -> Answer:
    """Read a stored file, or a byte range of it; an end inside a character moves to its start."""
    part = app.store.read(call.caller.auth, args.project, args.path, args.offset, args.length)
    moved = {"start": part.start, "end": part.end} if part.moved else {}
    return Answer.of(_text_block(part.text), data=ReadAnswer(content=part.text, content_encoding=ENCODING, **moved))


@tool("file_write", group=Group.STORE, effect=Effect.CHANGE, title="Write stored file", output=WriteAnswer)
def file_write(app: App, call: Call, args: FileWriteArguments) -> Answer:
    """Write text to a stored file. Earlier versions are kept: see file_history."""
    byte_count = app.store.write(
        call.caller.auth,
        args.project,
        args.path,
        args.content,
        args.content_encoding,
        args.offset,
        args.mode,
        args.idempotency_key,
    )
    return Answer.of(f"{quantity(byte_count, 'byte')} written", data=WriteAnswer(bytes_written=byte_count))


@tool("file_delete", group=Group.STORE, effect=Effect.DESTROY, title="Delete stored file", output=DeleteAnswer)
def file_delete(app: App, call: Call, args: FileDeleteArguments) -> Answer:
    """Delete a stored file, or a directory with recursive. file_restore brings files back."""
    count = app.store.delete(
        call.caller.auth, args.project, args.path, recursive=args.recursive, idempotency_key=args.idempotency_key
    )
    return Answer.of(f"{quantity(count, 'file')} deleted", data=DeleteAnswer(deleted_count=count))


@tool("file_rename", group=Group.STORE, effect=Effect.CHANGE, title="Rename stored file", output=RenameAnswer)
def file_rename(app: App, call: Call, args: FileRenameArguments) -> Answer:
    """Move a stored file or directory, all of it or nothing."""
    count = app.store.rename(
        call.caller.auth,
        args.project,
        args.from_path,
        args.to_path,
        overwrite=args.overwrite,
        idempotency_key=args.idempotency_key,
    )
    return Answer.of(f"{quantity(count, 'file')} moved", data=RenameAnswer(moved_count=count))


@tool("file_list", group=Group.STORE, effect=Effect.READ, title="List stored files", output=ListAnswer)
def file_list(app: App, call: Call, args: FileListArguments) -> Answer:
    """List a stored directory, sorted by path."""
    listing = app.store.listing(call.caller.auth, args.project, args.path, args.depth, args.limit)
    entries = [
        EntryAnswer(
            name=entry.name,
            path=entry.path,
            type=entry.type,
            size=entry.size,
            created_at=_format_time(entry.created_at),
            updated_at=_format_time(entry.updated_at),
        )
        for entry in listing.entries
    ]
    lines = [
        f"[DIR] {entry.path}"
        if entry.type == PathType.DIRECTORY
        else f"[FILE] {entry.path} ({quantity(entry.size, 'byte')})"
        for entry in entries
    ]
    more = f"[More than {len(entries)} entries: raise limit, or list a subdirectory.]" if listing.has_more else ""
    return Answer.of(_join_lines(lines), more, data=ListAnswer(entries=entries, has_more=listing.has_more))


@tool(
    "file_search",
    group=Group.STORE,
    effect=Effect.READ,
    title="Search stored files",
    output=SearchAnswer,
    rate=Rate.SEARCH,
    load=Load.HEAVY,
)
def file_search(app: App, call: Call, args: FileSearchArguments) -> Answer:
    """Find passages in stored files; file_read with a hit's byte range reads on."""
    hits = app.search.search(call.caller.auth, args.project, args.query, args.path_prefix, args.limit, check=call.check)
    chunks = [
        ChunkAnswer(
            file_path=hit.path,
            file_seek_start_bytes=hit.start,
            file_seek_end_bytes=hit.end,
            chunk_content=hit.text,
            score=hit.score,
            is_full_file=hit.is_full_file,
            project=hit.project if args.project == ALL_PROJECTS else None,
        )
        for hit in hits
    ]
    texts = [
        f"{chunk.project + ' ' if chunk.project else ''}{chunk.file_path} "
        f"[{chunk.file_seek_start_bytes}, {chunk.file_seek_end_bytes})\n{chunk.chunk_content}"
        for chunk in chunks
    ]
    return Answer.of(*texts or [no_matches_text(args.path_prefix)], data=SearchAnswer(chunks=chunks))


@tool("file_history", group=Group.STORE, effect=Effect.READ, title="Stored file's versions", output=HistoryAnswer)
def file_history(app: App, call: Call, args: FileHistoryArguments) -> Answer:
    """List the earlier versions of a stored file, newest first."""
    versions = [
        VersionAnswer(
            version=version.version,
            size=version.size,
            written_at=format_utc(version.written_at),
            replaced_at=format_utc(version.replaced_at),
        )
        for version in app.store.history(call.caller.auth, args.project, args.path)
    ]
    lines = [
        f"version {version.version}: {quantity(version.size, 'byte')}, {version.written_at} to {version.replaced_at}"
        for version in versions
    ]
    return Answer.of(_join_lines(lines), data=HistoryAnswer(versions=versions))


@tool("file_restore", group=Group.STORE, effect=Effect.CHANGE, title="Restore stored file", output=WriteAnswer)
def file_restore(app: App, call: Call, args: FileRestoreArguments) -> Answer:
    """Bring back an earlier version of a stored file, as a new write."""
    byte_count = app.store.restore(call.caller.auth, args.project, args.path, args.version, args.idempotency_key)
    return Answer.of(f"{quantity(byte_count, 'byte')} restored", data=WriteAnswer(bytes_written=byte_count))


@tool("project_list", group=Group.STORE, effect=Effect.READ, title="List projects", output=ProjectsAnswer)
def project_list(app: App, call: Call, _args: NoArguments) -> Answer:
    """List your projects with file count, bytes and last change."""
    projects = [
        ProjectAnswer(
            project=summary.project,
            file_count=summary.file_count,
            total_bytes=summary.total_bytes,
            updated_at=format_utc(summary.updated_at),
        )
        for summary in app.store.projects(call.caller.auth)
    ]
    lines = [
        f"{project.project}: {quantity(project.file_count, 'file')}, {quantity(project.total_bytes, 'byte')}, "
        f"{project.updated_at}"
        for project in projects
    ]
    return Answer.of(_join_lines(lines), data=ProjectsAnswer(projects=projects))


def _text_block(text: str) -> str:
    """Return the content block of a text that was read: a short text itself, else a note, so it is not sent twice."""
    if len(text) <= SHORT_TEXT_CHARS:
        return text
    return (
        f"[{len(text)} characters, in the field content. To get the text as a content block, read at most "
        f"{SHORT_TEXT_CHARS} bytes at a time with offset and length.]"
    )


def _join_lines(lines: Iterable[str]) -> str:
    return "\n".join(lines) or "None."


def _format_time(at: datetime | None) -> str | None:
    return None if at is None else format_utc(at)
