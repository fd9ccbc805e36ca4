"""Arguments and answers of the person's tools of changes."""

from pydantic import BaseModel, Field

from holdfast.changes.history.effects import FileEffect
from holdfast.changes.history.preview import UndoneFile, UndoStep
from holdfast.changes.model import Change, ChangeKind, Plan, UndoResult
from holdfast.text.decode import replace_lone_surrogates
from holdfast.tools.registry import Arguments


class ChangeSelection(Arguments):
    """Which changes: every condition that is given holds."""

    directory: str | None = Field(None, description="Real path of a directory that the change touched something in.")
    client: str | None = Field(None, description="Name of the program that made it; `you` for commands of the person.")
    since: str | None = Field(None, description="Made at this time or later, RFC 3339 in UTC.")
    until: str | None = Field(None, description="Made at this time or earlier, RFC 3339 in UTC.")
    kinds: list[ChangeKind] | None = Field(None, description="Of one of these kinds.")
    path: str | None = Field(None, description="Touched a path that matches this glob pattern.")


class AllChanges(ChangeSelection):
    """Arguments of all_changes."""

    limit: int = Field(50, ge=1, le=1000, description="Maximum number of changes.")
    older_than: str | None = Field(None, description="Only changes before the one whose id begins so.")


class ShowChange(Arguments):
    """Arguments of show_change."""

    change_id: str = Field(min_length=1, max_length=64, description="Id of a change, or the beginning of it.")


class NetChanges(ChangeSelection):
    """Arguments of net_changes: ids, or a selection."""

    change_ids: list[str] = Field([], max_length=1000, description="Ids of changes, or the beginnings of them.")


class PreviewUndo(ChangeSelection):
    """Arguments of preview_undo: ids, or a selection, or neither for the newest change."""

    change_ids: list[str] = Field([], max_length=1000, description="Ids of changes, or the beginnings of them.")
    redo: bool = Field(False, description="Reverse undos instead of changes.")


class UndoForPerson(Arguments):
    """Arguments of undo_for_person."""

    change_id: str = Field(min_length=32, max_length=32, description="Id of a change.")


class PruneImages(Arguments):
    """Arguments of prune_images: before-images of that age, or as many of the oldest as leave that size."""

    before: str | None = Field(None, description="Last used before this time, RFC 3339 in UTC.")
    to_bytes: int | None = Field(None, ge=0, description="Bytes that may stay.")
    directory: str | None = Field(None, description="Only of changes beneath this directory.")
    dry_run: bool = Field(True, description="Only count.")


class ChangeFacts(BaseModel):
    """One change: who, when, what."""

    change_id: str
    kind: str
    status: str
    client: str = Field(description="name of the program that made it, empty when that is not known")
    client_version: str
    is_yours: bool = Field(description="made by a command of the person")
    at: str
    path: str
    destination: str | None = None
    entries: int = Field(description="files and directories touched")
    undoes: str | None = None

    @classmethod
    def of_plan(cls, plan: Plan) -> "ChangeFacts":
        """Return a change with its items."""
        return cls(
            change_id=plan.id,
            kind=plan.kind.value,
            status=plan.status.value,
            client=plan.client.name,
            client_version=plan.client.version,
            is_yours=plan.client.is_command,
            at=plan.executed_at or plan.created_at,
            path=replace_lone_surrogates(plan.folder or (plan.first.src_path if plan.items else plan.root_dir)),
            destination=None if plan.stepwise or not plan.items else _printable(plan.first.dest_path),
            entries=len(plan.items),
            undoes=plan.undoes,
        )


class ListedFacts(ChangeFacts):
    """One change of the list."""

    size_bytes: int = Field(description="bytes of the files as they were before")
    undoable: bool

    @classmethod
    def of(cls, change: Change) -> "ListedFacts":
        """Return a change of the journal's list."""
        return cls(
            change_id=change.id,
            kind=change.kind.value,
            status=change.status.value,
            client=change.client.name,
            client_version=change.client.version,
            is_yours=change.client.is_command,
            at=change.at,
            path=replace_lone_surrogates(change.path),
            destination=_printable(change.dest_path),
            entries=change.items,
            undoes=change.undoes,
            size_bytes=change.size_bytes,
            undoable=change.undoable,
        )


class AllChangesAnswer(BaseModel):
    """Answer of all_changes, newest first."""

    changes: list[ListedFacts]
    has_more: bool


class FileEffectAnswer(BaseModel):
    """What became of one file, link or directory."""

    effect: str
    type: str
    path: str
    former_path: str | None = None
    before_bytes: int | None = None
    after_bytes: int | None = None
    diff: str
    note: str

    @classmethod
    def of(cls, effect: FileEffect) -> "FileEffectAnswer":
        """Return an effect in plain values."""
        return cls(
            effect=effect.kind.value,
            type=effect.node.value,
            path=replace_lone_surrogates(effect.path),
            former_path=_printable(effect.former_path),
            before_bytes=effect.before_bytes,
            after_bytes=effect.after_bytes,
            diff=replace_lone_surrogates(effect.diff),
            note=replace_lone_surrogates(effect.note),
        )


class ShowChangeAnswer(BaseModel):
    """Answer of show_change."""

    change: ChangeFacts
    files: list[FileEffectAnswer]


class NetChangesAnswer(BaseModel):
    """Answer of net_changes: what became of each file, and how many changes it was."""

    changes: int
    files: list[FileEffectAnswer]


class UndoneFileAnswer(BaseModel):
    """What an undo does to one entry; `problem` is why it stays as it is."""

    step: str = Field(
        description="replace, remove, restore, move, mkdir, rmdir, or kept for saved bytes of another program"
    )
    type: str
    path: str
    destination: str | None = None
    problem: str = ""
    blocked_by: str | None = None

    @classmethod
    def of(cls, file: UndoneFile) -> "UndoneFileAnswer":
        """Return the preview of one entry."""
        return cls(
            step=file.op.value,
            type=file.node.value,
            path=replace_lone_surrogates(file.path),
            destination=_printable(file.dest_path),
            problem=replace_lone_surrogates(file.problem),
            blocked_by=file.blocked_by,
        )


class UndoStepAnswer(BaseModel):
    """The preview of one change."""

    change: ChangeFacts
    can_be_done: bool
    problem: str = ""
    blocked_by: str | None = None
    files: list[UndoneFileAnswer]

    @classmethod
    def of(cls, step: UndoStep) -> "UndoStepAnswer":
        """Return the preview of one change."""
        return cls(
            change=ChangeFacts.of_plan(step.plan),
            can_be_done=step.can_be_done,
            problem=replace_lone_surrogates(step.problem),
            blocked_by=step.blocked_by,
            files=[UndoneFileAnswer.of(file) for file in step.files],
        )


class PreviewUndoAnswer(BaseModel):
    """Answer of preview_undo, in the order in which the changes would be undone."""

    steps: list[UndoStepAnswer]


class StayedFile(BaseModel):
    """A file that an undo left where it is."""

    path: str
    reason: str


class UndoForPersonAnswer(BaseModel):
    """Answer of undo_for_person; `undo_id` is None when the change was undone already."""

    change_id: str
    undo_id: str | None
    stayed: list[StayedFile]

    @classmethod
    def of(cls, result: UndoResult) -> "UndoForPersonAnswer":
        """Return the result of an undo."""
        stayed = [
            StayedFile(
                path=replace_lone_surrogates(item.src_path), reason=replace_lone_surrogates(item.error_msg or "")
            )
            for item in result.stayed
        ]
        return cls(change_id=result.plan.id, undo_id=result.change_id, stayed=stayed)


class RestoreBefore(Arguments):
    """Arguments of restore_before."""

    change_id: str = Field(
        min_length=1,
        max_length=64,
        description="The change before which the state is wanted, or the beginning of its id.",
    )


class RestoreBeforeAnswer(BaseModel):
    """Answer of restore_before; `restore_id` is None when nothing had to be changed."""

    change_id: str
    path: str
    restore_id: str | None

    @classmethod
    def of(cls, result: UndoResult) -> "RestoreBeforeAnswer":
        """Return what was restored."""
        path = replace_lone_surrogates(result.plan.first.src_path)
        return cls(change_id=result.plan.id, path=path, restore_id=result.change_id)


class PruneImagesAnswer(BaseModel):
    """Answer of prune_images: what goes or went, and which changes can then not be undone any more."""

    images: int
    bytes: int
    changes: int
    newest: list[ChangeFacts] = Field(description="the newest of these changes")


def _printable(path: str | None) -> str | None:
    return None if path is None else replace_lone_surrogates(path)
