"""Arguments and answers of the person's tools for plans: choose a folder, scan it, look at rows by page, carry out, take back."""

from typing import Literal

from pydantic import BaseModel, Field

from holdfast.tools.organiser.shapes import FolderTotal, MeasuresAnswer, PlanAnswer, UndoReport
from holdfast.tools.registry import Arguments

PlanView = Literal["moves", "below", "uncertain", "left_alone", "skipped", "stayed", "all", "by_folder"]
PlanSide = Literal["target", "before", "after"]


class ListDirectories(Arguments):
    """Arguments of list_directories."""

    path: str = Field(
        "", max_length=20_000, description="A directory in the home folder; empty: the home folder itself."
    )
    with_hidden: bool = Field(False, description="Whether to list names that begin with a dot, too.")


class DirectoryName(BaseModel):
    """One directory to choose from."""

    name: str
    path: str


class ListDirectoriesAnswer(BaseModel):
    """Answer of list_directories: names only, of directories only."""

    path: str
    above: str | None = Field(None, description="the directory above it, none at the home folder")
    directories: list[DirectoryName]
    is_cut: bool = Field(description="there are more than are listed")


class StartScan(Arguments):
    """Arguments of start_scan."""

    directory: str = Field(
        max_length=20_000, description="The folder to tidy, in the home folder or a known directory."
    )
    include_subfolders: bool = Field(False, description="Whether to sort the files in its subfolders too.")
    is_whole_home: bool = Field(
        False, description="Say that the whole home folder is meant, which is refused otherwise."
    )


class ScanFacts(BaseModel):
    """A plan in the making."""

    plan_id: str
    folder: str
    done: float = Field(description="steps done, with a share of the one under way")
    total: float | None = Field(None, description="steps in all")
    message: str


class FailedScan(BaseModel):
    """A plan that could not be made, as long as the server remembers it."""

    plan_id: str
    folder: str
    code: str
    message: str


class RunningScansAnswer(BaseModel):
    """Answer of running_scans. `busy_plans` are those that are being carried out or undone at this moment."""

    scans: list[ScanFacts]
    failed: list[FailedScan]
    busy_plans: list[str]


class PlanById(Arguments):
    """Arguments of a tool that takes one plan."""

    plan_id: str = Field(max_length=64, description="Id of the plan.")


class PlanRows(Arguments):
    """Arguments of plan_rows."""

    plan_id: str = Field(max_length=64, description="Id of the plan.")
    view: PlanView = Field(
        "moves",
        description="moves; below: those under 80 % confidence; uncertain: files that stay until somebody decides; "
        "left_alone: files that somebody decided to leave; skipped: entries that the scan did not touch; stayed: moves "
        "that were not carried out; all of these; by_folder: no rows, only the folders.",
    )
    side: PlanSide = Field(
        "target",
        description="What `folder` and `folders` are about: the targets of moves, or where every row lies before or after.",
    )
    folder: str | None = Field(None, max_length=20_000, description="Only rows of this folder of the plan.")
    filter: str = Field("", max_length=255, description="Only rows whose path or folder holds this text.")
    offset: int = Field(0, ge=0, description="How many rows to skip.")
    limit: int = Field(200, ge=1, le=2_000, description="Maximum number of rows.")


class PlanRow(BaseModel):
    """One file of a plan; paths are from the planned folder."""

    item_id: int | None = Field(None, description="what undo_plan_items takes; none for a file that does not move")
    path: str
    address: str = Field(description="what correct_plan and explain_plan_file take: also of a name that is not UTF-8")
    name: str
    destination: str | None = Field(None, description="its new path, none for a file that does not move")
    folder: str = Field(description="the folder that it goes to, or the best guess; empty when none is likely")
    confidence: float | None = None
    reason: str
    status: str = Field(
        description="of a move PENDING, DONE, SKIPPED, ERROR or UNDONE; else UNCERTAIN, LEFT_ALONE or NOT_SCANNED"
    )
    error: str | None = None
    is_new_folder: bool = False
    was_corrected: bool = Field(False, description="somebody decided on it")


class PlanFolder(FolderTotal):
    """The number of files of one folder, and how many of them have moved."""

    done: int = 0


class PlanRowsAnswer(PlanAnswer):
    """Answer of plan_rows: a page of rows; `total` counts what passes view, folder and filter."""

    folder: str
    plan_hash: str = Field(description="what approve_plan takes")
    needs_approval: bool
    created_at: str
    executed_at: str | None = None
    made_by: str
    include_subfolders: bool
    rows: list[PlanRow]
    total: int
    counts: dict[str, int] = Field(description="rows of each view")
    totals: dict[str, int] = Field(description="moves, and moves by status")
    folders: list[PlanFolder] = Field(description="where files go, or lie before or after, the largest first")
    folders_total: int
    shelves: list[str] = Field(description="folders that files may be sorted into")
    skipped: dict[str, int] = Field(description="entries that the scan did not touch, by reason")
    measures: MeasuresAnswer
    remark: str | None = None


class ExecutedForPerson(PlanAnswer):
    """Answer of execute_plan_for_person."""

    executed_at: str | None = None
    totals: dict[str, int]


class UndoPlanItems(Arguments):
    """Arguments of undo_plan_items."""

    plan_id: str = Field(max_length=64, description="Id of the plan.")
    item_ids: list[int] | None = Field(None, max_length=10_000, description="Of plan_rows; left out: all of the plan.")


class UndonePlanItems(UndoReport, PlanAnswer):
    """Answer of undo_plan_items; `totals` are those of the whole plan."""

    totals: dict[str, int]


class ExplainPlanFile(Arguments):
    """Arguments of explain_plan_file."""

    plan_id: str = Field(max_length=64, description="Id of the plan.")
    address: str = Field(max_length=20_000, description="Address of the file, of plan_rows.")


class PlanFreshness(BaseModel):
    """Answer of plan_freshness: waiting moves whose files are not what they were when the plan was made."""

    missing: int
    changed: int
    examples: list[str] = Field(description="the first of both, by their paths from the planned folder")
    newer_plan: str | None = Field(None, description="a plan that was made later for the same folder")


class PastMeasures(BaseModel):
    """The measures of one plan."""

    plan_id: str
    created_at: str
    status: str
    measures: MeasuresAnswer


class PlanMeasuresAnswer(BaseModel):
    """Answer of plan_measures: the last plans for the folder, oldest first."""

    plans: list[PastMeasures]
