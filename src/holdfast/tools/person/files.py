"""The person's tools for files and folders in the directories that Holdfast knows: look, open, save, move, delete."""

import hashlib
import os
import stat

from holdfast.app import App
from holdfast.auth.context import CallerKind
from holdfast.call import Call
from holdfast.changes.disk.tree_listing import TreeListing
from holdfast.changes.single.content import HASH_PREFIX, check_hash
from holdfast.clock import format_timestamp
from holdfast.errors import Conflict, InvalidArgument, NotFound
from holdfast.folders.access.jail import Jail
from holdfast.folders.access.policy import Access, Policy
from holdfast.folders.access.policy_rules import policy_for
from holdfast.folders.finding.browse import FolderEntry
from holdfast.folders.reading.whole_text import read_whole_text
from holdfast.folders.service import Folders
from holdfast.text.decode import UTF8, decode, detect_encoding, replace_lone_surrogates
from holdfast.text.display import display_name, quantity
from holdfast.text.edit import encode_text
from holdfast.text.line_ends import restore_line_ends
from holdfast.text.path_address import address_of
from holdfast.tools.answer import Answer
from holdfast.tools.person.roots import folders_at, list_known_roots
from holdfast.tools.person.shapes import (
    BrowseFolder,
    BrowseFolderAnswer,
    DeleteForPerson,
    FolderEntryFacts,
    KnownRootFacts,
    KnownRootsAnswer,
    MoveForPerson,
    OpenedFile,
    PersonChange,
    PersonPath,
    PreviewDeleteAnswer,
    SaveFile,
    SaveFileAnswer,
)
from holdfast.tools.registry import Effect, Group, NoArguments, tool
from holdfast.tools.threads import Load

_TREE_SECONDS = 3_600.0


@tool(
    "known_roots",
    group=Group.FILES,
    effect=Effect.READ,
    title="Known directories",
    output=KnownRootsAnswer,
    audience=CallerKind.PERSON,
)
def known_roots(app: App, _call: Call, _args: NoArguments) -> Answer:
    """List the directories that agents were given, the settings name, or changes were made in."""
    rows = [
        KnownRootFacts(
            path=root.path,
            name=os.path.basename(root.path) or root.path,
            exists=os.path.isdir(root.path),
            writable=os.access(root.path, os.W_OK | os.X_OK),
            sources=list(root.sources),
        )
        for root in list_known_roots(app)
    ]
    return Answer.of("\n".join(display_name(row.path) for row in rows), data=KnownRootsAnswer(roots=rows))


@tool(
    "browse_folder",
    group=Group.FILES,
    effect=Effect.READ,
    title="Browse a folder",
    output=BrowseFolderAnswer,
    audience=CallerKind.PERSON,
)
def browse_folder(app: App, call: Call, args: BrowseFolder) -> Answer:
    """List a page of a directory, with the true total; links are listed and not followed."""
    folders, (path,) = folders_at(app, call, args.path)
    page = app.browser.browse(
        folders.jail, call, path, offset=args.offset, limit=args.limit, order=args.sort, name_part=args.filter
    )
    policy = _common_policy(folders.jail)
    rows = [_entry_facts(entry, page.path, policy) for entry in page.entries]
    has_more = args.offset + len(rows) < page.total
    data = BrowseFolderAnswer(path=address_of(page.path), entries=rows, total=page.total, has_more=has_more)
    return Answer.of(f"{quantity(page.total, 'entry', 'entries')}.", data=data)


@tool(
    "open_file",
    group=Group.FILES,
    effect=Effect.READ,
    title="Open a file",
    output=OpenedFile,
    audience=CallerKind.PERSON,
    load=Load.HEAVY,
)
def open_file(app: App, call: Call, args: PersonPath) -> Answer:
    """Open a whole file up to 5,000,000 bytes, with the hash that save_file takes; of a document its text."""
    folders, (path,) = folders_at(app, call, args.path)
    file = read_whole_text(call, folders.jail, path, folders.settings)
    policy = _common_policy(folders.jail)
    data = OpenedFile(
        path=address_of(path),
        name=replace_lone_surrogates(os.path.basename(path)),
        text=None if file.text is None else replace_lone_surrogates(file.text),
        hash=file.hash,
        size_bytes=file.size_bytes,
        modified_at=format_timestamp(file.modified),
        encoding=file.encoding,
        line_ending=file.line_ending,
        media_type=file.media_type,
        is_binary=file.is_binary,
        can_save=file.can_save,
        access=_access_to(policy, path),
        reason=None if file.reason is None else replace_lone_surrogates(file.reason),
    )
    return Answer.of(data.reason or "", data=data)


class _Unchanged(Exception):
    """The file holds just what is to be saved; `digest` is its hash."""

    def __init__(self, digest: str) -> None:
        super().__init__(digest)
        self.digest = digest


@tool(
    "save_file",
    group=Group.FILES,
    effect=Effect.CHANGE,
    title="Save a file",
    output=SaveFileAnswer,
    audience=CallerKind.PERSON,
    load=Load.HEAVY,
)
def save_file(app: App, call: Call, args: SaveFile) -> Answer:
    """Save the whole text of a file, in its encoding; CONFLICT with present_hash when it is not the file that was opened."""
    folders, (path,) = folders_at(app, call, args.path)
    name = replace_lone_surrogates(path)

    def content(present: bytes | None) -> bytes:
        if present is None:
            check_hash(None, args.expected_hash, name)
            return encode_text(args.text, UTF8)
        digest = hashlib.sha256(present).hexdigest()
        if args.expected_hash is None:
            raise Conflict(f"{name} exists already. Nothing was written.", present_hash=HASH_PREFIX + digest)
        check_hash(digest, args.expected_hash, name)
        data = _encode_as(present, args.text, name)
        if data == present:
            raise _Unchanged(HASH_PREFIX + digest)
        return data

    try:
        written = app.changes.replace(folders, call, path, content)
    except _Unchanged as unchanged:
        data = SaveFileAnswer(path=address_of(path), hash=unchanged.digest, change_id=None)
        return Answer.of("The file holds just that already.", data=data)
    data = SaveFileAnswer(path=address_of(written.path), hash=written.hash, change_id=written.change_id)
    return Answer.of(f"Saved {display_name(written.path)}", data=data)


@tool(
    "make_directory_for_person",
    group=Group.FILES,
    effect=Effect.ADD,
    title="Make a directory",
    output=PersonChange,
    audience=CallerKind.PERSON,
)
def make_directory_for_person(app: App, call: Call, args: PersonPath) -> Answer:
    """Make a directory and the missing ones above it."""
    folders, (path,) = folders_at(app, call, args.path)
    change_id, real_path = app.changes.create_directory(folders, call, path)
    return Answer.of("", data=PersonChange(change_id=change_id, path=address_of(real_path)))


@tool(
    "move_for_person",
    group=Group.FILES,
    effect=Effect.CHANGE,
    title="Move or rename",
    output=PersonChange,
    audience=CallerKind.PERSON,
    timeout_seconds=_TREE_SECONDS,
)
def move_for_person(app: App, call: Call, args: MoveForPerson) -> Answer:
    """Move or rename a file or directory, also to another known directory; what is there is never replaced."""
    folders, (source, destination) = folders_at(app, call, args.path, args.destination)
    change_id = app.changes.move(folders, call, source, destination)
    return Answer.of("", data=PersonChange(change_id=change_id, path=address_of(destination)))


@tool(
    "preview_delete",
    group=Group.FILES,
    effect=Effect.READ,
    title="Preview a deletion",
    output=PreviewDeleteAnswer,
    audience=CallerKind.PERSON,
    timeout_seconds=_TREE_SECONDS,
)
def preview_delete(app: App, call: Call, args: PersonPath) -> Answer:
    """Count what a deletion would take."""
    folders, (path,) = folders_at(app, call, args.path)
    real_path, listing, can_be_undone = app.changes.proposals.preview_delete(folders, call, path)
    return Answer.of(listing.summary, data=_deletion(real_path, listing, can_be_undone=can_be_undone))


@tool(
    "delete_for_person",
    group=Group.FILES,
    effect=Effect.DESTROY,
    title="Delete",
    output=PersonChange,
    audience=CallerKind.PERSON,
    timeout_seconds=_TREE_SECONDS,
)
def delete_for_person(app: App, call: Call, args: DeleteForPerson) -> Answer:
    """Delete a file, link or directory with all in it; an undo brings it back. CONFLICT when it is not as it was counted."""
    folders, (path,) = folders_at(app, call, args.path)
    is_tree = args.expected_entries is not None
    if not is_tree and _is_filled_directory(folders, path):
        raise InvalidArgument("A directory that holds something needs expected_entries, the entries of preview_delete.")
    change_id = app.changes.delete(folders, call, path, recursive=is_tree, expected_entries=args.expected_entries)
    return Answer.of("", data=PersonChange(change_id=change_id, path=address_of(path)))


def _is_filled_directory(folders: Folders, path: str) -> bool:
    with folders.jail.place(path, follow=False) as place:
        if place.status is None:
            raise NotFound.at(path, display_name(path))
        if not stat.S_ISDIR(place.status.st_mode):
            return False
    with folders.jail.open_directory(path) as fd:
        return bool(os.listdir(fd))


def _deletion(path: str, listing: TreeListing, *, can_be_undone: bool) -> PreviewDeleteAnswer:
    return PreviewDeleteAnswer(
        path=address_of(path),
        type={"dir": "directory"}.get(listing.node.value, listing.node.value),
        entries=listing.entries,
        files=listing.files,
        directories=listing.directories,
        size_bytes=listing.size_bytes,
        can_be_undone=can_be_undone,
    )


def _encode_as(present: bytes, text: str, name: str) -> bytes:
    """Return a text as the bytes of a file that is there: in its encoding, with its line ends."""
    encoding = detect_encoding(present)
    if encoding is None:
        raise InvalidArgument(f"{name} is no text, so no text can be saved in its place.")
    return encode_text(restore_line_ends(decode(present, encoding, errors="replace"), text), encoding)


def _entry_facts(entry: FolderEntry, folder: str, policy: Policy | None) -> FolderEntryFacts:
    path = f"{folder.rstrip('/')}/{entry.name}"
    status = entry.status
    is_file = status is not None and stat.S_ISREG(status.st_mode)
    return FolderEntryFacts(
        name=replace_lone_surrogates(entry.name),
        path=address_of(path),
        type=entry.type.value,
        size_bytes=status.st_size if status is not None and is_file else None,
        modified_at=None if status is None else format_timestamp(status.st_mtime),
        is_hidden=entry.name.startswith("."),
        access=_access_to(policy, path),
    )


def _common_policy(jail: Jail) -> Policy | None:
    """Return the rules that bind every agent in some directories, None where there are none."""
    return policy_for(jail.common_rules, jail.allowed_paths)


def _access_to(policy: Policy | None, path: str) -> str:
    rule = None if policy is None else policy.rule_of(path)
    return str(Access.ALLOW if rule is None else rule.access)
