"""The tools of the project store: durable text files by project and path."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from holdfast.app import App
from holdfast.auth.rates import Rate
from holdfast.call import Call, HeavyNeeded
from holdfast.clock import format_utc
from holdfast.errors import HoldfastError, NotFound
from holdfast.search.model import ALL_PROJECTS, no_matches_text
from holdfast.store.content import ENCODING, MARGIN, WriteMode
from holdfast.store.model import ContentSlice, PathType, WrittenFile
from holdfast.store.tenant_share import describe_usage
from holdfast.text.budget import cut_to_budget
from holdfast.text.display import quantity
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Effect, Group, NoArguments, tool
from holdfast.tools.store.shapes import (
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
    UsageAnswer,
    VersionAnswer,
    WriteAnswer,
)
from holdfast.tools.threads import Load

_LIGHT_BYTES = 1_000_000
_WRITTEN = {
    WriteMode.APPEND: "Appended at the end",
    WriteMode.OVERWRITE: "Overwrote in place",
    WriteMode.TRUNCATE: "Replaced the whole file",
}


@tool("file_stat", group=Group.STORE, effect=Effect.READ, title="Project database: stat a file", output=StatAnswer)
def file_stat(app: App, call: Call, args: FileStatArguments) -> Answer:
    """In the project database, not on disk: tell whether a path exists, its type, size and times."""
    stat = app.store.stat(call.caller.auth, args.project, args.path)
    data = StatAnswer(
        exists=stat.exists,
        type=stat.type,
        size=stat.size,
        created_at=_format_time(stat.created_at),
        updated_at=_format_time(stat.updated_at),
    )
    times = "".join(f", {verb} {at}" for verb, at in (("created", data.created_at), ("updated", data.updated_at)) if at)
    summary = f"{stat.type}, {quantity(stat.size, 'byte')}{times}" if stat.exists else "does not exist"
    return Answer.of(f"{args.path or 'the root'} of project {args.project}: {summary}", data=data)


def _read(app: App, call: Call, args: FileReadArguments) -> ContentSlice:
    """Return the range. A long one needs a place of heavy work: its decoding holds the interpreter for milliseconds."""
    is_long = args.length == -1 or args.length > _LIGHT_BYTES
    if is_long and not call.is_heavy:
        part = app.store.read(call.caller.auth, args.project, args.path, args.offset, _LIGHT_BYTES)
        if part.end - part.start < _LIGHT_BYTES - MARGIN:
            return part
        raise HeavyNeeded
    return app.store.read(call.caller.auth, args.project, args.path, args.offset, args.length)


@tool("file_read", group=Group.STORE, effect=Effect.READ, title="Project database: read a file", output=ReadAnswer)
def file_read(app: App, call: Call, args: FileReadArguments) -> Answer:
    """In the project database, not on disk: read a file or a byte range of it; a range never cuts a character in two."""
    with _next_step(app, call, args.project, args.path):
        part = _read(app, call, args)
    moved = {"start": part.start, "end": part.end} if part.moved else {}
    text, is_cut = cut_to_budget(part.text, app.settings.folders.max_answer_tokens)
    notes = [f"[The range was moved to whole characters: bytes {part.start} to {part.end}.]"] if part.moved else []
    if is_cut:
        end = part.start + len(text.encode())
        notes.append(f"[Cut by the token budget at byte {end} of the range to {part.end}. For more: offset={end}]")
    data = ReadAnswer(content=part.text, content_encoding=ENCODING, **moved)
    if not text:
        notes.append("[There are no bytes in this range.]")
    return Answer.of(text, *notes, data=data)


@tool("file_write", group=Group.STORE, effect=Effect.CHANGE, title="Project database: write a file", output=WriteAnswer)
def file_write(app: App, call: Call, args: FileWriteArguments) -> Answer:
    """In the project database, not on disk: write text to a file, by default at its end; file_history keeps earlier versions.

    To change a file on disk use write_file or edit_files.
    """
    result = app.store.write(
        call.caller.auth,
        args.project,
        args.path,
        args.content,
        args.content_encoding,
        args.offset,
        args.mode,
        args.idempotency_key,
    )
    summary = "Created the file" if result.is_new else _WRITTEN[WriteMode(args.mode.upper())]
    text = _describe_write(result, summary, args)
    return Answer.of(text, _note_on_disk(app, call, args.path), data=WriteAnswer(bytes_written=result.bytes_written))


@tool(
    "file_delete",
    group=Group.STORE,
    effect=Effect.DESTROY,
    title="Project database: delete a file",
    output=DeleteAnswer,
)
def file_delete(app: App, call: Call, args: FileDeleteArguments) -> Answer:
    """In the project database, not on disk: delete a file, or a directory with recursive; file_restore brings files back."""
    with _next_step(app, call, args.project, args.path):
        count = app.store.delete(
            call.caller.auth, args.project, args.path, recursive=args.recursive, idempotency_key=args.idempotency_key
        )
    text = (
        f"{quantity(count, 'file')} deleted from project {args.project}; file_restore brings a file back by its path."
    )
    return Answer.of(text, data=DeleteAnswer(deleted_count=count))


@tool(
    "file_rename", group=Group.STORE, effect=Effect.CHANGE, title="Project database: rename a file", output=RenameAnswer
)
def file_rename(app: App, call: Call, args: FileRenameArguments) -> Answer:
    """In the project database, not on disk: move a file or directory, all of it or nothing."""
    with _next_step(app, call, args.project, args.from_path):
        count = app.store.rename(
            call.caller.auth,
            args.project,
            args.from_path,
            args.to_path,
            overwrite=args.overwrite,
            idempotency_key=args.idempotency_key,
        )
    text = f"{quantity(count, 'file')} moved in project {args.project}: {args.from_path} -> {args.to_path}"
    return Answer.of(text, data=RenameAnswer(moved_count=count))


@tool("file_list", group=Group.STORE, effect=Effect.READ, title="Project database: list files", output=ListAnswer)
def file_list(app: App, call: Call, args: FileListArguments) -> Answer:
    """In the project database, not on disk: list a directory, sorted by path."""
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
        else f"[FILE] {entry.path} ({quantity(entry.size, 'byte')}, updated {entry.updated_at})"
        for entry in entries
    ]
    more = f"[More than {len(entries)} entries: raise limit, or list a subdirectory.]" if listing.has_more else ""
    text = "\n".join(lines) or f"Project {args.project} has no files."
    return Answer.of(text, more, data=ListAnswer(entries=entries, has_more=listing.has_more))


@tool(
    "file_search",
    group=Group.STORE,
    effect=Effect.READ,
    title="Project database: search files",
    output=SearchAnswer,
    rate=Rate.SEARCH,
    load=Load.HEAVY,
)
def file_search(app: App, call: Call, args: FileSearchArguments) -> Answer:
    """In the project database, not on disk: find passages by words and meaning: path [start, end) of bytes, for file_read."""
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
        f"[{chunk.file_seek_start_bytes}, {chunk.file_seek_end_bytes}){' whole file' if chunk.is_full_file else ''} "
        f"({chunk.score:.2f})\n{chunk.chunk_content}"
        for chunk in chunks
    ]
    return Answer.of(*texts or [no_matches_text(args.path_prefix)], data=SearchAnswer(chunks=chunks))


@tool(
    "file_history",
    group=Group.STORE,
    effect=Effect.READ,
    title="Project database: versions of a file",
    output=HistoryAnswer,
)
def file_history(app: App, call: Call, args: FileHistoryArguments) -> Answer:
    """In the project database, not on disk: list the earlier versions of a file, newest first."""
    with _next_step(app, call, args.project, args.path):
        stored = app.store.history(call.caller.auth, args.project, args.path)
    versions = [
        VersionAnswer(
            version=version.version,
            size=version.size,
            written_at=format_utc(version.written_at),
            replaced_at=format_utc(version.replaced_at),
        )
        for version in stored
    ]
    lines = [
        f"version {version.version}: {quantity(version.size, 'byte')}, {version.written_at} to {version.replaced_at}"
        for version in versions
    ]
    text = "\n".join(lines) or "No earlier versions are kept: the file holds the only one. file_read shows it."
    return Answer.of(text, data=HistoryAnswer(versions=versions))


@tool(
    "file_restore",
    group=Group.STORE,
    effect=Effect.CHANGE,
    title="Project database: restore a file",
    output=WriteAnswer,
)
def file_restore(app: App, call: Call, args: FileRestoreArguments) -> Answer:
    """In the project database, not on disk: bring back an earlier version of a file, as a new write."""
    with _next_step(app, call, args.project, args.path, "file_history lists the versions that are kept."):
        result = app.store.restore(call.caller.auth, args.project, args.path, args.version, args.idempotency_key)
    text = _describe_write(result, f"Restored version {args.version} as a new write", args)
    return Answer.of(text, data=WriteAnswer(bytes_written=result.bytes_written))


@tool(
    "project_list",
    group=Group.STORE,
    effect=Effect.READ,
    title="Project database: list projects",
    output=ProjectsAnswer,
)
def project_list(app: App, call: Call, _args: NoArguments) -> Answer:
    """In the project database, not on disk: list your projects with file count, bytes and last change, and what you use."""
    usage, limit = app.store.usage(call.caller.auth), app.store.max_tenant_bytes
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
        f"changed {project.updated_at}"
        for project in projects
    ]
    used = UsageAnswer(file_bytes=usage.live_bytes, history_bytes=usage.history_bytes, limit_bytes=limit or None)
    text = "\n".join(lines) or "No projects: file_write makes one."
    return Answer.of(text, f"[{describe_usage(usage, limit)}]", data=ProjectsAnswer(projects=projects, usage=used))


def _describe_write(result: WrittenFile, summary: str, args: FileWriteArguments | FileRestoreArguments) -> str:
    """Return what a write did and how large the file is now; of a repeated request only the first answer is known."""
    where, size_text = f"{args.path} in project {args.project}", quantity(result.bytes_written, "byte")
    if result.size is None:
        return f"Nothing was written again: the call with this idempotency_key wrote {size_text} to {where} before."
    return f"{summary}: {size_text} written. {where} now has {quantity(result.size, 'byte')}."


@contextmanager
def _next_step(app: App, call: Call, project: str, path: str, advice: str = "") -> Iterator[None]:
    """Add to an error about a path or version that is not there what an agent calls next."""
    try:
        yield
    except NotFound as error:
        if not advice and _is_on_disk(app, call, path):
            advice = "That is a path on disk, and this is the project database: read_text_file reads files on disk."
        if not call.caller.client.is_command:
            error.message = f"{error.message}. {advice or f'file_list shows the files of project {project}.'}"
        raise


def _note_on_disk(app: App, call: Call, path: str) -> str:
    """Return a warning when a stored path looks like that of a file on disk that the caller can write; empty if not."""
    if not _is_on_disk(app, call, path):
        return ""
    return (
        f"[This is in the project database. The file on disk at {path} was not touched; write_file changes that one.]"
    )


def _is_on_disk(app: App, call: Call, path: str) -> bool:
    """Return whether a stored path looks like one on disk in the directories of the caller."""
    if not call.caller.roots:
        return False
    try:
        allowed = app.folders_of(call.caller).jail.allowed_paths
    except HoldfastError:  # the directories are gone; the call is answered all the same
        return False
    return any(path.startswith(f"{root.rstrip('/')}/") for root in allowed)


def _format_time(at: datetime | None) -> str | None:
    return None if at is None else format_utc(at)
