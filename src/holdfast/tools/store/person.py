"""The person's tools of the project store: what a page needs to show large projects, to save safely and to bring back."""

from hashlib import sha256

from holdfast.app import App
from holdfast.auth.context import CallerKind
from holdfast.call import Call
from holdfast.clock import format_utc
from holdfast.errors import AlreadyExists, NotFound
from holdfast.store.model import DirectoryEntry, PathType
from holdfast.text.display import quantity
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Effect, Group, tool
from holdfast.tools.store.person_shapes import (
    BrowseProject,
    BrowseProjectAnswer,
    DeletedStoredAnswer,
    DeleteStored,
    OpenedStoredFile,
    OpenStoredFile,
    RestoredStoredAnswer,
    RestoreStored,
    SaveStoredFile,
    SaveStoredFileAnswer,
    StoredDeletionAnswer,
    StoredEntryFacts,
    StoredFileThatStayed,
    StoredPath,
)
from holdfast.tools.threads import Load

_HASH_PREFIX = "sha256:"
_TIMEOUT_SECONDS = 600.0


@tool(
    "browse_project",
    group=Group.STORE,
    effect=Effect.READ,
    title="Browse a project",
    output=BrowseProjectAnswer,
    audience=CallerKind.PERSON,
)
def browse_project(app: App, call: Call, args: BrowseProject) -> Answer:
    """List a page of a directory in the project database, directories first, with the true total."""
    page = app.store.browse(
        call.caller.auth,
        args.project,
        args.path,
        offset=args.offset,
        limit=args.limit,
        name_part=args.filter,
        check=call.check,
    )
    data = BrowseProjectAnswer(
        project=args.project,
        path=args.path,
        entries=[_entry_facts(entry) for entry in page.entries],
        total=page.total,
        has_more=args.offset + len(page.entries) < page.total,
    )
    return Answer.of(f"{quantity(page.total, 'entry', 'entries')}.", data=data)


@tool(
    "open_stored_file",
    group=Group.STORE,
    effect=Effect.READ,
    title="Open a stored file",
    output=OpenedStoredFile,
    audience=CallerKind.PERSON,
    load=Load.HEAVY,
)
def open_stored_file(app: App, call: Call, args: OpenStoredFile) -> Answer:
    """Open the whole text of a file in the project database, or of an earlier version, with the hash for save_stored_file."""
    auth = call.caller.auth
    if args.version is None:
        text = app.store.read(auth, args.project, args.path).text
        stat = app.store.stat(auth, args.project, args.path)
    else:
        text, stat = app.store.version_text(auth, args.project, args.path, args.version), None
    raw = text.encode()
    data = OpenedStoredFile(
        project=args.project,
        path=args.path,
        text=text,
        hash=_HASH_PREFIX + sha256(raw).hexdigest(),
        size_bytes=len(raw),
        created_at=format_utc(stat.created_at) if stat and stat.created_at else None,
        modified_at=format_utc(stat.updated_at) if stat and stat.updated_at else None,
        version=args.version,
    )
    return Answer.of(quantity(len(raw), "byte"), data=data)


@tool(
    "save_stored_file",
    group=Group.STORE,
    effect=Effect.CHANGE,
    title="Save a stored file",
    output=SaveStoredFileAnswer,
    audience=CallerKind.PERSON,
    load=Load.HEAVY,
)
def save_stored_file(app: App, call: Call, args: SaveStoredFile) -> Answer:
    """Save the whole text of a file in the project database; CONFLICT with present_hash when it is not the one that was opened."""
    expected = None if args.expected_hash is None else args.expected_hash.lower().removeprefix(_HASH_PREFIX)
    digest = app.store.replace_text(call.caller.auth, args.project, args.path, args.text, expected)
    data = SaveStoredFileAnswer(project=args.project, path=args.path, hash=_HASH_PREFIX + digest)
    return Answer.of(f"Saved {args.path}", data=data)


@tool(
    "preview_stored_delete",
    group=Group.STORE,
    effect=Effect.READ,
    title="Preview a deletion in a project",
    output=StoredDeletionAnswer,
    audience=CallerKind.PERSON,
)
def preview_stored_delete(app: App, call: Call, args: StoredPath) -> Answer:
    """Count the files that a deletion in the project database would take."""
    files = app.store.list_beneath(call.caller.auth, args.project, args.path, call.check)
    size = sum(file.size for file in files)
    data = StoredDeletionAnswer(project=args.project, path=args.path, files=len(files), size_bytes=size)
    return Answer.of(f"{quantity(len(files), 'file')}, {quantity(size, 'byte')}.", data=data)


@tool(
    "delete_stored",
    group=Group.STORE,
    effect=Effect.DESTROY,
    title="Delete in a project",
    output=DeletedStoredAnswer,
    audience=CallerKind.PERSON,
)
def delete_stored(app: App, call: Call, args: DeleteStored) -> Answer:
    """Delete a file, or a directory with all in it, from the project database; CONFLICT when it is not as it was counted."""
    paths = app.store.delete_counted(call.caller.auth, args.project, args.path, args.expected_files)
    return Answer.of(
        f"{quantity(len(paths), 'file')} deleted.", data=DeletedStoredAnswer(project=args.project, paths=paths)
    )


@tool(
    "restore_stored",
    group=Group.STORE,
    effect=Effect.CHANGE,
    title="Bring deleted stored files back",
    output=RestoredStoredAnswer,
    audience=CallerKind.PERSON,
    timeout_seconds=_TIMEOUT_SECONDS,
)
def restore_stored(app: App, call: Call, args: RestoreStored) -> Answer:
    """Bring deleted files of the project database back as they were last; where a file is again, it stays as it is."""
    stayed: list[StoredFileThatStayed] = []
    for path in args.paths:
        call.check()
        try:
            app.store.restore_deleted(call.caller.auth, args.project, path)
        except (AlreadyExists, NotFound) as error:
            stayed.append(StoredFileThatStayed(path=path, code=error.code, reason=error.message))
    restored = len(args.paths) - len(stayed)
    data = RestoredStoredAnswer(project=args.project, restored=restored, stayed=stayed)
    return Answer.of(f"{quantity(restored, 'file')} restored.", data=data)


def _entry_facts(entry: DirectoryEntry) -> StoredEntryFacts:
    return StoredEntryFacts(
        name=entry.name,
        path=entry.path,
        type="file" if entry.type is PathType.FILE else "directory",
        size_bytes=entry.size if entry.type is PathType.FILE else None,
        modified_at=format_utc(entry.updated_at) if entry.updated_at else None,
    )
