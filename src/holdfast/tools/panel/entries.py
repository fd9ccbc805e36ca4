"""The tools of the panels that an MCP client shows inside its chat: show a review or a plan, decide on it by a token.

They come through the client of an agent, so a call proves nothing about who made it: only the token does, which the client
gave to its panel and not to its model. Without one a panel shows what the agent may see, and sends the person to the console.
"""

from dataclasses import replace

from holdfast.app import App
from holdfast.auth.context import Caller, CallerKind
from holdfast.auth.panel_tokens import PanelGrant, PanelSubject
from holdfast.call import Call
from holdfast.changes.model import PlanStatus
from holdfast.errors import Conflict, InvalidArgument, PermissionDenied
from holdfast.folders.service import Folders
from holdfast.review.model import UNDECIDED_STATES, Channel, Choice, Decision
from holdfast.review.person import view_of
from holdfast.text.display import display_name, quantity
from holdfast.tools.answer import Answer, Text
from holdfast.tools.panel.shapes import (
    PanelDecide,
    PanelDecided,
    PanelDecidedPlan,
    PanelDecidePlan,
    PanelPlan,
    PanelPlanAnswer,
    PanelReview,
    PanelReviewAnswer,
)
from holdfast.tools.person.plan_rows import build_rows
from holdfast.tools.registry import Effect, Group, tool
from holdfast.tools.review.answers import answer_review
from holdfast.tools.review.shapes import ShowReviewAnswer

_CHANGED = "This has changed since it was shown. Look at it again."


@tool(
    "panel_review",
    group=Group.REVIEW,
    effect=Effect.READ,
    title="Show a review in a panel",
    output=PanelReviewAnswer,
    audience=CallerKind.PANEL,
    allowed_in_pipe=False,
)
def panel_review(app: App, call: Call, args: PanelReview) -> Answer:
    """Show a review in a panel: what it would change, in hunks, and whether the panel may decide on it."""
    grant = _grant_or_none(app, call.caller, args.token, PanelSubject.REVIEW)
    if grant is not None:
        review = app.reviews.person.find(grant.subject_id)
    elif args.session_path and args.path:
        review = app.reviews.agent.find(app.folders_of(call.caller), args.session_path, args.path)
    else:
        raise InvalidArgument("panel_review needs a token, or session_path and path.")
    is_as_granted = grant is not None and grant.shown_hash == review.shown_hash
    fields = ShowReviewAnswer.of(view_of(review)).model_dump()
    data = PanelReviewAnswer(
        **fields,
        is_open=review.is_open,
        can_decide=is_as_granted and review.state in UNDECIDED_STATES,
        console_url=_page(app, f"reviews/{review.id}"),
    )
    return Answer.of(f"{review.kind} {display_name(review.path)}", data=data)


@tool(
    "panel_decide",
    group=Group.REVIEW,
    effect=Effect.ADD,
    title="Decide on a review in a panel",
    output=PanelDecided,
    audience=CallerKind.PANEL,
    allowed_in_pipe=False,
)
def panel_decide(app: App, call: Call, args: PanelDecide) -> Answer:
    """Decide on a review in a panel: approve it, whole or in part, reject it, or ask for another version."""
    hunks = None if args.hunks is None else tuple(args.hunks)
    with app.panel_tokens.spend(args.token, PanelSubject.REVIEW, call.caller.auth.apikey_hash) as grant:
        if args.shown_hash != grant.shown_hash:
            raise Conflict(_CHANGED)
        decision = Decision(Choice(args.decision), Channel.PANEL, grant.shown_hash, hunks=hunks, reason=args.reason)
        review = app.reviews.person.decide(grant.subject_id, decision)
    blocks = answer_review(app, review, review.path).blocks
    message = "\n\n".join(block.text for block in blocks if isinstance(block, Text))
    data = PanelDecided(review_id=review.id, user_action=review.action.value, message=message)
    return Answer.of(f"{review.action}: {review.kind} {display_name(review.path)}", data=data)


@tool(
    "panel_plan",
    group=Group.ORGANISE,
    effect=Effect.READ,
    title="Show a plan in a panel",
    output=PanelPlanAnswer,
    audience=CallerKind.PANEL,
    allowed_in_pipe=False,
)
def panel_plan(app: App, call: Call, args: PanelPlan) -> Answer:
    """Show a page of a plan's rows in a panel, and whether the panel may decide on the plan."""
    grant = _grant_or_none(app, call.caller, args.token, PanelSubject.PLAN)
    if grant is not None and grant.subject_id != args.plan_id:
        raise PermissionDenied("This token is of another plan.")
    folders = app.folders_of(call.caller) if grant is None else _folders_of_plan(app, call.caller, args.plan_id)
    rows = build_rows(app.organiser.show(folders, args.plan_id), args)
    is_as_granted = grant is not None and grant.shown_hash == rows.plan_hash
    data = PanelPlanAnswer(
        **rows.model_dump(),
        can_decide=is_as_granted and rows.status == PlanStatus.CREATED.value,
        console_url=_page(app, f"organise/{args.plan_id}"),
    )
    return Answer.of(f"{quantity(data.total, 'row')}.", data=data)


@tool(
    "panel_decide_plan",
    group=Group.ORGANISE,
    effect=Effect.ADD,
    title="Decide on a plan in a panel",
    output=PanelDecidedPlan,
    audience=CallerKind.PANEL,
    allowed_in_pipe=False,
)
def panel_decide_plan(app: App, call: Call, args: PanelDecidePlan) -> Answer:
    """Decide on a plan in a panel: approve it as it was shown, or close it; nothing moves yet."""
    plans = app.organiser.plans
    with app.panel_tokens.spend(args.token, PanelSubject.PLAN, call.caller.auth.apikey_hash) as grant:
        folders = _folders_of_plan(app, call.caller, grant.subject_id)
        if (
            args.plan_hash != grant.shown_hash
            or app.organiser.show(folders, grant.subject_id).plan_hash != args.plan_hash
        ):
            raise Conflict(_CHANGED)
        if args.decision == "approve":
            plan = plans.approve(folders, grant.subject_id, grant.shown_hash, Channel.PANEL.value)
            message = f"The user approved plan {plan.id}. Nothing has moved yet: call execute_plan with this plan_id."
        else:
            plan = plans.cancel(folders, grant.subject_id)
            message = f"The user closed plan {plan.id}: none of its files is to be moved."
    return Answer.of(message, data=PanelDecidedPlan(plan_id=plan.id, status=plan.status.value, message=message))


def _grant_or_none(app: App, caller: Caller, token: str | None, subject: PanelSubject) -> PanelGrant | None:
    """Return what a token stands for; None for one that decides nothing any more: the panel then only shows."""
    if token is None:
        return None
    try:
        return app.panel_tokens.find(token, subject, caller.auth.apikey_hash)
    except PermissionDenied:
        return None


def _folders_of_plan(app: App, caller: Caller, plan_id: str) -> Folders:
    """Return the directories of a plan for whoever holds its token: a client may open a second connection for a panel."""
    return app.folders_of(replace(caller, roots=app.organiser.plans.roots_of(plan_id), cwd="/"))


def _page(app: App, path: str) -> str | None:
    return f"{app.console.url}/{path}" if app.console.url else None
