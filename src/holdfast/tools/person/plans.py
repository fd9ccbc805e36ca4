"""The person's tools for plans: choose a folder, scan it, look at its rows, carry it out, stop it, take moves back."""

import os
from dataclasses import replace
from pathlib import Path

from holdfast.app import App
from holdfast.auth.context import CallerKind
from holdfast.call import Call
from holdfast.changes.model import PlanStatus, is_beneath
from holdfast.errors import AccessDenied, HoldfastError, InvalidArgument, NotFound, PermissionDenied
from holdfast.folders.access.path_syntax import check_syntax
from holdfast.folders.finding.walk import EntryType, list_entries, open_start
from holdfast.folders.service import Folders
from holdfast.organiser.scan.scope import FolderScope, scope_of
from holdfast.text.decode import replace_lone_surrogates
from holdfast.text.display import display_name, quantity
from holdfast.text.path_address import address_of, path_at
from holdfast.tools.answer import Answer
from holdfast.tools.organiser.answers import count_moves, describe_undo
from holdfast.tools.organiser.shapes import PlanAnswer
from holdfast.tools.person.plan_rows import build_rows
from holdfast.tools.person.plan_shapes import (
    DirectoryName,
    ExecutedForPerson,
    FailedScan,
    ListDirectories,
    ListDirectoriesAnswer,
    PlanById,
    PlanRows,
    PlanRowsAnswer,
    RunningScansAnswer,
    ScanFacts,
    StartScan,
    UndonePlanItems,
    UndoPlanItems,
)
from holdfast.tools.person.roots import list_known_roots
from holdfast.tools.registry import Effect, Group, NoArguments, tool
from holdfast.tools.threads import Load

_MAX_DIRECTORIES = 5_000
_TIMEOUT_SECONDS = 86_400.0


@tool(
    "list_directories",
    group=Group.ORGANISE,
    effect=Effect.READ,
    title="Directories to choose from",
    output=ListDirectoriesAnswer,
    audience=CallerKind.PERSON,
)
def list_directories(app: App, call: Call, args: ListDirectories) -> Answer:
    """List the names of the directories in a directory of the home folder, to choose one; nothing else of it is read."""
    home = os.path.realpath(Path.home())
    path = path_at(args.path) or home
    _check_path(path, [home])
    folders = app.folders_of(replace(call.caller, roots=(home,), cwd="/"))
    with open_start(folders.jail, path, ignore=False) as start:
        entries = list_entries(folders.jail, start.fd, None)
        real_path = start.path
    names = [name for name, kind in entries if kind is EntryType.DIRECTORY and (args.with_hidden or name[:1] != ".")]
    rows = [
        DirectoryName(name=replace_lone_surrogates(name), path=address_of(f"{real_path.rstrip('/')}/{name}"))
        for name in sorted(names, key=str.casefold)[:_MAX_DIRECTORIES]
    ]
    data = ListDirectoriesAnswer(
        path=address_of(real_path),
        above=None if real_path == home else address_of(os.path.dirname(real_path)),
        directories=rows,
        is_cut=len(names) > len(rows),
    )
    return Answer.of(quantity(len(rows), "directory", "directories"), data=data)


@tool(
    "start_scan",
    group=Group.ORGANISE,
    effect=Effect.ADD,
    title="Scan a folder",
    output=ScanFacts,
    audience=CallerKind.PERSON,
)
def start_scan(app: App, call: Call, args: StartScan) -> Answer:
    """Begin to make a plan for a folder, and answer at once; nothing moves before the plan is approved and carried out."""
    home = os.path.realpath(Path.home())
    path = path_at(args.directory)
    _check_path(path, [home, *(root.path for root in list_known_roots(app))])
    if scope_of(path.rstrip("/"), home) is FolderScope.HOME and not args.is_whole_home:
        raise PermissionDenied(f"{path} is a whole home folder. Choose a folder in it, or say that all of it is meant.")
    folders = app.folders_of(replace(call.caller, roots=(path,), cwd="/"))
    if folders.jail.allowed_paths != [path.rstrip("/")]:
        raise AccessDenied(f"Access denied: {path} leads to another directory by a link.")
    client = replace(call.caller.client, is_command=True)
    persons_call = replace(call, caller=replace(call.caller, client=client))
    job = app.organiser.begin(folders, persons_call, path, include_subfolders=args.include_subfolders)
    data = ScanFacts(
        plan_id=job.plan_id,
        folder=replace_lone_surrogates(job.folder),
        done=job.done,
        total=job.total,
        message=job.message,
    )
    return Answer.of(f"Plan {job.plan_id}: SCANNING.", data=data)


@tool(
    "running_scans",
    group=Group.ORGANISE,
    effect=Effect.READ,
    title="Running scans",
    output=RunningScansAnswer,
    audience=CallerKind.PERSON,
)
def running_scans(app: App, _call: Call, _args: NoArguments) -> Answer:
    """List the plans in the making, whoever asked for them, those that failed lately, and the plans being carried out."""
    jobs = app.organiser.jobs
    scans = [
        ScanFacts(
            plan_id=job.plan_id,
            folder=replace_lone_surrogates(job.folder),
            done=job.done,
            total=job.total,
            message=job.message,
        )
        for job in jobs.running()
    ]
    failed = [
        FailedScan(
            plan_id=job.plan_id,
            folder=replace_lone_surrogates(job.folder),
            code=error.code if isinstance(error, HoldfastError) else "INTERNAL",
            message=replace_lone_surrogates(error.message if isinstance(error, HoldfastError) else "It failed."),
        )
        for job, error in jobs.failed()
    ]
    data = RunningScansAnswer(scans=scans, failed=failed, busy_plans=app.organiser.plans.busy())
    return Answer.of(f"{quantity(len(scans), 'scan')}.", data=data)


@tool(
    "stop_plan",
    group=Group.ORGANISE,
    effect=Effect.CHANGE,
    title="Stop a plan",
    output=PlanAnswer,
    audience=CallerKind.PERSON,
)
def stop_plan(app: App, call: Call, args: PlanById) -> Answer:
    """Stop a scan or a plan that is being carried out or undone; a plan that was not begun is closed.

    What is done stays done, every file is whole at its old place or its new one, and the plan can be carried on or undone.
    """
    job = app.organiser.jobs.find(args.plan_id)
    if job is not None and job.is_running:
        job.call.cancel()
        return Answer.of("Stopping.", data=PlanAnswer(plan_id=args.plan_id, status="SCANNING"))
    folders = folders_of_plan(app, call, args.plan_id)
    if app.organiser.plans.stop(args.plan_id):
        return Answer.of("Stopping.", data=PlanAnswer(plan_id=args.plan_id, status=PlanStatus.RUNNING.value))
    plan = app.organiser.plans.cancel(folders, args.plan_id)
    return Answer.of("Closed.", data=PlanAnswer(plan_id=plan.id, status=plan.status.value))


@tool(
    "plan_rows",
    group=Group.ORGANISE,
    effect=Effect.READ,
    title="Rows of a plan",
    output=PlanRowsAnswer,
    audience=CallerKind.PERSON,
)
def plan_rows(app: App, call: Call, args: PlanRows) -> Answer:
    """Show a page of a plan's rows, by view, folder and filter, with the totals, folders and measures of the whole plan."""
    view = app.organiser.show(folders_of_plan(app, call, args.plan_id), args.plan_id)
    data = build_rows(view, args)
    return Answer.of(f"{quantity(data.total, 'row')}.", data=data)


@tool(
    "execute_plan_for_person",
    group=Group.ORGANISE,
    effect=Effect.CHANGE,
    title="Carry out a plan",
    output=ExecutedForPerson,
    audience=CallerKind.PERSON,
    timeout_seconds=_TIMEOUT_SECONDS,
    load=Load.LONG,
)
def execute_plan_for_person(app: App, call: Call, args: PlanById) -> Answer:
    """Move the files of an approved plan, or go on with one that was stopped; safe to repeat."""
    folders = folders_of_plan(app, call, args.plan_id)
    if app.organiser.show(folders, args.plan_id).plan.status is PlanStatus.CREATED:
        raise PermissionDenied(f"Plan {args.plan_id} is not approved. Approve what was shown with approve_plan first.")
    app.organiser.plans.execute(folders, call, args.plan_id)
    view = app.organiser.show(folders, args.plan_id)
    status, at = view.plan.status.value, view.plan.executed_at
    totals = count_moves(view.moves)
    data = ExecutedForPerson(plan_id=args.plan_id, status=status, executed_at=at, totals=totals)
    return Answer.of(f"{status}: {totals.get('DONE', 0)} of {totals['moves']} moved.", data=data)


@tool(
    "undo_plan_items",
    group=Group.ORGANISE,
    effect=Effect.CHANGE,
    title="Take moves of a plan back",
    output=UndonePlanItems,
    audience=CallerKind.PERSON,
    timeout_seconds=_TIMEOUT_SECONDS,
    load=Load.LONG,
)
def undo_plan_items(app: App, call: Call, args: UndoPlanItems) -> Answer:
    """Move files of a plan back, all or only some; nothing is overwritten, and what cannot go back stays with the reason."""
    folders = folders_of_plan(app, call, args.plan_id)
    view = app.organiser.show(folders, args.plan_id)
    positions = None if args.item_ids is None else set(args.item_ids)
    if positions is not None and (unknown := positions - {item.position for item in view.moves}):
        raise InvalidArgument(f"Plan {args.plan_id} has no move {min(unknown)}.")
    report = describe_undo(app.organiser.undo(folders, call, view, positions))
    view = app.organiser.show(folders, args.plan_id)
    status, totals = view.plan.status.value, count_moves(view.moves)
    data = UndonePlanItems(plan_id=args.plan_id, status=status, totals=totals, **dict(report))
    return Answer.of(f"{quantity(data.came_back, 'file')} moved back, {data.stayed} stayed.", data=data)


def folders_of_plan(app: App, call: Call, plan_id: str) -> Folders:
    """Return the directories of a plan, which the person sees whoever made it. NotFound when they are gone."""
    roots = [root for root in app.organiser.plans.roots_of(plan_id) if os.path.isdir(root)]
    if not roots:
        raise NotFound(f"The directory of plan {plan_id} is not there any more.")
    return app.folders_of(replace(call.caller, roots=tuple(roots), cwd="/"))


def _check_path(path: str, allowed: list[str]) -> None:
    check_syntax(path)
    if ".." in path.split("/") or not is_beneath(path, allowed):
        raise AccessDenied(f"Access denied: {display_name(path)} is not in the home folder, nor a known directory.")
