"""The use cases that change local files: write, edit, move, delete, undo. Nothing else in Holdfast changes one."""

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from holdfast.bulletin import Bulletin
from holdfast.call import Call
from holdfast.changes.disk.files import stat_entry
from holdfast.changes.disk.images import Images
from holdfast.changes.disk.places import (
    Locks,
    check_directory,
    is_directory,
    lock_entry,
    lock_move,
    lock_place,
    translate_os_errors,
)
from holdfast.changes.disk.policy_gate import check_paths, check_tree, hides_any, is_visible
from holdfast.changes.disk.quarantine import Quarantine
from holdfast.changes.disk.tree_listing import check_entries
from holdfast.changes.history.service import ChangeHistory
from holdfast.changes.model import Change, ChangeKind, Op, Plan, PlanStatus, UndoResult
from holdfast.changes.plans.execute import Executor
from holdfast.changes.plans.service import Plans
from holdfast.changes.ports import Journal
from holdfast.changes.proposals import Proposals
from holdfast.changes.recover import Recovery
from holdfast.changes.selection import PrunedImages, PruneSelection
from holdfast.changes.single.content import (
    HASH_PREFIX,
    SMALL_BYTES,
    BaseFile,
    ContentChanges,
    ContentResult,
    EditPreview,
    check_hash,
    read_base,
    size_check,
)
from holdfast.changes.single.directories import Directories, lock_missing_directories
from holdfast.changes.single.move import Moves
from holdfast.changes.single.record import ChangeRequest, Recorder
from holdfast.changes.single.remove import Removals, check_empty
from holdfast.changes.single.restore import StateRestore
from holdfast.changes.single.undo import Undo
from holdfast.changes.upkeep import JournalUpkeep
from holdfast.config.settings import JournalSettings
from holdfast.errors import (
    Conflict,
    EditRejected,
    InvalidArgument,
    NotFound,
    ResourceBusy,
)
from holdfast.folders.access.file_version import identity_text
from holdfast.folders.access.jail import Place
from holdfast.folders.access.syscalls import read_fully
from holdfast.folders.service import Folders
from holdfast.observe.metrics import Metrics
from holdfast.text.budget import visible_rows
from holdfast.text.decode import SAMPLE_BYTES, detect_encoding
from holdfast.text.edit import APPEND, OVERWRITE, Edit, EditLimits, EditResult, edit_bytes, encode_text
from holdfast.text.media_types import binary_type, document_format


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The result of a change of content; `change_id` is None for a dry run, `before` and `after` show an edit.

    `binary_type` is the media type of a file that was no text before text was written to it, empty otherwise.
    """

    path: str
    hash: str
    change_id: str | None
    created: bool
    before: str = ""
    after: str = ""
    binary_type: str = ""


class Changes:
    """Writes, edits, moves and deletes through the journal, and undoes changes.

    `state_dir` is where large before-images go; the journal is whatever adapter wiring chose. Call `recover()`
    once before the first change and `close()` at the end.
    """

    def __init__(
        self,
        journal: Journal,
        state_dir: str,
        settings: JournalSettings,
        *,
        require_approval: bool = True,
        metrics: Metrics | None = None,
        bulletin: Bulletin | None = None,
    ) -> None:
        metrics = metrics or Metrics()
        self._journal = journal
        self._images = Images(journal, state_dir, settings)
        self._quarantine = Quarantine(state_dir)
        self._upkeep = JournalUpkeep(journal, self._images, self._quarantine, settings)
        self.wake_upkeep = self._upkeep.wake
        self._recorder = Recorder(journal, self._images, self.wake_upkeep, metrics, bulletin)
        self._images.room.watch(metrics)
        self._locks = Locks()
        self._contents = ContentChanges(journal, self._images, self._recorder)
        self._removals = Removals(self._images, self._recorder)
        self._moves = Moves(self._recorder, self._quarantine)
        self._directories = Directories(self._recorder)
        executor = Executor(journal.plans, self._locks, self._quarantine, self._upkeep.wake, metrics)
        self.plans = Plans(journal, executor, require_approval=require_approval, bulletin=bulletin)
        self._recovery = Recovery(self._contents, self._removals, self._moves, self._directories, executor, state_dir)
        self.history = ChangeHistory(journal, self._images)
        self._undo = Undo(
            journal, self._images, self._contents, self._removals, self._moves, self._directories, self._locks
        )
        self._restore = StateRestore(self._undo, state_dir)
        self.proposals = Proposals(
            journal, self._images, self._removals, self._moves, self._directories, self._undo, self._locks
        )

    def recover(self) -> int:
        """Recover changes that a crash left unfinished, before the first new one; returns how many they were."""
        recovered = self._recovery.run(self._journal, self._recorder)
        self._images.sweep()
        return recovered

    def close(self) -> None:
        """Stop the upkeep and close the journal."""
        self._upkeep.close()
        self._journal.close()

    def write(self, folders: Folders, call: Call, path: str, content: str) -> WriteResult:
        """Create a file or replace its whole content."""
        data, request = _encode(content), ChangeRequest(ChangeKind.WRITE, call.caller.client, folders.jail)
        with translate_os_errors(path), lock_place(folders.jail, self._locks, call, path, follow=True) as place:
            if stat_entry(place.parent_fd, place.name) is None:
                return _write_result(place, self._contents.put(place, None, data, request), created=True)
            with read_base(place, with_data=True, max_bytes=SMALL_BYTES, admit=self._images.room.admit) as base:
                kind = binary_type(read_fully(base.fd, 0, SAMPLE_BYTES), place.name)
                result = self._contents.put(place, base, data, request)
                return replace(_write_result(place, result, created=False), binary_type=kind)

    def edit(
        self,
        folders: Folders,
        call: Call,
        path: str,
        edits: Sequence[Edit],
        *,
        expected_hash: str | None = None,
        dry_run: bool = False,
        kind: ChangeKind = ChangeKind.EDIT,
    ) -> WriteResult:
        """Apply edits to one file, all or none; EditRejected says why they do not match.

        Conflict when `expected_hash` is given and the file has another hash.
        """
        with translate_os_errors(path), lock_place(folders.jail, self._locks, call, path, follow=True) as place:
            if stat_entry(place.parent_fd, place.name) is None:
                check_hash(None, expected_hash, place.path)
                edited = _edit_content(None, path, edits, folders, call)
                return self._write_edit(
                    place, None, edited, dry_run, ChangeRequest(kind, call.caller.client, folders.jail)
                )
            with read_base(place, with_data=True, admit=size_check(folders.settings.max_edit_bytes)) as base:
                check_hash(base.hash, expected_hash, place.path)
                edited = _edit_content(base.data, path, edits, folders, call)
                result = self._write_edit(
                    place, base, edited, dry_run, ChangeRequest(kind, call.caller.client, folders.jail)
                )
                return replace(result, binary_type=binary_type((base.data or b"")[:SAMPLE_BYTES], place.name))

    def replace(self, folders: Folders, call: Call, path: str, content: Callable[[bytes | None], bytes]) -> WriteResult:
        """Give a file what `content` makes of its bytes, None for a missing file; what that raises changes nothing."""
        request = ChangeRequest(ChangeKind.WRITE, call.caller.client, folders.jail)
        with translate_os_errors(path), lock_place(folders.jail, self._locks, call, path, follow=True) as place:
            if stat_entry(place.parent_fd, place.name) is None:
                return _write_result(place, self._contents.put(place, None, content(None), request), created=True)
            with read_base(place, with_data=True, admit=size_check(folders.settings.max_edit_bytes)) as base:
                return _write_result(place, self._contents.put(place, base, content(base.data), request), created=False)

    def preview_edit(
        self,
        folders: Folders,
        call: Call,
        path: str,
        edits: Sequence[Edit],
        *,
        expected_hash: str | None = None,
    ) -> EditPreview:
        """Return what edits would write, refused as `edit` refuses them; nothing is written."""
        with translate_os_errors(path), lock_place(folders.jail, self._locks, call, path, follow=True) as place:
            check_paths(folders.jail.approved(), [place.path])
            directory = identity_text(os.fstat(place.parent_fd))
            if stat_entry(place.parent_fd, place.name) is None:
                check_hash(None, expected_hash, place.path)
                edited = _edit_content(None, path, edits, folders, call)
                return EditPreview(place.path, place.root.path, None, edited.data, directory)
            with read_base(place, with_data=True, admit=size_check(folders.settings.max_edit_bytes)) as base:
                check_hash(base.hash, expected_hash, place.path)
                edited = _edit_content(base.data, path, edits, folders, call)
                return EditPreview(place.path, place.root.path, base.data, edited.data, directory)

    def preview_write(self, folders: Folders, call: Call, path: str, content: str) -> EditPreview:
        """Return what `write` would write; nothing is written. EditRejected when the file holds just that.

        The text of a file in another encoding than UTF-8 keeps it, so that a person reads before and after alike.
        """
        data = _encode(content)
        with translate_os_errors(path), lock_place(folders.jail, self._locks, call, path, follow=True) as place:
            check_paths(folders.jail.approved(), [place.path])
            directory = identity_text(os.fstat(place.parent_fd))
            if stat_entry(place.parent_fd, place.name) is None:
                return EditPreview(place.path, place.root.path, None, data, directory)
            with read_base(place, with_data=True, admit=size_check(folders.settings.max_edit_bytes)) as base:
                encoding = detect_encoding(base.data or b"")
                data = encode_text(content, encoding) if encoding is not None else data
                if data == base.data:
                    raise EditRejected(
                        "validation_error", f"{path} holds exactly this text already.", "There is nothing to approve."
                    )
                return EditPreview(place.path, place.root.path, base.data, data, directory)

    def apply_approved(
        self,
        folders: Folders,
        call: Call,
        plan: Plan,
        path: str,
        content: Callable[[bytes | None], bytes],
        *,
        directory: str | None,
    ) -> WriteResult:
        """Apply an approved proposal for one file; it becomes the newest change, under its own id.

        `content` gets the bytes of the file, None when it is missing, and returns the new bytes, or raises. Conflict
        when another directory than `directory` holds the file; None accepts any.
        """
        request = ChangeRequest(plan.kind, call.caller.client, folders.jail, proposed=plan)
        with translate_os_errors(path), lock_place(folders.jail, self._locks, call, path, follow=False) as place:
            check_directory(place, path, directory)
            status = stat_entry(place.parent_fd, place.name)
            if status is None:
                return _write_result(place, self._contents.put(place, None, content(None), request), created=True)
            if not stat.S_ISREG(status.st_mode):
                raise Conflict(f"{place.path} is not a regular file any more. Nothing was written.")
            with read_base(place, with_data=True, admit=size_check(folders.settings.max_edit_bytes)) as base:
                return _write_result(place, self._contents.put(place, base, content(base.data), request), created=False)

    def append(self, folders: Folders, call: Call, path: str, content: str) -> WriteResult:
        """Append text to a file, in its encoding and with its line ends; a missing file is created."""
        if not content:
            raise EditRejected("validation_error", "There is nothing to append.", "Give the text to add.")
        try:
            return self.edit(folders, call, path, [Edit(APPEND, content)], kind=ChangeKind.APPEND)
        except EditRejected as error:
            if error.details["error_type"] != "file_not_found":
                raise
        return self.edit(folders, call, path, [Edit("", content)], kind=ChangeKind.APPEND)

    def create_directory(self, folders: Folders, call: Call, path: str) -> tuple[str | None, str]:
        """Make a directory and those above it; returns the change id (None when it exists) and the real path."""
        with translate_os_errors(path), lock_missing_directories(folders.jail, self._locks, call, path):
            return self._directories.make(
                folders.jail, path, ChangeRequest(ChangeKind.MKDIR, call.caller.client, folders.jail)
            )

    def move(self, folders: Folders, call: Call, source: str, destination: str) -> str:
        """Move or rename; AlreadyExists when the destination exists. Returns the id of the change."""
        jail = folders.jail
        with translate_os_errors(source), lock_move(jail, self._locks, call, source, destination) as (old, new):
            return self._moves.move(jail, old, new, call, ChangeRequest(ChangeKind.MOVE, call.caller.client, jail))

    def delete(
        self, folders: Folders, call: Call, path: str, *, recursive: bool, expected_entries: int | None = None
    ) -> str:
        """Delete a file, link or directory, keeping an image of every byte; returns the id of the change.

        Conflict when it and what is in it are not as many entries as expected.
        """
        jail = folders.jail
        with translate_os_errors(path), lock_entry(jail, self._locks, call, path) as place:
            check_tree(jail, call, place)
            if expected_entries is not None:
                check_entries(place.parent_fd, place.name, place.path, expected_entries, call)
            if is_directory(place.status) and not recursive:
                check_empty(place)
            request = ChangeRequest(ChangeKind.DELETE, call.caller.client, jail)
            return self._removals.remove(jail, place, call, request)

    def list(self, folders: Folders, limit: int, before_seq: int | None) -> list[Change]:
        """Return the caller's changes, newest first, those with a `seq` below the given one."""
        jail = folders.jail

        def fetch(before: int | None) -> Sequence[Change]:
            return self._journal.list_changes(jail.allowed_paths, limit, before)

        return visible_rows(fetch, lambda row: not hides_any(jail, (row.path, row.dest_path)), limit, before_seq)

    def prune(self, selection: PruneSelection, *, dry_run: bool) -> PrunedImages:
        """Remove before-images that a person lets go, or only count them; their changes cannot be undone any more."""
        pruned, files = self._journal.prune(selection, dry_run=dry_run)
        self._images.remove_files(files)
        self._upkeep.packer.remove_replaced()
        return pruned

    def undo(self, folders: Folders, call: Call, change_id: str) -> UndoResult:
        """Undo a change; the result has no change id when it was undone before.

        For a failed change that had saved another program's bytes, those are written to a new file beside the file.
        NotFound for a change that is not beneath the caller's roots, Conflict when a newer one is in the way.
        """
        plan = self._journal.find(change_id)
        if plan is None or not is_visible(plan, folders.jail):
            raise NotFound(f"There is no change {change_id!r}. list_changes shows those that can be undone.")
        if plan.stepwise:
            return self.plans.undo(folders, call, plan)
        if plan.status is PlanStatus.RUNNING:
            raise ResourceBusy(f"Change {change_id} is still running.")
        saved = [item for item in plan.items if item.op is Op.SAVE]
        if plan.status is PlanStatus.FAILED and saved:
            with translate_os_errors(saved[0].src_path):
                return UndoResult(plan, self._undo.restore_saved(folders.jail, saved[0], call))
        if plan.status is PlanStatus.UNDONE:
            return UndoResult(plan, None)
        if plan.status is not PlanStatus.EXECUTED:
            raise Conflict(f"Change {change_id} is {plan.status}: there is nothing to undo.")
        with translate_os_errors(plan.first.src_path):
            return UndoResult(plan, self._undo.run(folders.jail, plan, call))

    def restore_before(self, call: Call, change_id: str) -> UndoResult:
        """Restore the state before a change, in any directory and whatever was changed there since; for the person."""
        with translate_os_errors(f"change {change_id}"):
            return self._restore.run(change_id, call)

    def storage_warnings(self) -> Sequence[str]:
        """Return a sentence for each directory whose undo history is nearly full."""
        return tuple(self._images.room.warnings().values())

    def _write_edit(
        self, place: Place, base: BaseFile | None, edited: EditResult, dry_run: bool, request: ChangeRequest
    ) -> WriteResult:
        if dry_run:
            present_hash = "" if base is None else base.hash
            return WriteResult(place.path, HASH_PREFIX + present_hash, None, base is None, edited.before, edited.after)
        result = self._contents.put(place, base, edited.data, request)
        return _write_result(place, result, created=base is None, edited=edited)


def _edit_content(data: bytes | None, path: str, edits: Sequence[Edit], folders: Folders, call: Call) -> EditResult:
    """Apply edits to a file's bytes, None for a missing file. EditRejected, before anything is matched, for a document.

    A document is read as the text taken out of it, which its own bytes do not hold: a match could never succeed.
    """
    is_matched = any(edit.old not in (OVERWRITE, APPEND) for edit in edits)
    form = document_format((data or b"")[:SAMPLE_BYTES], path) if is_matched else None
    if form is not None:
        raise EditRejected(
            "validation_error",
            f"{path} is {'a PDF' if form == 'pdf' else 'an Office'} document. What is read of it is text taken out of it, so "
            "its text cannot be edited in place.",
            "Write the text to a new text file with write_file, or change the document with a program for its format.",
        )
    try:
        return edit_bytes(data, edits, _limits(folders), call.check)
    except EditRejected as error:
        if error.details["error_type"] == "file_not_found":
            error.details["path"] = path
        raise


def _encode(content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"content is not valid Unicode: a lone surrogate at character {error.start}") from None


def _limits(folders: Folders) -> EditLimits:
    return EditLimits(folders.settings.max_match_chars, folders.settings.max_answer_tokens)


def _write_result(
    place: Place, result: ContentResult, *, created: bool, edited: EditResult | None = None
) -> WriteResult:
    before, after = ("", "") if edited is None else (edited.before, edited.after)
    return WriteResult(place.path, HASH_PREFIX + result.hash, result.change_id, created, before, after)
