"""Builds the data that the organiser's tools answer: summaries, pages that fit the token budget, undo results, next steps."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from holdfast.changes.model import Item, PlanOverview, PlanStatus, UndoResult
from holdfast.changes.names import parent_of
from holdfast.folders.service import Folders
from holdfast.organiser.model import MIN_GUESS, Measures, Notes, SkippedFile, UncertainFile
from holdfast.organiser.planning.explain import Explanation
from holdfast.organiser.planning.jobs import PlanJob
from holdfast.organiser.service import Organiser, PlanView
from holdfast.text.budget import encode_cursor, estimate_tokens, read_position, take_rows
from holdfast.text.decode import replace_lone_surrogates
from holdfast.text.display import display_name
from holdfast.tools.organiser.shapes import (
    CorrectedMove,
    ExplainFileAnswer,
    FolderTotal,
    MeasuresAnswer,
    PastMoveAnswer,
    PlanLineAnswer,
    PlannedMove,
    PlanPage,
    PlanPart,
    PlanProgressAnswer,
    PlanSummaryAnswer,
    SkippedEntry,
    UncertainFileAnswer,
    UndoReport,
)

_MAX_UNCERTAIN_IN_SUMMARY = 20
_MAX_UNCERTAIN_PER_PAGE = 500
_MAX_FOLDERS = 200
_MAX_STAYED = 20
_MAX_EXCERPT_CHARS = 600
_PAGE_SHARE = 0.6
_TOKENS_PER_ROW = 30
_MOVE_WORDS = {"undo": "It came back: the plan that had moved it was undone."}


def describe_job(job: PlanJob) -> PlanProgressAnswer:
    """Return the progress of a plan in the making."""
    return PlanProgressAnswer(
        plan_id=job.plan_id,
        status="SCANNING",
        folder=replace_lone_surrogates(job.folder),
        done=job.done,
        total=job.total,
        message=job.message,
        next="Call get_plan with this plan_id until it is CREATED.",
    )


def summarise(view: PlanView) -> PlanSummaryAnswer:
    """Return a plan with its totals and its first uncertain files."""
    first = [_uncertain_answer(file, None) for file in view.notes.uncertain[:_MAX_UNCERTAIN_IN_SUMMARY]]
    return PlanSummaryAnswer.model_validate(_summary_fields(view, first))


def build_page(organiser: Organiser, folders: Folders, view: PlanView, part: PlanPart, cursor: str | None) -> PlanPage:
    """Return a plan with as much of one part as fits, and the cursor of the rest."""
    start = read_position(cursor, part, f"get_plan with show={part!r}") or 0
    room = int(folders.settings.max_answer_tokens * _PAGE_SHARE)
    page = PlanPage.model_validate(_summary_fields(view, []))
    if part == "moves":
        moves = (describe_move(item, view.folder) for item in view.moves[start:])
        page.moves = take_rows(moves, room, lambda row: _cost(row.path, row.to, row.why, row.error or ""))
        end, total = start + len(page.moves), len(view.moves)
    elif part == "skipped":
        entries = (
            SkippedEntry(path=replace_lone_surrogates(entry.relative), why=skip_reason(entry))
            for entry in view.notes.skipped[start:]
        )
        page.left_alone = take_rows(entries, room, lambda row: _cost(row.path, row.why))
        end, total = start + len(page.left_alone), len(view.notes.skipped)
    else:
        files = view.notes.uncertain[start : start + _MAX_UNCERTAIN_PER_PAGE]
        rows = _uncertain_rows(organiser, folders, view, files)
        page.uncertain = take_rows(rows, room, lambda row: _cost(row.path, row.folder, row.why, row.excerpt or ""))
        end, total = start + len(page.uncertain), len(view.notes.uncertain)
    if end < total:
        page.next_cursor = encode_cursor({part: end})
    return page


def describe_line(line: PlanOverview, roots: Sequence[str] | None = None) -> PlanLineAnswer:
    """Return a plan as one row of a list; with the directories that it touches, for the person."""
    return PlanLineAnswer(
        plan_id=line.id,
        status=line.status.value,
        folder=replace_lone_surrogates(line.folder),
        created_at=line.created_at,
        executed_at=line.executed_at,
        moves={status.value: count for status, count in line.moves.items()},
        roots=None if roots is None else list(roots),
    )


def describe_move(item: Item, folder: str) -> PlannedMove:
    """Return a move, with paths from the planned folder."""
    return PlannedMove(
        path=relative_path(item.src_path, folder),
        to=relative_path(item.dest_path or "", folder),
        confidence=item.confidence or 0.0,
        why=item.reasoning or "",
        status=item.status.value,
        error=None if item.error_msg is None else replace_lone_surrogates(item.error_msg),
    )


def relative_path(path: str, folder: str) -> str:
    """Return a path from a folder, or the whole path if it lies elsewhere."""
    return replace_lone_surrogates(path.removeprefix(f"{folder.rstrip('/')}/"))


def count_moves(moves: Iterable[Item]) -> dict[str, int]:
    """Return the number of moves, in all and by status."""
    counts = Counter(item.status.value for item in moves)
    return {"moves": counts.total(), **counts}


def describe_explanation(explanation: Explanation) -> ExplainFileAnswer:
    """Return why a file is where it is."""
    verdict, pending, uncertain = explanation.verdict, explanation.pending, explanation.uncertain
    answer = ExplainFileAnswer(
        path=replace_lone_surrogates(explanation.path),
        moves=[
            PastMoveAnswer(
                at=hop.move.moved_at,
                plan_id=hop.move.plan_id,
                kind=hop.move.kind,
                path=replace_lone_surrogates(hop.src),
                to=replace_lone_surrogates(hop.dest),
                why=hop.move.reasoning,
            )
            for hop in explanation.hops
        ],
        why=_reason_for_place(explanation),
    )
    if pending is not None:
        answer.waiting_plan, answer.waiting_to = pending.plan_id, replace_lone_surrogates(pending.dest)
    if uncertain is not None and uncertain.confidence >= MIN_GUESS:
        answer.category, answer.confidence = uncertain.category, uncertain.confidence
    if verdict is not None and verdict.confidence >= MIN_GUESS:
        answer.category, answer.confidence = verdict.category, round(verdict.confidence, 3)
        answer.nearest = [replace_lone_surrogates(name) for name in verdict.evidence.nearest]
        answer.terms, answer.rule = list(verdict.evidence.terms), verdict.evidence.rule or None
    return answer


def compare_moves(before: PlanView, after: PlanView) -> list[CorrectedMove]:
    """Return the files that go elsewhere in a plan than they did, or stay now, or did."""
    old, new = _destinations(before), _destinations(after)
    return [
        CorrectedMove(path=path, before=old.get(path), to=new.get(path))
        for path in dict.fromkeys([*new, *old])
        if old.get(path) != new.get(path)
    ]


def _destinations(view: PlanView) -> dict[str, str]:
    folder = view.folder
    return {relative_path(item.src_path, folder): relative_path(item.dest_path or "", folder) for item in view.moves}


def describe_undo(undo: UndoResult) -> UndoReport:
    """Return how many files came back and which stayed, with paths from the folder of the plan."""
    folder = undo.plan.folder or ""
    problems = [
        SkippedEntry(path=relative_path(item.src_path, folder), why=replace_lone_surrogates(item.error_msg or ""))
        for item in undo.stayed[:_MAX_STAYED]
    ]
    return UndoReport(change_id=undo.change_id, came_back=undo.back, stayed=len(undo.stayed), problems=problems)


def next_step(view: PlanView) -> str:
    """Return what to do with a plan next."""
    plan, notes = view.plan, view.notes
    if plan.status is PlanStatus.CREATED and not view.moves:
        decide = " revise_plan takes decisions on the uncertain files." if notes.uncertain_count else ""
        subfolders = " include_subfolders sorts the files in folders too." if _has_files_in_folders_only(notes) else ""
        return f"There is nothing to move.{decide}{subfolders}"
    if plan.status is PlanStatus.CREATED and view.needs_approval:
        start = "Decide on the uncertain files with revise_plan; then a" if notes.uncertain_count else "A"
        return f"{start} person approves it: `holdfast organise approve {plan.id[:8]}`. Then call execute_plan."
    undo = f'undo_change with change_id="{plan.id}" undoes the plan.'
    return {
        PlanStatus.CREATED: "Call execute_plan.",
        PlanStatus.APPROVED: "Call execute_plan.",
        PlanStatus.RUNNING: "It was interrupted; execute_plan continues it.",
        PlanStatus.FAILED: f"Some moves failed; execute_plan tries them again, {undo}",
        PlanStatus.EXECUTED: f"Done. {undo}",
    }.get(plan.status, "")


def _has_files_in_folders_only(notes: Notes) -> bool:
    """Return whether a scan found nothing to sort, and files in folders."""
    has_examples = any(destination.example_count for destination in notes.destinations)
    return not notes.include_subfolders and not notes.uncertain_count and has_examples


def _reason_for_place(explanation: Explanation) -> str:
    if explanation.pending is not None:
        return f"A plan waits to move it: {explanation.pending.reasoning}"
    if explanation.hops:
        move = explanation.hops[0].move
        return _MOVE_WORDS.get(move.kind) or move.reasoning or f"It was moved by a change of kind {move.kind}."
    if explanation.uncertain is not None:
        return f"The plan lists it as uncertain: {explanation.uncertain.reasoning}"
    if explanation.skipped is not None:
        name = display_name(replace_lone_surrogates(explanation.skipped.relative))
        return f"The plan skipped {'the folder' if name == '.' else name}: {skip_reason(explanation.skipped)}."
    return "Holdfast has not moved it."


def _summary_fields(view: PlanView, uncertain: Sequence[object]) -> dict[str, object]:
    plan, notes = view.plan, view.notes
    measures = notes.measures
    return {
        "plan_id": plan.id,
        "status": plan.status.value,
        "folder": replace_lone_surrogates(view.folder),
        "plan_hash": view.plan_hash,
        "created_at": plan.created_at,
        "made_by": notes.made_by or "agent",
        "executed_at": plan.executed_at,
        "totals": {**count_moves(view.moves), "uncertain": notes.uncertain_count},
        "folders": _folder_totals(view),
        "shelves": [replace_lone_surrogates(folder.folder) for folder in notes.destinations[:_MAX_FOLDERS]],
        "uncertain": uncertain,
        "skipped": {reason.value: count for reason, count in measures.skipped.items()},
        "measures": describe_measures(measures),
        "remark": notes.remark or None,
        "next": next_step(view),
    }


def describe_measures(measures: Measures) -> MeasuresAnswer:
    """Return the four measures of a plan."""
    return MeasuresAnswer(
        files=measures.files,
        cache_hit_rate=round(measures.cache_hit_rate, 4),
        tokens_saved=measures.tokens_saved,
        safety_skips=measures.safety_skips,
        do_nothing_ratio=round(measures.do_nothing_ratio, 4),
    )


def _folder_totals(view: PlanView) -> list[FolderTotal]:
    new = {destination.folder for destination in view.notes.destinations if destination.is_new}
    confidences: dict[str, list[float]] = {}
    for item in view.moves:
        folder = relative_path(parent_of(item.dest_path or ""), view.folder)
        confidences.setdefault(folder, []).append(item.confidence or 0.0)
    totals = [
        FolderTotal(
            folder=folder, files=len(values), confidence=round(sum(values) / len(values), 3), is_new=folder in new
        )
        for folder, values in confidences.items()
    ]
    return sorted(totals, key=lambda total: (-total.files, total.folder))[:_MAX_FOLDERS]


def _uncertain_answer(file: UncertainFile, excerpt: str | None) -> UncertainFileAnswer:
    is_guess = file.confidence >= MIN_GUESS
    return UncertainFileAnswer(
        path=replace_lone_surrogates(file.relative),
        folder=replace_lone_surrogates(file.category) if is_guess else "",
        confidence=file.confidence if is_guess else None,
        why=file.reasoning,
        excerpt=excerpt,
    )


def _uncertain_rows(
    organiser: Organiser, folders: Folders, view: PlanView, files: Sequence[UncertainFile]
) -> Iterator[UncertainFileAnswer]:
    for file, text in organiser.read_uncertain(folders, view.folder, files):
        yield _uncertain_answer(file, replace_lone_surrogates(text[:_MAX_EXCERPT_CHARS]) or None)


def skip_reason(entry: SkippedFile) -> str:
    """Return why a scan skipped an entry."""
    return entry.reason.value + (f": {replace_lone_surrogates(entry.detail)}" if entry.detail else "")


def _cost(*texts: str) -> int:
    return _TOKENS_PER_ROW + sum(estimate_tokens(text) for text in texts)
