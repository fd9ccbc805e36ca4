"""The person's tools of changes, for all directories of this machine. No agent can list or call them."""

from collections.abc import Iterable
from dataclasses import replace

from holdfast.app import App
from holdfast.auth.context import CallerKind
from holdfast.call import Call
from holdfast.changes.history.service import PathTest
from holdfast.changes.model import Change, Plan, is_beneath
from holdfast.changes.selection import ChangeFilter, PruneSelection
from holdfast.clock import format_utc
from holdfast.errors import InvalidArgument
from holdfast.folders.access.jail import Jail
from holdfast.text.display import quantity
from holdfast.text.glob import Glob
from holdfast.tools.answer import Answer
from holdfast.tools.history.shapes import (
    AllChanges,
    AllChangesAnswer,
    ChangeFacts,
    ChangeSelection,
    FileEffectAnswer,
    ListedFacts,
    NetChanges,
    NetChangesAnswer,
    PreviewUndo,
    PreviewUndoAnswer,
    PruneImages,
    PruneImagesAnswer,
    RestoreBefore,
    RestoreBeforeAnswer,
    ShowChange,
    ShowChangeAnswer,
    UndoForPerson,
    UndoForPersonAnswer,
    UndoStepAnswer,
)
from holdfast.tools.registry import Effect, Group, tool
from holdfast.tools.validate import parse_moment

_MAX_SELECTED = 10_000
_TIMEOUT_SECONDS = 3_600.0


@tool(
    "all_changes",
    group=Group.FILES,
    effect=Effect.READ,
    title="All changes",
    output=AllChangesAnswer,
    audience=CallerKind.PERSON,
    timeout_seconds=_TIMEOUT_SECONDS,
)
def all_changes(app: App, _call: Call, args: AllChanges) -> Answer:
    """List the changes of this machine, newest first, with the program that made each."""
    before = app.changes.history.find(args.older_than).seq if args.older_than else None
    change_filter, has_path = _filter_of(app, args), _path_test(args)
    changes = app.changes.history.find_changes(change_filter, args.limit + 1, before, has_path)
    page = [ListedFacts.of(change) for change in changes[: args.limit]]
    data = AllChangesAnswer(changes=page, has_more=len(changes) > args.limit)
    return Answer.of(f"{quantity(len(page), 'change')}.", data=data)


@tool(
    "show_change",
    group=Group.FILES,
    effect=Effect.READ,
    title="Show a change",
    output=ShowChangeAnswer,
    audience=CallerKind.PERSON,
)
def show_change(app: App, call: Call, args: ShowChange) -> Answer:
    """Show what one change did to each of its files."""
    plan = app.changes.history.find(args.change_id)
    effects = app.changes.history.show(_jail_of(app, call, [plan]), plan)
    files = [FileEffectAnswer.of(effect) for effect in effects]
    return Answer.of("", data=ShowChangeAnswer(change=ChangeFacts.of_plan(plan), files=files))


@tool(
    "net_changes",
    group=Group.FILES,
    effect=Effect.READ,
    title="Net effect of changes",
    output=NetChangesAnswer,
    audience=CallerKind.PERSON,
    timeout_seconds=_TIMEOUT_SECONDS,
)
def net_changes(app: App, call: Call, args: NetChanges) -> Answer:
    """Compare each file that the selected changes touched with what it was before the first of them."""
    history = app.changes.history
    if args.change_ids:
        _refuse_ids_with_selection(args)
        plans = sorted(_plans_by_id(app, args.change_ids), key=lambda plan: -plan.seq)
    else:
        plans = history.plans(_select(app, args))
    effects = history.net_effect(_jail_of(app, call, plans), plans)
    wanted_paths = _path_test(args)
    inside = [args.directory] if args.directory else ["/"]
    files = [
        FileEffectAnswer.of(effect)
        for effect in effects
        if any(
            is_beneath(path, inside) and (wanted_paths is None or wanted_paths(path))
            for path in (effect.path, effect.former_path)
            if path
        )
    ]
    return Answer.of(f"{quantity(len(files), 'file')}.", data=NetChangesAnswer(changes=len(plans), files=files))


@tool(
    "preview_undo",
    group=Group.FILES,
    effect=Effect.READ,
    title="Preview an undo",
    output=PreviewUndoAnswer,
    audience=CallerKind.PERSON,
    timeout_seconds=_TIMEOUT_SECONDS,
)
def preview_undo(app: App, call: Call, args: PreviewUndo) -> Answer:
    """Say what undoing changes, or redoing them, would do to each file, in the order in which it would be done."""
    history = app.changes.history
    is_selection = _is_selection(args)
    if args.change_ids:
        _refuse_ids_with_selection(args)
        plans_by_id = _plans_by_id(app, args.change_ids)
        plans = sorted(
            (history.undo_of(plan) for plan in plans_by_id) if args.redo else plans_by_id, key=lambda plan: -plan.seq
        )
    elif args.redo:
        plans = history.find_undos_to_redo(_filter_of(app, args), _MAX_SELECTED if is_selection else 1)
    elif args.since or args.until or args.client:
        plans = history.find_all_to_undo(_filter_of(app, args), _path_test(args), _MAX_SELECTED)
    else:
        plans = history.find_newest_to_undo(_filter_of(app, args), _path_test(args))
    steps = history.preview(_jail_of(app, call, plans), call, plans)
    data = PreviewUndoAnswer(steps=[UndoStepAnswer.of(step) for step in steps])
    return Answer.of(f"{quantity(len(steps), 'change')}.", data=data)


@tool(
    "undo_for_person",
    group=Group.FILES,
    effect=Effect.DESTROY,
    title="Undo one change",
    output=UndoForPersonAnswer,
    audience=CallerKind.PERSON,
    timeout_seconds=_TIMEOUT_SECONDS,
)
def undo_for_person(app: App, call: Call, args: UndoForPerson) -> Answer:
    """Undo one change, wherever on this machine it is; never over something newer."""
    plan = app.changes.history.find(args.change_id)
    folders = app.folders_of(replace(call.caller, roots=app.changes.history.roots_of([plan])))
    result = app.changes.undo(folders, call, plan.id)
    return Answer.of("Undone.", data=UndoForPersonAnswer.of(result))


@tool(
    "restore_before",
    group=Group.FILES,
    effect=Effect.DESTROY,
    title="Restore the state before a change",
    output=RestoreBeforeAnswer,
    audience=CallerKind.PERSON,
)
def restore_before(app: App, call: Call, args: RestoreBefore) -> Answer:
    """Restore what a path was before a change, whatever was changed there since. The present content is kept for undo."""
    result = app.changes.restore_before(call, app.changes.history.find(args.change_id).id)
    return Answer.of("Restored." if result.change_id else "Nothing to restore.", data=RestoreBeforeAnswer.of(result))


@tool(
    "prune_images",
    group=Group.FILES,
    effect=Effect.DESTROY,
    title="Remove before-images",
    output=PruneImagesAnswer,
    audience=CallerKind.PERSON,
)
def prune_images(app: App, _call: Call, args: PruneImages) -> Answer:
    """Remove before-images, so that their changes can no longer be undone; with dry_run only count them."""
    if (args.before is None) is (args.to_bytes is None):
        raise InvalidArgument("prune_images takes either `before` or `to_bytes`.")
    roots = (args.directory,) if args.directory else ()
    selection = PruneSelection(_utc(args.before, "before"), args.to_bytes, roots)
    pruned = app.changes.prune(selection, dry_run=args.dry_run)
    newest = [ChangeFacts.of_plan(plan) for plan in pruned.newest_changes]
    data = PruneImagesAnswer(images=pruned.images, bytes=pruned.size_bytes, changes=pruned.changes, newest=newest)
    return Answer.of(f"{quantity(pruned.images, 'before-image')}.", data=data)


def _is_selection(args: ChangeSelection) -> bool:
    return any((args.directory, args.client, args.since, args.until, args.kinds, args.path))


def _refuse_ids_with_selection(args: ChangeSelection) -> None:
    if _is_selection(args):
        raise InvalidArgument("Name changes by their ids or select them, not both.")


def _plans_by_id(app: App, change_ids: Iterable[str]) -> list[Plan]:
    """Return each change once. NotFound for an id that none has."""
    return list({plan.id: plan for plan in map(app.changes.history.find, change_ids)}.values())


def _filter_of(app: App, args: ChangeSelection) -> ChangeFilter:
    return ChangeFilter(
        client=app.changes.history.find_client(args.client) if args.client else None,
        since=_utc(args.since, "since"),
        until=_utc(args.until, "until"),
        kinds=tuple(args.kinds or ()),
        directory=args.directory,
    )


def _select(app: App, args: ChangeSelection) -> list[Change]:
    """Return the selected changes, all of them. InvalidArgument when they are too many for one answer."""
    changes = app.changes.history.find_changes(_filter_of(app, args), _MAX_SELECTED + 1, None, _path_test(args))
    if len(changes) > _MAX_SELECTED:
        raise InvalidArgument(
            f"These are more than {_MAX_SELECTED} changes. Select fewer, by a later time or a directory."
        )
    return changes


def _path_test(args: ChangeSelection) -> PathTest | None:
    """Return whether a path matches the pattern: a name anywhere below the directory, or a path from there."""
    if args.path is None:
        return None
    directory = (args.directory or "").rstrip("/")
    is_anywhere = "/" not in args.path or not args.directory
    glob = Glob(args.path.lstrip("/") if args.path.startswith("/") or not is_anywhere else f"**/{args.path}")

    def matches(path: str) -> bool:
        return path.startswith(f"{directory}/") and glob.matches(path[len(directory) + 1 :])

    return matches


def _utc(at: str | None, name: str) -> str | None:
    """Return a time in the form of the journal, whose text order is time order."""
    moment = parse_moment(name, at)
    return format_utc(moment) if moment else None


def _jail_of(app: App, call: Call, plans: Iterable[Plan]) -> Jail:
    """Return the directories of changes, to look at; one without any when all of them are gone."""
    roots = app.changes.history.roots_of(plans)
    return app.folders_of(replace(call.caller, roots=roots)).jail if roots else Jail(())
