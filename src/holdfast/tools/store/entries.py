"""The tools of the project store: durable text files by project and path."""

from collections.abc import Iterable
from datetime import datetime

from holdfast.app import App
from holdfast.auth.rates import Rate
from holdfast.call import Call
from holdfast.clock import format_utc
from holdfast.search.model import ALL_PROJECTS, no_matches_text
from holdfast.store.content import ENCODING
from holdfast.store.model import DirectoryEntry, PathType
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Effect, Group, NoArguments, tool
from holdfast.tools.store.shapes import (
    SHORT_TEXT_CHARS,
    ChunkAnswer,
    DeleteAnswer,
    DeleteOf,
    EntryAnswer,
    HistoryAnswer,
    HistoryOf,
    ListAnswer,
    ListOf,
    ProjectAnswer,
    ProjectsAnswer,
    ReadAnswer,
    ReadOf,
    RenameAnswer,
    RenameOf,
    RestoreOf,
    SearchAnswer,
    SearchOf,
    StatAnswer,
    StatOf,
    VersionAnswer,
    WriteAnswer,
    WriteOf,
)


@tool("file_stat", group=Group.STORE, effect=Effect.READ, title="Stat stored file", output=StatAnswer)
def file_stat(app: App, call: Call, args: StatOf) -> Answer:
    """Tell whether a stored path exists, and its type, size and times."""
    found = app.store.stat(call.caller.auth, args.project, args.path)
    data = StatAnswer(
        exists=found.exists,
        type=found.type,
        size=found.size,
        created_at=_shown(found.created_at),
        updated_at=_shown(found.updated_at),
    )
    shown = f"{found.type}, {found.size} bytes, created {data.created_at}, updated {data.updated_at}"
    return Answer.of(shown if found.exists else "does not exist", data=data)


@tool("file_read", group=Group.STORE, effect=Effect.READ, title="Read stored file", output=ReadAnswer)
def file_read(app: App, call: Call, args: ReadOf) -> Answer:
    """Read a stored file, or a byte range of it; a cut inside a character moves to its beginning."""
    found = app.store.read(call.caller.auth, args.project, args.path, args.offset, args.length)
    moved = {"start": found.start, "end": found.end} if found.moved else {}
    return Answer.of(_shown_text(found.text), data=ReadAnswer(content=found.text, content_encoding=ENCODING, **moved))


@tool("file_write", group=Group.STORE, effect=Effect.CHANGE, title="Write stored file", output=WriteAnswer)
def file_write(app: App, call: Call, args: WriteOf) -> Answer:
    """Write text to a stored file; directories are implied. The bytes before are kept: see file_history."""
    written = app.store.write(
        call.caller.auth,
        args.project,
        args.path,
        args.content,
        args.content_encoding,
        args.offset,
        args.mode,
        args.idempotency_key,
    )
    return Answer.of(f"{written} bytes written", data=WriteAnswer(bytes_written=written))


@tool("file_delete", group=Group.STORE, effect=Effect.DESTROY, title="Delete stored file", output=DeleteAnswer)
def file_delete(app: App, call: Call, args: DeleteOf) -> Answer:
    """Delete a stored file, or a directory with recursive. file_restore brings files back."""
    count = app.store.delete(
        call.caller.auth, args.project, args.path, recursive=args.recursive, idempotency_key=args.idempotency_key
    )
    return Answer.of(f"{count} files deleted", data=DeleteAnswer(deleted_count=count))


@tool("file_rename", group=Group.STORE, effect=Effect.CHANGE, title="Rename stored file", output=RenameAnswer)
def file_rename(app: App, call: Call, args: RenameOf) -> Answer:
    """Move a stored file or directory; nothing moves when anything is in the way."""
    count = app.store.rename(
        call.caller.auth,
        args.project,
        args.from_path,
        args.to_path,
        overwrite=args.overwrite,
        idempotency_key=args.idempotency_key,
    )
    return Answer.of(f"{count} files moved", data=RenameAnswer(moved_count=count))


@tool("file_list", group=Group.STORE, effect=Effect.READ, title="List stored files", output=ListAnswer)
def file_list(app: App, call: Call, args: ListOf) -> Answer:
    """List a stored directory, sorted by path."""
    found = app.store.listing(call.caller.auth, args.project, args.path, args.depth, args.limit)
    data = ListAnswer(entries=[_entry(entry) for entry in found.entries], has_more=found.has_more)
    more = f"[More than {len(found.entries)} entries: raise limit, or list a directory beneath.]"
    return Answer.of(_lines(map(_entry_line, data.entries)), more if found.has_more else "", data=data)


@tool(
    "file_search",
    group=Group.STORE,
    effect=Effect.READ,
    title="Search stored files",
    output=SearchAnswer,
    rate=Rate.SEARCH,
)
def file_search(app: App, call: Call, args: SearchOf) -> Answer:
    """Find passages in stored files; read on with file_read at the byte range of a hit."""
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
    texts = map(_hit_text, chunks) if chunks else [no_matches_text(args.path_prefix)]
    return Answer.of(*texts, data=SearchAnswer(chunks=chunks))


@tool("file_history", group=Group.STORE, effect=Effect.READ, title="Stored file's versions", output=HistoryAnswer)
def file_history(app: App, call: Call, args: HistoryOf) -> Answer:
    """List the earlier versions of a stored file, newest first."""
    found = app.store.history(call.caller.auth, args.project, args.path)
    versions = [
        VersionAnswer(
            version=one.version,
            size=one.size,
            written_at=format_utc(one.written_at),
            replaced_at=format_utc(one.replaced_at),
        )
        for one in found
    ]
    shown = [f"version {one.version}: {one.size} bytes, {one.written_at} to {one.replaced_at}" for one in versions]
    return Answer.of(_lines(shown), data=HistoryAnswer(versions=versions))


@tool("file_restore", group=Group.STORE, effect=Effect.CHANGE, title="Restore stored file", output=WriteAnswer)
def file_restore(app: App, call: Call, args: RestoreOf) -> Answer:
    """Bring back an earlier version of a stored file, as a new write."""
    written = app.store.restore(call.caller.auth, args.project, args.path, args.version, args.idempotency_key)
    return Answer.of(f"{written} bytes restored", data=WriteAnswer(bytes_written=written))


@tool("project_list", group=Group.STORE, effect=Effect.READ, title="List projects", output=ProjectsAnswer)
def project_list(app: App, call: Call, _args: NoArguments) -> Answer:
    """List your projects with file count, bytes and last change."""
    found = app.store.projects(call.caller.auth)
    projects = [
        ProjectAnswer(
            project=one.project,
            file_count=one.file_count,
            total_bytes=one.total_bytes,
            updated_at=format_utc(one.updated_at),
        )
        for one in found
    ]
    shown = [f"{one.project}: {one.file_count} files, {one.total_bytes} bytes, {one.updated_at}" for one in projects]
    return Answer.of(_lines(shown), data=ProjectsAnswer(projects=projects))


def _entry(entry: DirectoryEntry) -> EntryAnswer:
    return EntryAnswer(
        name=entry.name,
        path=entry.path,
        type=entry.type,
        size=entry.size,
        created_at=_shown(entry.created_at),
        updated_at=_shown(entry.updated_at),
    )


def _entry_line(entry: EntryAnswer) -> str:
    return f"[DIR] {entry.path}" if entry.type == PathType.DIRECTORY else f"[FILE] {entry.path} ({entry.size} bytes)"


def _hit_text(hit: ChunkAnswer) -> str:
    where = f"{hit.project} {hit.file_path}" if hit.project else hit.file_path
    return f"{where} [{hit.file_seek_start_bytes}, {hit.file_seek_end_bytes})\n{hit.chunk_content}"


def _shown_text(text: str) -> str:
    """Return the block beside the content: all of a short text, of a long one where it is, so it is not sent twice."""
    if len(text) <= SHORT_TEXT_CHARS:
        return text
    return (
        f"[{len(text)} characters, in the field content. To have text as a block, read ranges of at most "
        f"{SHORT_TEXT_CHARS} bytes with offset and length.]"
    )


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines) or "None."


def _shown(at: datetime | None) -> str | None:
    return None if at is None else format_utc(at)
