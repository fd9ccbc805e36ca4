"""The agent's tools of the organiser, and the person's: make a plan, look, correct, approve, carry out, take back."""

import asyncio
from dataclasses import replace
from functools import partial

from holdfast.app import App
from holdfast.auth.context import Caller, CallerKind
from holdfast.call import Call, Question
from holdfast.changes.model import ItemStatus, PlanStatus, is_beneath
from holdfast.errors import InvalidArgument, PermissionDenied
from holdfast.folders.service import Folders
from holdfast.organiser.planning.jobs import PlanJob
from holdfast.organiser.service import PlanView
from holdfast.text.budget import decode_cursor, encode_cursor
from holdfast.text.display import display_name
from holdfast.text.surrogates import replace_lone_surrogates
from holdfast.tools.answer import Answer
from holdfast.tools.organiser.answers import (
    at_a_glance,
    explained,
    next_step,
    page,
    planned,
    relative,
    scanning,
    summary,
    totals_of,
)
from holdfast.tools.organiser.shapes import (
    ApprovePlan,
    CorrectPlan,
    CreatePlan,
    EveryPlanList,
    ExecutedAnswer,
    ExecutePlan,
    Explained,
    ExplainFile,
    GetPlan,
    ListPlans,
    PlanAnswer,
    PlanChange,
    PlanLineAnswer,
    PlanList,
    RevisePlan,
    UndoneAnswer,
    UndoPlan,
)
from holdfast.tools.organiser.undo_report import stayed_lines, undone_moves
from holdfast.tools.registry import Effect, Group, NoArguments, Runner, tool

_LISTED = 50
_FIRST_PROBLEMS = 20
_TIMEOUT_SECONDS = 86_400.0
_STEP_SECONDS = 0.5
_MAX_SEQ = 2**63 - 1
_SCHEMA = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "approve moves the files as listed; reject moves nothing.",
            "enum": ["approve", "reject"],
        }
    },
    "required": ["decision"],
}


@tool(
    "create_organization_plan",
    group=Group.ORGANISE,
    effect=Effect.ADD,
    title="Plan a tidy-up",
    output=PlanAnswer,
    timeout_seconds=_TIMEOUT_SECONDS,
)
async def create_organization_plan(app: App, call: Call, args: CreatePlan, runner: Runner) -> Answer:
    """Plan how to tidy a folder; nothing moves yet."""
    folders = await runner.in_thread(app.folders_of, call.caller)
    job = await runner.in_thread(
        partial(app.organiser.begin, folders, call, args.folder_path, deep=args.include_subfolders)
    )
    await _made(job, call, app.organiser.settings.answer_seconds)
    return await runner.in_thread(_shown_or_scanning, app, folders, job.plan_id)


@tool("get_plan", group=Group.ORGANISE, effect=Effect.READ, title="Get plan", output=PlanAnswer)
def get_plan(app: App, call: Call, arguments: GetPlan) -> Answer:
    """Show a plan; decide on the uncertain by revise_plan."""
    folders = app.folders_of(call.caller)
    job = app.organiser.job(folders, arguments.plan_id)
    if job is not None:
        if job.is_running:
            return _scanning(job)
        job.raise_for_failure()
    shown = app.organiser.show(folders, arguments.plan_id)
    found = page(app.organiser, folders, shown, arguments.show, arguments.cursor)
    return Answer.of(at_a_glance(found), data=found)


@tool("revise_plan", group=Group.ORGANISE, effect=Effect.CHANGE, title="Revise plan", output=PlanAnswer)
def revise_plan(app: App, call: Call, arguments: RevisePlan) -> Answer:
    """Decide on files of a plan."""
    folders = app.folders_of(call.caller)
    if arguments.cancel:
        app.organiser.cancel(folders, arguments.plan_id)
        data = PlanAnswer(plan_id=arguments.plan_id, status=PlanStatus.CANCELLED.value)
        return Answer.of("The plan is closed.", data=data)
    if not arguments.changes:
        raise InvalidArgument("revise_plan needs changes, or cancel.")
    found = summary(app.organiser.revise(folders, call, arguments.plan_id, _decisions(arguments.changes)))
    return Answer.of(at_a_glance(found), data=found)


@tool(
    "execute_plan",
    group=Group.ORGANISE,
    effect=Effect.CHANGE,
    title="Execute plan",
    output=PlanAnswer,
    idempotent=True,
    timeout_seconds=_TIMEOUT_SECONDS,
    allowed_in_pipe=False,
)
async def execute_plan(app: App, call: Call, args: ExecutePlan, runner: Runner) -> Answer:
    """Carry out an approved plan; safe to repeat."""
    folders = await runner.in_thread(app.folders_of, call.caller)
    shown = await runner.in_thread(app.organiser.show, folders, args.plan_id)
    if shown.plan.status is PlanStatus.CREATED and app.organiser.settings.require_approval:
        await _ask(app, call, folders, shown, runner)
    return await runner.in_thread(_executed, app, call, folders, args.plan_id, is_long=True)


@tool("undo_plan", group=Group.ORGANISE, effect=Effect.CHANGE, title="Undo plan", output=PlanAnswer, listed=False)
def undo_plan(app: App, call: Call, arguments: UndoPlan) -> Answer:
    """Take a plan back, or only some of its files; nothing is overwritten."""
    folders = app.folders_of(call.caller)
    shown = app.organiser.show(folders, arguments.plan_id)
    positions = None if arguments.paths is None else _positions(shown, arguments.paths)
    found = undone_moves(app.changes.plans.undo(folders, call, shown.plan, positions))
    plan = app.organiser.show(folders, arguments.plan_id)
    totals = totals_of(plan.moves)
    data = UndoneAnswer(plan_id=plan.plan.id, status=plan.plan.status.value, totals=totals, **dict(found))
    lines = [f"{totals.get('UNDONE', 0)} of {totals['moves']} files are back.", *stayed_lines(found)]
    trail = "They were taken back before." if found.change_id is None else f"change {found.change_id}"
    return Answer.of("\n".join([*lines, trail]), data=data)


@tool("list_plans", group=Group.ORGANISE, effect=Effect.READ, title="List plans", output=PlanList)
def list_plans(app: App, call: Call, arguments: ListPlans) -> Answer:
    """List plans, newest first."""
    folders = app.folders_of(call.caller)
    found = app.organiser.plans.list(folders, _LISTED + 1, _position(arguments.cursor))
    lines: list[PlanAnswer] = [
        PlanLineAnswer(
            plan_id=line.id,
            status=line.status.value,
            folder=replace_lone_surrogates(line.folder),
            created_at=line.created_at,
            executed_at=line.executed_at,
            moves={status.value: count for status, count in line.moves.items()},
        )
        for line in found[:_LISTED]
    ]
    if arguments.cursor is None:
        lines = [scanning(job) for job in app.organiser.jobs.running() if _sees(folders, job)] + lines
    following = encode_cursor({"plan": found[_LISTED - 1].seq}) if len(found) > _LISTED else None
    text = "\n".join(f"{line.plan_id} {line.status}" for line in lines) or "No plans."
    return Answer.of(text, data=PlanList(plans=lines, next_cursor=following))


@tool("explain_file", group=Group.ORGANISE, effect=Effect.READ, title="Explain file", output=Explained)
def explain_file(app: App, call: Call, arguments: ExplainFile) -> Answer:
    """Tell why a file is here, or where it went."""
    found = explained(app.organiser.explain(app.folders_of(call.caller), call, arguments.path))
    lines = [f"It is at {display_name(found.path)}.", found.why]
    lines += [f"{move.at} {move.kind} {display_name(move.path)} -> {display_name(move.to)}" for move in found.moves]
    return Answer.of("\n".join(lines), data=found)


@tool(
    "approve_plan",
    group=Group.ORGANISE,
    effect=Effect.ADD,
    title="Approve plan",
    output=PlanAnswer,
    audience=CallerKind.PERSON,
)
def approve_plan(app: App, call: Call, arguments: ApprovePlan) -> Answer:
    """Approve a plan as it was shown; a plan that changed since is refused."""
    folders = app.folders_of(_with_roots(app, call.caller, arguments.plan_id))
    plan = app.organiser.plans.approve(folders, arguments.plan_id, arguments.plan_hash, "person")
    return Answer.of("Approved.", data=PlanAnswer(plan_id=plan.id, status=plan.status.value))


@tool(
    "all_plans",
    group=Group.ORGANISE,
    effect=Effect.READ,
    title="All plans",
    output=EveryPlanList,
    audience=CallerKind.PERSON,
)
def all_plans(app: App, call: Call, _args: NoArguments) -> Answer:
    """List the newest plans of this machine with the directories they touch."""
    lines = [
        PlanLineAnswer(
            plan_id=line.id,
            status=line.status.value,
            folder=replace_lone_surrogates(line.folder),
            created_at=line.created_at,
            executed_at=line.executed_at,
            moves={status.value: count for status, count in line.moves.items()},
            roots=list(line.roots),
        )
        for line in app.organiser.plans.every(_LISTED * 4)
    ]
    return Answer.of(f"{len(lines)} plans.", data=EveryPlanList(plans=lines))


@tool(
    "correct_plan",
    group=Group.ORGANISE,
    effect=Effect.CHANGE,
    title="Correct plan",
    output=PlanAnswer,
    audience=CallerKind.PERSON,
)
def correct_plan(app: App, call: Call, arguments: CorrectPlan) -> Answer:
    """Correct files of a plan; that is remembered, and the others are judged anew by it."""
    folders = app.folders_of(_with_roots(app, call.caller, arguments.plan_id))
    found = summary(app.organiser.correct(folders, call, arguments.plan_id, _decisions(arguments.changes)))
    return Answer.of(at_a_glance(found), data=found)


async def _made(job: PlanJob, call: Call, seconds: float) -> None:
    """Wait until a plan is there or so much time has passed; a caller that gives up meanwhile stops it."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    waiting = asyncio.wrap_future(job.future)
    try:
        while loop.time() < until and not waiting.done():
            call.check()
            await asyncio.wait({waiting}, timeout=min(_STEP_SECONDS, max(0.01, until - loop.time())))
            if job.is_running:
                call.progress(call.elapsed(), None, job.message)
    except BaseException:
        job.call.cancel()
        raise
    if waiting.done():
        waiting.result()


def _shown_or_scanning(app: App, folders: Folders, plan_id: str) -> Answer:
    job = app.organiser.job(folders, plan_id)
    if job is not None and job.is_running:
        return _scanning(job)
    found = summary(app.organiser.show(folders, plan_id))
    return Answer.of(at_a_glance(found), data=found)


def _scanning(job: PlanJob) -> Answer:
    found = scanning(job)
    return Answer.of(f"Plan {found.plan_id}: SCANNING. {found.message}.", found.next, data=found)


def _sees(folders: Folders, job: PlanJob) -> bool:
    return is_beneath(job.root, folders.jail.allowed_paths)


async def _ask(app: App, call: Call, folders: Folders, shown: PlanView, runner: Runner) -> None:
    """Let the client ask its user to approve the plan, if it can and all of the plan can be shown; PermissionDenied if not."""
    text = await runner.in_thread(_every_move, shown)
    review = app.settings.review
    if call.elicit is None or not review.channels.elicitation or len(text) > review.max_question_chars:
        raise PermissionDenied(
            f"A person has to approve plan {shown.plan.id} first: `holdfast organise approve {shown.plan.id[:8]}`."
        )
    reply = await call.elicit(Question(f"plan-{shown.plan_hash[:32]}", text, _SCHEMA))
    if reply.action != "accept" or reply.content.get("decision") != "approve":
        raise PermissionDenied(f"The user did not approve plan {shown.plan.id}; nothing was moved.")
    approve = partial(app.organiser.plans.approve, folders, shown.plan.id, shown.plan_hash, "elicitation")
    await runner.in_thread(approve)


def _every_move(shown: PlanView) -> str:
    lines = [f"An agent asks to move {len(shown.moves)} files in {display_name(shown.folder)}:", ""]
    for item in shown.moves:
        source, target = relative(item.src_path, shown.folder), relative(item.dest_path or "", shown.folder)
        lines.append(f"{display_name(source)} -> {display_name(target)}")
    return "\n".join(lines)


def _executed(app: App, call: Call, folders: Folders, plan_id: str) -> Answer:
    done = app.organiser.plans.execute(folders, call, plan_id)
    shown = app.organiser.show(folders, plan_id)
    totals = totals_of(shown.moves)
    problems = [item for item in shown.moves if item.status in (ItemStatus.ERROR, ItemStatus.SKIPPED)]
    moves = {item.position for item in shown.moves}
    data = ExecutedAnswer(
        plan_id=plan_id,
        status=done.status.value,
        executed_at=shown.plan.executed_at,
        totals=totals,
        already_done=len(done.already & moves),
        problems=[planned(item, shown.folder) for item in problems[:_FIRST_PROBLEMS]],
        next=next_step(shown),
    )
    lines = [f"{data.status}: {totals.get('DONE', 0)} of {totals['moves']} files are where they belong."]
    lines += [f"{display_name(one.path)}: {one.status}, {one.error}" for one in data.problems]
    return Answer.of("\n".join([*lines, data.next]), data=data)


def _positions(shown: PlanView, paths: list[str]) -> set[int]:
    known: dict[str, int] = {}
    for item in shown.moves:
        for path in (item.src_path, item.dest_path or ""):
            known[path] = known[relative(path, shown.folder)] = item.position
    unknown = [path for path in paths if path not in known]
    if unknown:
        raise InvalidArgument(f"Plan {shown.plan.id} has not moved {unknown[0]!r}.")
    return {known[path] for path in paths}


def _decisions(changes: list[PlanChange]) -> dict[str, str | None]:
    return {change.path: change.folder for change in changes}


def _with_roots(app: App, caller: Caller, plan_id: str) -> Caller:
    """Return the person as a caller of a plan's own directories: a person sees all."""
    return replace(caller, roots=app.organiser.plans.roots_of(plan_id))


def _position(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    seq = decode_cursor(cursor).get("plan")
    if not isinstance(seq, int) or not 0 <= seq <= _MAX_SEQ:
        raise InvalidArgument("The cursor is not one of list_plans.")
    return seq
