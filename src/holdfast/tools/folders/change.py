"""The tools that move, delete and make directories, list changes and undo them.

Under a rule of review each that changes something puts it before the person instead.
"""

from collections.abc import Callable, Sequence
from functools import partial

from pydantic import BaseModel, Field

from holdfast.app import App
from holdfast.auth.context import ClientInfo
from holdfast.call import Call
from holdfast.changes.disk.policy_gate import ReviewNeeded
from holdfast.changes.model import Change, PlanStatus
from holdfast.changes.path_change import PathChange
from holdfast.review.model import Review
from holdfast.text.budget import first_page, read_position
from holdfast.text.decode import replace_lone_surrogates
from holdfast.text.display import display_name, quantity
from holdfast.tools.answer import Answer
from holdfast.tools.organiser.answers import describe_undo
from holdfast.tools.organiser.plan_text import stayed_lines
from holdfast.tools.registry import Arguments, Effect, Group, tool
from holdfast.tools.review.ask import person_needed

_MAX_LISTED = 500


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


@tool(
    "create_directory",
    group=Group.FILES,
    effect=Effect.ADD,
    title="On disk: create a directory",
    idempotent=True,
    may_ask=True,
)
def create_directory(app: App, call: Call, args: CreateDirectory) -> Answer:
    """On disk: make a directory and the missing ones above it. One that exists is left as it is."""
    folders = app.folders_of(call.caller)
    try:
        change_id, _ = app.changes.create_directory(folders, call, args.path)
    except ReviewNeeded as needed:
        describe = partial(app.changes.proposals.describe_directory, folders, call, args.path)
        raise person_needed(app, call, needed, partial(_propose, app, call, describe), args.path) from None
    if change_id is None:
        return Answer.of(f"Directory {args.path} exists already.")
    return Answer.of(f"Successfully created directory {args.path}\nchange {change_id}")


@tool("move_file", group=Group.FILES, effect=Effect.CHANGE, title="On disk: move or rename", may_ask=True)
def move_file(app: App, call: Call, args: MoveFile) -> Answer:
    """On disk: move or rename a file or directory. Never replaces: an existing destination is an error."""
    folders = app.folders_of(call.caller)
    try:
        change_id = app.changes.move(folders, call, args.source, args.destination)
    except ReviewNeeded as needed:
        describe = partial(app.changes.proposals.describe_move, folders, call, args.source, args.destination)
        raise person_needed(app, call, needed, partial(_propose, app, call, describe), args.source) from None
    return Answer.of(f"Successfully moved {args.source} to {args.destination}\nchange {change_id}")


@tool("delete_file", group=Group.FILES, effect=Effect.DESTROY, title="On disk: delete", may_ask=True)
def delete_file(app: App, call: Call, args: DeleteFile) -> Answer:
    """On disk: delete a file, link or directory; undo_change brings it back. A directory with content needs recursive."""
    folders = app.folders_of(call.caller)
    try:
        change_id = app.changes.delete(folders, call, args.path, recursive=args.recursive)
    except ReviewNeeded as needed:
        describe = partial(app.changes.proposals.describe_delete, folders, call, args.path, recursive=args.recursive)
        raise person_needed(app, call, needed, partial(_propose, app, call, describe), args.path) from None
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


@tool("undo_change", group=Group.FILES, effect=Effect.DESTROY, title="On disk: undo a change", may_ask=True)
def undo_change(app: App, call: Call, args: UndoChange) -> Answer:
    """On disk: undo one change: restore old bytes, names and modes. Refused when something newer would be lost.

    An undo is a change itself and can be undone.
    """
    folders = app.folders_of(call.caller)
    try:
        undone = app.changes.undo(folders, call, args.change_id)
    except ReviewNeeded as needed:
        describe = partial(app.changes.proposals.describe_undo, folders, call, args.change_id)
        raise person_needed(app, call, needed, partial(_propose, app, call, describe)) from None
    plan, trail = undone.plan, f"change {undone.change_id}"
    path = display_name(plan.folder or plan.first.src_path)
    report = describe_undo(undone) if plan.stepwise else None
    if undone.change_id is None:
        return Answer.of(f"The {plan.kind} of {path} was already undone; nothing is left to undo.", data=report)
    if report is not None:
        how = " in part" if report.stayed else ""
        back = quantity(report.came_back, "file is back", "files are back")
        lines = [f"Undid {plan.kind} of {path}{how}: {back}.", *stayed_lines(report), trail]
        return Answer.of("\n".join(lines), data=report)
    if plan.status is PlanStatus.FAILED:
        return Answer.of(f"Wrote what another program had saved at {path} beside it, as (kept)\n{trail}")
    return Answer.of(f"Undid {plan.kind} of {path}\n{trail}")


def _propose(app: App, call: Call, describe: Callable[[], PathChange]) -> Review:
    return app.reviews.agent.propose_path_change(describe(), call.caller.client)


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
