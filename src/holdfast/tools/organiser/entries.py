"""The tools of the organiser, for the agent and for the person: make a plan, show, correct, approve, execute, undo it."""

import asyncio
from dataclasses import replace
from functools import partial

from holdfast.app import App
from holdfast.auth.context import Caller, CallerKind
from holdfast.auth.panel_tokens import PanelSubject
from holdfast.call import Call, Question
from holdfast.changes.model import ItemStatus, PlanStatus, is_beneath
from holdfast.errors import InvalidArgument, PermissionDenied
from holdfast.folders.service import Folders
from holdfast.organiser.planning.jobs import PlanJob
from holdfast.organiser.service import PlanView
from holdfast.review.records import may_elicit
from holdfast.text.budget import first_page, read_position
from holdfast.text.display import display_name, quantity
from holdfast.tools.answer import Answer
from holdfast.tools.organiser.answers import (
    build_page,
    compare_moves,
    count_moves,
    describe_explanation,
    describe_job,
    describe_line,
    describe_move,
    describe_undo,
    next_step,
    relative_path,
    summarise,
)
from holdfast.tools.organiser.plan_text import (
    explanation_text,
    line_text,
    page_text,
    renamed_folder_lines,
    stayed_lines,
    summary_text,
)
from holdfast.tools.organiser.shapes import (
    AllPlans,
    AllPlansAnswer,
    ApprovePlan,
    CorrectedPlanAnswer,
    CorrectPlan,
    CreatePlan,
    ExecutedAnswer,
    ExecutePlan,
    ExplainFile,
    FileLocationAnswer,
    GetPlan,
    ListPlans,
    PlanAnswer,
    PlanChange,
    PlanList,
    RevisePlan,
    UndoneAnswer,
    UndoPlan,
)
from holdfast.tools.panel_token import with_panel_token
from holdfast.tools.registry import Effect, Group, Panel, Runner, tool
from holdfast.tools.threads import Load

_MAX_LISTED = 50
_MAX_CHANGED = 1_000
_MAX_PROBLEMS = 20
_TIMEOUT_SECONDS = 86_400.0
_PROGRESS_SECONDS = 0.5
_APPROVAL_FORM = {
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
    title="On disk: plan to tidy a folder",
    output=PlanAnswer,
    timeout_seconds=_TIMEOUT_SECONDS,
    panel=Panel.PLAN,
)
async def create_organization_plan(app: App, call: Call, args: CreatePlan, runner: Runner) -> Answer:
    """On disk: plan how to tidy a folder; nothing moves before a person approves the plan and execute_plan runs it."""
    folders = await runner.in_thread(app.folders_of, call.caller)
    job = await runner.in_thread(
        partial(app.organiser.begin, folders, call, args.folder_path, include_subfolders=args.include_subfolders)
    )
    await _wait_for_plan(job, call, app.organiser.settings.answer_seconds)
    return await runner.in_thread(_answer_plan_or_progress, app, call, folders, job.plan_id)


@tool(
    "get_plan",
    group=Group.ORGANISE,
    effect=Effect.READ,
    title="On disk: show a plan",
    output=PlanAnswer,
    panel=Panel.PLAN,
)
def get_plan(app: App, call: Call, arguments: GetPlan) -> Answer:
    """On disk: show a plan to tidy a folder, a page of its files at a time; revise_plan decides on uncertain ones."""
    folders = app.folders_of(call.caller)
    job = app.organiser.find_job(folders, arguments.plan_id)
    if job is not None:
        if job.is_running:
            return _answer_progress(job)
        job.raise_for_failure()
    view = app.organiser.show(folders, arguments.plan_id)
    page = build_page(app.organiser, folders, view, arguments.show, arguments.cursor)
    answer = Answer.of(page_text(page, arguments.show, is_first=arguments.cursor is None), data=page)
    return _with_token(app, call, view, answer)


@tool("revise_plan", group=Group.ORGANISE, effect=Effect.CHANGE, title="On disk: revise a plan", output=PlanAnswer)
def revise_plan(app: App, call: Call, arguments: RevisePlan) -> Answer:
    """On disk: decide where files of a plan go, or close the plan. Nothing moves yet."""
    folders = app.folders_of(call.caller)
    if arguments.cancel:
        app.organiser.cancel(folders, arguments.plan_id)
        data = PlanAnswer(plan_id=arguments.plan_id, status=PlanStatus.CANCELLED.value)
        return Answer.of(f"Plan {arguments.plan_id} is closed: {data.status}.", data=data)
    if not arguments.changes:
        raise InvalidArgument("revise_plan needs changes, or cancel.")
    view = app.organiser.revise(folders, call, arguments.plan_id, _decisions(arguments.changes))
    summary = summarise(view)
    return Answer.of(summary_text(summary), *renamed_folder_lines(view, _decisions(arguments.changes)), data=summary)


@tool(
    "execute_plan",
    group=Group.ORGANISE,
    effect=Effect.CHANGE,
    title="On disk: execute a plan",
    output=PlanAnswer,
    idempotent=True,
    timeout_seconds=_TIMEOUT_SECONDS,
    allowed_in_pipe=False,
)
async def execute_plan(app: App, call: Call, args: ExecutePlan, runner: Runner) -> Answer:
    """On disk: move the files of an approved plan; safe to repeat."""
    folders = await runner.in_thread(app.folders_of, call.caller)
    view = await runner.in_thread(app.organiser.show, folders, args.plan_id)
    is_new = view.plan.status is PlanStatus.CREATED
    if is_new and await runner.in_thread(app.organiser.plans.needs_approval, folders, call, view.plan):
        await _ask_for_approval(app, call, folders, view, runner)
    return await runner.in_thread(_execute, app, call, folders, args.plan_id, load=Load.LONG)


@tool(
    "undo_plan",
    group=Group.ORGANISE,
    effect=Effect.CHANGE,
    title="On disk: undo a plan",
    output=PlanAnswer,
    listed=False,
)
def undo_plan(app: App, call: Call, arguments: UndoPlan) -> Answer:
    """On disk: undo a plan, or only some of its files; nothing is overwritten."""
    folders = app.folders_of(call.caller)
    view = app.organiser.show(folders, arguments.plan_id)
    positions = None if arguments.paths is None else _find_positions(view, arguments.paths)
    undone = describe_undo(app.organiser.undo(folders, call, view, positions))
    plan = app.organiser.show(folders, arguments.plan_id)
    totals = count_moves(plan.moves)
    data = UndoneAnswer(plan_id=plan.plan.id, status=plan.plan.status.value, totals=totals, **dict(undone))
    lines = [
        f"Plan {data.plan_id}: {data.status}. Files moved back: {totals.get('UNDONE', 0)} of {totals['moves']}.",
        *stayed_lines(undone),
    ]
    lines.append("The plan was already undone." if undone.change_id is None else f"change {undone.change_id}")
    return Answer.of("\n".join(lines), data=data)


@tool("list_plans", group=Group.ORGANISE, effect=Effect.READ, title="On disk: list plans", output=PlanList)
def list_plans(app: App, call: Call, arguments: ListPlans) -> Answer:
    """On disk: list the plans to tidy folders, newest first."""
    folders = app.folders_of(call.caller)
    before = read_position(arguments.cursor, "plan", "list_plans")
    overviews = app.organiser.plans.list(folders, _MAX_LISTED + 1, before)
    page, next_cursor = first_page(overviews, _MAX_LISTED, "plan")
    plans: list[PlanAnswer] = [describe_line(overview) for overview in page]
    if arguments.cursor is None:
        running = [job for job in app.organiser.jobs.running() if is_beneath(job.root, folders.jail.allowed_paths)]
        plans = [*(describe_job(job) for job in running), *plans]
    text = "\n".join(map(line_text, plans)) or "No plans."
    more = "" if next_cursor is None else f'[More: repeat the call with cursor="{next_cursor}"]'
    return Answer.of(text, more, data=PlanList(plans=plans, next_cursor=next_cursor))


@tool(
    "explain_file",
    group=Group.ORGANISE,
    effect=Effect.READ,
    title="On disk: explain where a file is",
    output=FileLocationAnswer,
    load=Load.HEAVY,
)
def explain_file(app: App, call: Call, arguments: ExplainFile) -> Answer:
    """On disk: explain why a file is where it is, or where a plan moved it."""
    answer = describe_explanation(app.organiser.explain(app.folders_of(call.caller), call, arguments.path))
    return Answer.of(explanation_text(answer), data=answer)


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
    folders = app.folders_of(_with_plan_roots(app, call.caller, arguments.plan_id))
    plan = app.organiser.plans.approve(folders, arguments.plan_id, arguments.plan_hash, "person")
    return Answer.of("Approved.", data=PlanAnswer(plan_id=plan.id, status=plan.status.value))


@tool(
    "all_plans",
    group=Group.ORGANISE,
    effect=Effect.READ,
    title="All plans",
    output=AllPlansAnswer,
    audience=CallerKind.PERSON,
)
def all_plans(app: App, call: Call, args: AllPlans) -> Answer:
    """List the plans of this machine, newest first, with the directories they touch."""
    before = read_position(args.cursor, "plan", "all_plans")
    page, next_cursor = first_page(app.organiser.plans.list_all(args.limit + 1, before), args.limit, "plan")
    plans = [describe_line(line, line.roots) for line in page]
    data = AllPlansAnswer(plans=plans, next_cursor=next_cursor)
    return Answer.of(f"{quantity(len(plans), 'plan')}.", data=data)


@tool(
    "correct_plan",
    group=Group.ORGANISE,
    effect=Effect.CHANGE,
    title="Correct plan",
    output=CorrectedPlanAnswer,
    audience=CallerKind.PERSON,
)
def correct_plan(app: App, call: Call, arguments: CorrectPlan) -> Answer:
    """Correct files of a plan; each correction is kept as an example, and the other files are classified again."""
    folders = app.folders_of(_with_plan_roots(app, call.caller, arguments.plan_id))
    before = app.organiser.show(folders, arguments.plan_id)
    after = app.organiser.correct(folders, call, arguments.plan_id, _decisions(arguments.changes))
    summary, changed = summarise(after), compare_moves(before, after)
    fields = {**dict(summary), "changed": changed[:_MAX_CHANGED], "changed_count": len(changed)}
    return Answer.of(summary_text(summary), data=CorrectedPlanAnswer.model_validate(fields))


async def _wait_for_plan(job: PlanJob, call: Call, seconds: float) -> None:
    """Wait until a plan is made or the time is over; if the call is cancelled meanwhile, so is the job."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    waiting = asyncio.wrap_future(job.future)
    try:
        while loop.time() < until and not waiting.done():
            call.check()
            await asyncio.wait({waiting}, timeout=min(_PROGRESS_SECONDS, max(0.01, until - loop.time())))
            if job.is_running:
                # A report keeps a client's patience, and one that does not grow is dropped; hence the little more.
                call.progress(job.done + call.elapsed() * 1e-6, job.total, job.message)
    except BaseException:
        job.call.cancel()
        raise
    if waiting.done():
        waiting.result()


def _answer_plan_or_progress(app: App, call: Call, folders: Folders, plan_id: str) -> Answer:
    job = app.organiser.find_job(folders, plan_id)
    if job is not None and job.is_running:
        return _answer_progress(job)
    view = app.organiser.show(folders, plan_id)
    summary = summarise(view)
    return _with_token(app, call, view, Answer.of(summary_text(summary), data=summary))


def _with_token(app: App, call: Call, view: PlanView, answer: Answer) -> Answer:
    """Return the answer with a panel's token, where a person has to approve the plan."""
    if view.plan.status is not PlanStatus.CREATED or not view.moves or not view.needs_approval:
        return answer
    return with_panel_token(app, call.caller, answer, PanelSubject.PLAN, view.plan.id, view.plan_hash)


def _answer_progress(job: PlanJob) -> Answer:
    progress = describe_job(job)
    return Answer.of(f"Plan {progress.plan_id}: SCANNING. {progress.message}.", progress.next, data=progress)


async def _ask_for_approval(app: App, call: Call, folders: Folders, view: PlanView, runner: Runner) -> None:
    """Let the client ask its user to approve the plan, if it can and the whole plan can be shown; PermissionDenied if not."""
    text = await runner.in_thread(_list_every_move, view)
    review = app.settings.review
    if call.elicit is None or not may_elicit(review, call.caller) or len(text) > review.max_question_chars:
        raise PermissionDenied(
            f"A person has to approve plan {view.plan.id} first: `holdfast organise approve {view.plan.id[:8]}`."
        )
    reply = await call.elicit(Question(f"plan-{view.plan_hash[:32]}", text, _APPROVAL_FORM))
    if reply.action != "accept" or reply.content.get("decision") != "approve":
        raise PermissionDenied(f"The user did not approve plan {view.plan.id}; nothing was moved.")
    approve = partial(app.organiser.plans.approve, folders, view.plan.id, view.plan_hash, "elicitation")
    await runner.in_thread(approve)


def _list_every_move(view: PlanView) -> str:
    lines = [f"An agent asks to move {quantity(len(view.moves), 'file')} in {display_name(view.folder)}:", ""]
    for item in view.moves:
        source = relative_path(item.src_path, view.folder)
        target = relative_path(item.dest_path or "", view.folder)
        lines.append(f"{display_name(source)} -> {display_name(target)}")
    return "\n".join(lines)


def _execute(app: App, call: Call, folders: Folders, plan_id: str) -> Answer:
    result = app.organiser.plans.execute(folders, call, plan_id)
    view = app.organiser.show(folders, plan_id)
    totals = count_moves(view.moves)
    problems = [item for item in view.moves if item.status in (ItemStatus.ERROR, ItemStatus.SKIPPED)]
    moves = {item.position for item in view.moves}
    data = ExecutedAnswer(
        plan_id=plan_id,
        status=result.status.value,
        executed_at=view.plan.executed_at,
        totals=totals,
        already_done=len(result.done_before & moves),
        problems=[describe_move(item, view.folder) for item in problems[:_MAX_PROBLEMS]],
        next=next_step(view),
    )
    lines = [f"{data.status}. Files moved: {totals.get('DONE', 0)} of {totals['moves']}."]
    lines += [f"{display_name(move.path)}: {move.status}, {move.error}" for move in data.problems]
    return Answer.of("\n".join([*lines, data.next]), data=data)


def _find_positions(view: PlanView, paths: list[str]) -> set[int]:
    positions: dict[str, int] = {}
    for item in view.moves:
        for path in (item.src_path, item.dest_path or ""):
            positions[path] = positions[relative_path(path, view.folder)] = item.position
    unknown = [path for path in paths if path not in positions]
    if unknown:
        raise InvalidArgument(f"Plan {view.plan.id} has not moved {unknown[0]!r}.")
    return {positions[path] for path in paths}


def _decisions(changes: list[PlanChange]) -> dict[str, str | None]:
    return {change.path: change.folder for change in changes}


def _with_plan_roots(app: App, caller: Caller, plan_id: str) -> Caller:
    """Return the person as a caller with the roots of a plan: a person sees every plan."""
    return replace(caller, roots=app.organiser.plans.roots_of(plan_id))
