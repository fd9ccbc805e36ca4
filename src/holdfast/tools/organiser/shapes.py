"""Arguments and answers of the organiser's tools.

The tool list declares only the fields that every plan has; an answer has all fields of its own type.
"""

from typing import Literal

from pydantic import BaseModel, Field

from holdfast.tools.registry import Arguments

PlanPart = Literal["moves", "uncertain", "skipped"]


class CreatePlan(Arguments):
    """Arguments of create_organization_plan."""

    folder_path: str = Field(description="Path of the folder to tidy.")
    include_subfolders: bool = Field(False, description="Whether to sort the files in its subfolders too.")


class GetPlan(Arguments):
    """Arguments of get_plan."""

    plan_id: str = Field(description="Id of the plan.")
    show: PlanPart = Field("moves", description="Which part of the plan to list.")
    cursor: str | None = Field(None, description="Cursor of the previous answer.")


class PlanChange(Arguments):
    """One decision about one file."""

    path: str = Field(description="Path of the file, from the planned folder.")
    folder: str | None = Field(
        None, description="Folder to move it to, from the planned folder; leave out to keep it where it is."
    )


class RevisePlan(Arguments):
    """Arguments of revise_plan."""

    plan_id: str = Field(description="Id of the plan.")
    changes: list[PlanChange] = Field([], description="Decisions on single files.")
    cancel: bool = Field(False, description="Whether to close the plan without moving anything.")


class ExecutePlan(Arguments):
    """Arguments of execute_plan."""

    plan_id: str = Field(description="Id of the plan.")


class UndoPlan(Arguments):
    """Arguments of undo_plan."""

    plan_id: str = Field(description="Id of the plan.")
    paths: list[str] | None = Field(
        None, max_length=10_000, description="Paths of the files to move back; by default all."
    )


class ListPlans(Arguments):
    """Arguments of list_plans."""

    cursor: str | None = Field(None, description="Cursor of the previous answer.")


class ExplainFile(Arguments):
    """Arguments of explain_file."""

    path: str = Field(description="Path of the file, as it is or was.")


class ApprovePlan(Arguments):
    """Arguments of approve_plan."""

    plan_id: str = Field(description="Id of the plan.")
    plan_hash: str = Field(description="The plan_hash that was shown with it.")


class CorrectPlan(Arguments):
    """Arguments of correct_plan."""

    plan_id: str = Field(description="Id of the plan.")
    changes: list[PlanChange] = Field(min_length=1, description="Decisions on single files.")


class PlanAnswer(BaseModel):
    """The fields that every plan has."""

    plan_id: str
    status: str


class FolderTotal(BaseModel):
    """The number of files that go to one folder."""

    folder: str
    files: int
    confidence: float = Field(description="mean of its moves")
    is_new: bool = False


class UncertainFileAnswer(BaseModel):
    """A file that stays until somebody decides on it."""

    path: str
    folder: str = Field(description="best guess, empty when none is likely")
    confidence: float | None = Field(None, description="of the guess")
    why: str
    excerpt: str | None = None


class PlannedMove(BaseModel):
    """One move."""

    path: str
    to: str
    confidence: float
    why: str
    status: str
    error: str | None = None


class SkippedEntry(BaseModel):
    """An entry that was skipped, or a file that stayed."""

    path: str
    why: str


class MeasuresAnswer(BaseModel):
    """The four measures of a plan, and the files they are about."""

    files: int
    cache_hit_rate: float
    tokens_saved: int
    safety_skips: int
    do_nothing_ratio: float


class PlanSummaryAnswer(PlanAnswer):
    """A plan with its totals and its first uncertain files."""

    folder: str
    plan_hash: str
    created_at: str
    made_by: str = Field(description="agent or command")
    executed_at: str | None = None
    totals: dict[str, int] = Field(description="moves by status, and uncertain")
    folders: list[FolderTotal]
    shelves: list[str] = Field(description="folders that files may be sorted into")
    uncertain: list[UncertainFileAnswer]
    skipped: dict[str, int]
    measures: MeasuresAnswer
    remark: str | None = None
    next: str


class PlanProgressAnswer(PlanAnswer):
    """A plan in the making."""

    folder: str
    done: float = Field(description="Steps done, with a share of the one under way")
    total: float | None = Field(None, description="Steps in all")
    message: str
    next: str


class PlanPage(PlanSummaryAnswer):
    """A plan with a page of one of its parts."""

    moves: list[PlannedMove] | None = None
    left_alone: list[SkippedEntry] | None = None
    next_cursor: str | None = None


class ExecutedAnswer(PlanAnswer):
    """The result of executing a plan."""

    executed_at: str | None = None
    totals: dict[str, int]
    already_done: int
    problems: list[PlannedMove] = Field(description="the first that did not move")
    next: str


class UndoReport(BaseModel):
    """How many moves were undone and how many files stayed; no `change_id` if all moves were undone before."""

    change_id: str | None = None
    came_back: int = 0
    stayed: int = 0
    problems: list[SkippedEntry] = Field([], description="the first that stayed, where they are now")


class UndoneAnswer(UndoReport, PlanAnswer):
    """The result of undoing a plan; `totals` are those of the whole plan."""

    totals: dict[str, int]


class PlanLineAnswer(PlanAnswer):
    """One plan of a list."""

    folder: str
    created_at: str
    executed_at: str | None = None
    moves: dict[str, int]
    roots: list[str] | None = None


class PlanList(BaseModel):
    """A page of plans, newest first."""

    plans: list[PlanAnswer]
    next_cursor: str | None = None


class AllPlans(Arguments):
    """Arguments of all_plans."""

    limit: int = Field(200, ge=1, le=1_000, description="Most plans to list.")
    cursor: str | None = Field(None, description="Cursor of the previous answer.")


class AllPlansAnswer(BaseModel):
    """The plans of this machine, newest first; those in the making are answered by running_scans."""

    plans: list[PlanLineAnswer]
    next_cursor: str | None = None


class CorrectedMove(BaseModel):
    """A file that a correction sent elsewhere, or to stay (no `to`), itself or because of what was learnt from another."""

    path: str
    before: str | None = Field(None, description="where it would have gone")
    to: str | None = None


class CorrectedPlanAnswer(PlanSummaryAnswer):
    """Answer of correct_plan: the plan, and every file that goes elsewhere now, the first thousand of them."""

    changed: list[CorrectedMove]
    changed_count: int


class PastMoveAnswer(BaseModel):
    """One move of a file, or of a folder that it was in."""

    at: str
    plan_id: str
    kind: str
    path: str
    to: str
    why: str


class FileLocationAnswer(BaseModel):
    """Answer of explain_file: where a file is."""

    path: str


class ExplainFileAnswer(FileLocationAnswer):
    """Where a file is, the moves that brought it there, and the verdict on it."""

    moves: list[PastMoveAnswer]
    why: str
    category: str | None = None
    confidence: float | None = None
    nearest: list[str] = []
    terms: list[str] = []
    rule: str | None = None
    waiting_plan: str | None = None
    waiting_to: str | None = None
