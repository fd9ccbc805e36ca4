"""The tools that change local files, list changes and undo them."""

import json
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from holdfast.app import App
from holdfast.auth.context import ClientInfo
from holdfast.call import Call
from holdfast.changes.model import Change, PlanStatus
from holdfast.changes.service import WriteResult
from holdfast.errors import HoldfastError, error_class
from holdfast.folders.finding.path_hints import MAX_HINTS, add_path_hint
from holdfast.text.budget import cut_to_budget, estimate_tokens, first_page, read_position
from holdfast.text.decode import replace_lone_surrogates
from holdfast.text.diff import DIFF_CUT, fence_diff, unified_diff
from holdfast.text.display import display_name
from holdfast.text.edit import Edit
from holdfast.tools.answer import Answer
from holdfast.tools.organiser.answers import describe_undo
from holdfast.tools.organiser.plan_text import stayed_lines
from holdfast.tools.registry import Arguments, Effect, ExactEdit, Group, tool
from holdfast.tools.threads import Load

_MAX_LISTED = 500


class WriteFile(Arguments):
    """Arguments of write_file."""

    path: str = Field(description="Path of the file to create or replace.")
    content: str = Field(description="The whole new content of the file, stored as UTF-8.")


class ReferenceEdit(Arguments):
    """One edit of edit_file, in the reference server's words."""

    old_text: str = Field(alias="oldText", description="Exact text in the file, which occurs once.")
    new_text: str = Field(alias="newText", description="Text to put in its place.")


class EditFile(Arguments):
    """Arguments of edit_file."""

    path: str = Field(description="Path of the file to edit.")
    edits: list[ReferenceEdit] = Field(min_length=1, description="The edits, applied in order, all or none.")
    dry_run: bool = Field(False, alias="dryRun", description="Whether to show the diff alone and write nothing.")


class FileEdits(Arguments):
    """The edits of one file."""

    path: str = Field(description="Path of the file to edit.")
    edits: list[ExactEdit] = Field(min_length=1, description="The edits, applied in order, all or none.")
    expected_hash: str | None = Field(None, description="SHA-256 that the file must have, else nothing is written.")


class EditFiles(Arguments):
    """Arguments of edit_files."""

    files: list[FileEdits] = Field(
        min_length=1, max_length=100, description="The files to edit, independent of one another."
    )


class FileOutcome(BaseModel):
    """The outcome of one file of edit_files."""

    path: str
    status: Literal["applied", "failed"]
    hash: str | None = None
    change_id: str | None = None
    error: dict[str, Any] | None = None


class EditFilesAnswer(BaseModel):
    """Answer of edit_files: one outcome for each file, in the order asked."""

    files: list[FileOutcome]


class AppendText(Arguments):
    """Arguments of append_text."""

    path: str = Field(description="Path of the file to extend; created when missing.")
    content: str = Field(description="Text to add at the end, as it is.")


class CreateDirectory(Arguments):
    """Arguments of create_directory."""

    path: str = Field(description="Path of the directory to make.")


class MoveFile(Arguments):
    """Arguments of move_file."""

    source: str = Field(description="Path of the file or directory to move.")
    destination: str = Field(description="Its new path, where nothing may be yet.")


class DeleteFile(Arguments):
    """Arguments of delete_file."""

    path: str = Field(description="Path of the file, link or directory to delete.")
    recursive: bool = Field(False, description="Whether to delete a directory with its content.")


class ListChanges(Arguments):
    """Arguments of list_changes."""

    limit: int = Field(50, ge=1, le=_MAX_LISTED, description="Most changes to list.")
    cursor: str | None = Field(None, description="Cursor of the previous answer.")


class ChangeStatus(BaseModel):
    """What list_changes answers of every change; the tool list declares no more."""

    change_id: str
    kind: str
    path: str
    status: str
    at: str
    undoable: bool


class ListedChange(ChangeStatus):
    """One change: `entries` files and directories, and contents of another program that were `kept` on the way."""

    destination: str | None = None
    client: str | None = None
    entries: int
    undoes: str | None = None
    kept: int = 0


class ChangeStatuses(BaseModel):
    """What the tool list declares of the answer of list_changes."""

    changes: Sequence[ChangeStatus]
    next_cursor: str | None = None


class ListChangesAnswer(ChangeStatuses):
    """Answer of list_changes, newest first."""

    changes: Sequence[ListedChange]


class UndoChange(Arguments):
    """Arguments of undo_change."""

    change_id: str = Field(
        min_length=1, max_length=64, description="Id of the change, from its answer or list_changes."
    )


@tool("write_file", group=Group.FILES, effect=Effect.DESTROY, title="On disk: write a file", idempotent=True)
def write_file(app: App, call: Call, args: WriteFile) -> Answer:
    """On disk: create a file or replace its whole content, atomically; undo_change brings the old content back.

    For changes to a part of a file use edit_files.
    """
    result = app.changes.write(app.folders_of(call.caller), call, args.path, args.content)
    return Answer.of(f"Successfully wrote to {args.path}\n{_hash_and_change(result)}", _binary_note(result, "replaced"))


@tool("edit_file", group=Group.FILES, effect=Effect.DESTROY, title="On disk: edit a file", load=Load.HEAVY)
def edit_file(app: App, call: Call, args: EditFile) -> Answer:
    """On disk: replace exact pieces of a text file and return the unified diff.

    Each oldText must occur exactly once; a line feed also matches CRLF. dryRun shows the diff and writes nothing.
    """
    edits = [Edit(edit.old_text, edit.new_text) for edit in args.edits]
    folders = app.folders_of(call.caller)
    result = app.changes.edit(folders, call, args.path, edits, dry_run=args.dry_run)
    diff, is_cut = cut_to_budget(
        unified_diff(result.before, result.after, args.path), folders.settings.max_answer_tokens
    )
    note = DIFF_CUT if is_cut else ""
    trail = "Dry run: nothing was written." if args.dry_run else _hash_and_change(result)
    return Answer.of(fence_diff(diff), note, trail)


@tool(
    "edit_files",
    group=Group.FILES,
    effect=Effect.DESTROY,
    title="On disk: edit several files",
    output=EditFilesAnswer,
    load=Load.HEAVY,
)
def edit_files(app: App, call: Call, args: EditFiles) -> Answer:
    """On disk: edit several text files by exact replacement; each file is all or nothing.

    The answer has the new hash, for expected_hash of the next edit; of a failed file a hint and often its content.
    """
    outcomes: list[FileOutcome] = []
    budget = app.settings.folders.max_answer_tokens
    for count, file in enumerate(args.files, start=1):
        call.check()
        outcome = _edit_one(app, call, file, with_hint=count <= MAX_HINTS)
        budget -= _trim_error(outcome, budget)
        outcomes.append(outcome)
        call.progress(count, len(args.files), file.path)
    applied = sum(outcome.status == "applied" for outcome in outcomes)
    if not applied:
        raise _nothing_edited_error(outcomes)
    lines = [f"Files edited: {applied} of {len(outcomes)}."]
    lines += [_outcome_line(outcome) for outcome in outcomes]
    contents = (
        f"Content of {display_name(outcome.path)}:\n{outcome.error['file_content']}"
        for outcome in outcomes
        if outcome.error is not None and "file_content" in outcome.error
    )
    return Answer.of("\n".join(lines), *contents, data=EditFilesAnswer(files=outcomes))


@tool("append_text", group=Group.FILES, effect=Effect.ADD, title="On disk: append to a file")
def append_text(app: App, call: Call, args: AppendText) -> Answer:
    """On disk: add text at the end of a file, in its encoding and line ends. No line break is put in between."""
    result = app.changes.append(app.folders_of(call.caller), call, args.path, args.content)
    return Answer.of(
        f"Successfully appended to {args.path}\n{_hash_and_change(result)}", _binary_note(result, "was added to")
    )


@tool("create_directory", group=Group.FILES, effect=Effect.ADD, title="On disk: create a directory", idempotent=True)
def create_directory(app: App, call: Call, args: CreateDirectory) -> Answer:
    """On disk: make a directory and the missing ones above it. One that exists is left as it is."""
    change_id, _ = app.changes.create_directory(app.folders_of(call.caller), call, args.path)
    if change_id is None:
        return Answer.of(f"Directory {args.path} exists already.")
    return Answer.of(f"Successfully created directory {args.path}\nchange {change_id}")


@tool("move_file", group=Group.FILES, effect=Effect.CHANGE, title="On disk: move or rename")
def move_file(app: App, call: Call, args: MoveFile) -> Answer:
    """On disk: move or rename a file or directory. Never replaces: an existing destination is an error."""
    folders = app.folders_of(call.caller)
    change_id = app.changes.move(folders, call, args.source, args.destination)
    return Answer.of(f"Successfully moved {args.source} to {args.destination}\nchange {change_id}")


@tool("delete_file", group=Group.FILES, effect=Effect.DESTROY, title="On disk: delete")
def delete_file(app: App, call: Call, args: DeleteFile) -> Answer:
    """On disk: delete a file, link or directory; undo_change brings it back. A directory with content needs recursive."""
    folders = app.folders_of(call.caller)
    change_id = app.changes.delete(folders, call, args.path, recursive=args.recursive)
    return Answer.of(f"Successfully deleted {args.path}\nchange {change_id}")


@tool("list_changes", group=Group.FILES, effect=Effect.READ, title="On disk: list changes", output=ChangeStatuses)
def list_changes(app: App, call: Call, args: ListChanges) -> Answer:
    """On disk: list the changes made through this server, newest first, with the ids that undo_change takes."""
    before = read_position(args.cursor, "seq", "list_changes")
    changes = app.changes.list(app.folders_of(call.caller), args.limit + 1, before)
    page, next_cursor = first_page(changes, args.limit, "seq")
    data = ListChangesAnswer(changes=[_listed_change(change) for change in page], next_cursor=next_cursor)
    lines = [_change_line(change) for change in data.changes] or ["No changes."]
    more = "" if next_cursor is None else f'[More: repeat the call with cursor="{next_cursor}"]'
    return Answer.of("\n".join(lines), more, data=data)


@tool("undo_change", group=Group.FILES, effect=Effect.DESTROY, title="On disk: undo a change")
def undo_change(app: App, call: Call, args: UndoChange) -> Answer:
    """On disk: undo one change: restore old bytes, names and modes. Refused when something newer would be lost.

    An undo is a change itself and can be undone.
    """
    undone = app.changes.undo(app.folders_of(call.caller), call, args.change_id)
    plan, trail = undone.plan, f"change {undone.change_id}"
    path = display_name(plan.folder or plan.first.src_path)
    report = describe_undo(undone) if plan.stepwise else None
    if undone.change_id is None:
        return Answer.of(f"The {plan.kind} of {path} was already undone; nothing is left to undo.", data=report)
    if report is not None:
        how = " in part" if report.stayed else ""
        back = "1 file is back" if report.came_back == 1 else f"{report.came_back} files are back"
        lines = [f"Undid {plan.kind} of {path}{how}: {back}.", *stayed_lines(report), trail]
        return Answer.of("\n".join(lines), data=report)
    if plan.status is PlanStatus.FAILED:
        return Answer.of(f"Wrote what another program had saved at {path} beside it, as (kept)\n{trail}")
    return Answer.of(f"Undid {plan.kind} of {path}\n{trail}")


def _edit_one(app: App, call: Call, file: FileEdits, *, with_hint: bool) -> FileOutcome:
    folders = app.folders_of(call.caller)
    try:
        result = app.changes.edit(
            folders, call, file.path, [edit.as_edit() for edit in file.edits], expected_hash=file.expected_hash
        )
    except HoldfastError as error:
        call.check()
        if with_hint:
            add_path_hint(folders.jail, error)
        return FileOutcome(path=file.path, status="failed", error=error.payload())
    return FileOutcome(path=file.path, status="applied", hash=result.hash, change_id=result.change_id)


def _trim_error(outcome: FileOutcome, budget: int) -> int:
    """Leave a file's content out of its error where the answer would become too long; return what it costs."""
    if outcome.error is None or "file_content" not in outcome.error:
        return 0
    cost = estimate_tokens(outcome.error["file_content"])
    if cost <= budget:
        return cost
    del outcome.error["file_content"]
    return 0


def _nothing_edited_error(outcomes: Sequence[FileOutcome]) -> HoldfastError:
    """Return the error of a call that edited no file: its code is that of the first file, its message names each."""
    lines = "\n".join(map(_outcome_line, outcomes))
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    files = [outcome.model_dump(exclude_none=True) for outcome in outcomes]
    return error_class(errors[0]["code"])(f"No file was edited.\n{lines}", files=files)


def _outcome_line(outcome: FileOutcome) -> str:
    """Return what became of a file on one line: its new hash, or why it was not edited, and by which text to match."""
    if outcome.error is not None:
        code, message, hint = outcome.error["code"], outcome.error["message"], outcome.error.get("hint", "")
        text = outcome.error.get("text_to_match")
        line = f"{display_name(outcome.path)}: {code}: {message} {hint}".rstrip()
        return line if text is None else f"{line} Text to match: {json.dumps(text, ensure_ascii=False)}"
    return f"{display_name(outcome.path)}: {outcome.hash} change {outcome.change_id}"


def _change_line(change: ListedChange) -> str:
    where = display_name(change.path)
    if change.destination is not None:
        where += f" -> {display_name(change.destination)}"
    undo = "undoable" if change.undoable else "not undoable"
    more = f", {change.entries} entries" if change.entries > 1 else ""
    more += f", kept {change.kept} of another program" if change.kept else ""
    client = f" by {display_name(change.client)}" if change.client else ""
    return f"{change.change_id} {change.at} {change.kind} {where}{client} ({change.status}, {undo}{more})"


def _client_text(client: ClientInfo) -> str | None:
    return "a command of the person" if client.is_command else str(client) or None


def _binary_note(result: WriteResult, verb: str) -> str:
    """Return a warning when text took the place of a file that is no text, or was added to one; empty otherwise."""
    if not result.binary_type:
        return ""
    undo = f'undo_change with change_id="{result.change_id}" brings it back.'
    return f"[This text {verb} a file that is no text ({result.binary_type}). If that was not wanted: {undo}]"


def _hash_and_change(result: WriteResult) -> str:
    return f"{result.hash}\nchange {result.change_id}"


def _listed_change(change: Change) -> ListedChange:
    return ListedChange(
        change_id=change.id,
        kind=change.kind.value,
        path=replace_lone_surrogates(change.path),
        destination=None if change.dest_path is None else replace_lone_surrogates(change.dest_path),
        status=change.status.value,
        at=change.created_at,
        client=_client_text(change.client),
        entries=change.items,
        undoable=change.undoable,
        undoes=change.undoes,
        kept=change.saved,
    )
