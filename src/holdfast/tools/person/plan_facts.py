"""The person's tools that say more of a plan: why a file goes where it goes, what changed since, the measures of past plans."""

from holdfast.app import App
from holdfast.auth.context import CallerKind
from holdfast.call import Call
from holdfast.text.display import quantity
from holdfast.text.path_address import path_at
from holdfast.tools.answer import Answer
from holdfast.tools.organiser.answers import describe_explanation, describe_measures, relative_path
from holdfast.tools.organiser.plan_text import explanation_text
from holdfast.tools.organiser.shapes import ExplainFileAnswer
from holdfast.tools.person.plan_shapes import (
    ExplainPlanFile,
    PastMeasures,
    PlanById,
    PlanFreshness,
    PlanMeasuresAnswer,
)
from holdfast.tools.person.plans import folders_of_plan
from holdfast.tools.registry import Effect, Group, tool
from holdfast.tools.threads import Load

_MAX_EXAMPLES = 20
_MAX_PLANS = 30


@tool(
    "explain_plan_file",
    group=Group.ORGANISE,
    effect=Effect.READ,
    title="Explain a file of a plan",
    output=ExplainFileAnswer,
    audience=CallerKind.PERSON,
    load=Load.HEAVY,
)
def explain_plan_file(app: App, call: Call, args: ExplainPlanFile) -> Answer:
    """Explain where a file of a plan goes or went: the files most like it, the words and rules that decided, its moves."""
    folders = folders_of_plan(app, call, args.plan_id)
    folder = app.organiser.show(folders, args.plan_id).folder
    path = path_at(args.address)
    explanation = app.organiser.explain(folders, call, path if path.startswith("/") else f"{folder}/{path}")
    answer = describe_explanation(explanation)
    return Answer.of(explanation_text(answer), data=answer)


@tool(
    "plan_freshness",
    group=Group.ORGANISE,
    effect=Effect.READ,
    title="Freshness of a plan",
    output=PlanFreshness,
    audience=CallerKind.PERSON,
    load=Load.HEAVY,
)
def plan_freshness(app: App, call: Call, args: PlanById) -> Answer:
    """Count the files of a plan that are gone or were changed since it was made, and would therefore stay."""
    folders = folders_of_plan(app, call, args.plan_id)
    view = app.organiser.show(folders, args.plan_id)
    outdated = app.organiser.plans.find_outdated(folders, call, view.plan)
    newest = app.organiser.past_measures(folders, view.folder, 1)
    newer = newest[-1][0].id if newest and newest[-1][0].id != view.plan.id else None
    data = PlanFreshness(
        missing=len(outdated.missing),
        changed=len(outdated.changed),
        examples=[
            relative_path(item.src_path, view.folder) for item in (*outdated.missing, *outdated.changed)[:_MAX_EXAMPLES]
        ],
        newer_plan=newer,
    )
    return Answer.of(f"{data.missing} gone, {data.changed} changed.", data=data)


@tool(
    "plan_measures",
    group=Group.ORGANISE,
    effect=Effect.READ,
    title="Measures of past plans",
    output=PlanMeasuresAnswer,
    audience=CallerKind.PERSON,
)
def plan_measures(app: App, call: Call, args: PlanById) -> Answer:
    """List the measures of the last plans for the folder of a plan, oldest first."""
    folders = folders_of_plan(app, call, args.plan_id)
    view = app.organiser.show(folders, args.plan_id)
    plans = [
        PastMeasures(
            plan_id=line.id,
            created_at=line.created_at,
            status=line.status.value,
            measures=describe_measures(measures),
        )
        for line, measures in app.organiser.past_measures(folders, view.folder, _MAX_PLANS)
    ]
    return Answer.of(f"{quantity(len(plans), 'plan')}.", data=PlanMeasuresAnswer(plans=plans))
