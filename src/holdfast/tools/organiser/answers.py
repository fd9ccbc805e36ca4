"""Plans as answers: totals, a page that fits the budget, and what to do next."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from holdfast.changes.model import Item, PlanStatus
from holdfast.changes.names import parent_of
from holdfast.errors import InvalidArgument
from holdfast.folders.service import Folders
from holdfast.organiser.model import Notes, SkippedFile, UncertainFile
from holdfast.organiser.planning.explain import Explanation
from holdfast.organiser.planning.jobs import PlanJob
from holdfast.organiser.service import Organiser, PlanView
from holdfast.text.budget import decode_cursor, encode_cursor, estimate_tokens
from holdfast.text.display import display_name
from holdfast.text.surrogates import replace_lone_surrogates
from holdfast.tools.organiser.shapes import (
    ExplainedFile,
    FolderTotal,
    MeasuresAnswer,
    PastMoveAnswer,
    PlannedMove,
    PlanPage,
    PlanPart,
    PlanSummary,
    ScanningAnswer,
    SkippedEntry,
    UncertainFileAnswer,
)

FIRST_UNCERTAIN = 20
MAX_FOLDERS = 200
_EXCERPT_CHARS = 600
_PAGE_SHARE = 0.6
_LINE_TOKENS = 30
_BECAME = {"DONE": "moved", "SKIPPED": "skipped", "ERROR": "failed", "UNDONE": "taken back"}


def scanning(job: PlanJob) -> ScanningAnswer:
    """Return how far a plan in the making is."""
    return ScanningAnswer(
        plan_id=job.plan_id,
        status="SCANNING",
        folder=replace_lone_surrogates(job.folder),
        done=job.done,
        total=job.total,
        message=job.message,
        next="Call get_plan with this plan_id until it is CREATED.",
    )


def summary(shown: PlanView) -> PlanSummary:
    """Return a plan at a glance."""
    return PlanSummary.model_validate(_summary_fields(shown, [_uncertain(one, None) for one in _first(shown)]))


def page(organiser: Organiser, folders: Folders, shown: PlanView, part: PlanPart, cursor: str | None) -> PlanPage:
    """Return a plan with as much of one part as fits, and where to go on."""
    start = _position(cursor, part)
    room = int(folders.settings.max_answer_tokens * _PAGE_SHARE)
    found = PlanPage.model_validate(_summary_fields(shown, []))
    if part == "moves":
        found.moves, following = _moves_from(shown, start, room)
    elif part == "skipped":
        found.left_alone, following = _skipped_from(shown, start, room)
    else:
        found.uncertain, following = _uncertain_from(organiser, folders, shown, start, room)
    if following is not None:
        found.next_cursor = encode_cursor({part: following})
    return found


def planned(item: Item, folder: str) -> PlannedMove:
    """Return a move by its paths from the planned folder."""
    return PlannedMove(
        path=relative(item.src_path, folder),
        to=relative(item.dest_path or "", folder),
        confidence=item.confidence or 0.0,
        why=item.reasoning or "",
        status=item.status.value,
        error=None if item.error_msg is None else replace_lone_surrogates(item.error_msg),
    )


def relative(path: str, folder: str) -> str:
    """Return a path from a folder, or as it is when it lies elsewhere."""
    return replace_lone_surrogates(path.removeprefix(f"{folder.rstrip('/')}/"))


def totals_of(moves: Iterable[Item]) -> dict[str, int]:
    """Return how many moves there are, and how many have which status."""
    counts = Counter(item.status.value for item in moves)
    return {"moves": counts.total(), **counts}


def explained(found: Explanation) -> ExplainedFile:
    """Return why a file lies where it lies."""
    verdict, waiting, doubt = found.verdict, found.waiting, found.doubt
    answer = ExplainedFile(
        path=replace_lone_surrogates(found.path),
        moves=[
            PastMoveAnswer(
                at=hop.past.at,
                plan_id=hop.past.plan_id,
                kind=hop.past.kind,
                path=replace_lone_surrogates(hop.src),
                to=replace_lone_surrogates(hop.dest),
                why=hop.past.reasoning,
            )
            for hop in found.moves
        ],
        why=_why(found),
    )
    if waiting is not None:
        answer.waiting_plan, answer.waiting_to = waiting.plan_id, replace_lone_surrogates(waiting.dest)
        answer.confidence = waiting.confidence
    if doubt is not None:
        answer.category, answer.confidence = doubt.category, doubt.confidence
    if verdict is not None:
        answer.category = verdict.category
        answer.confidence = answer.confidence if answer.confidence is not None else round(verdict.confidence, 3)
        answer.nearest = [replace_lone_surrogates(name) for name in verdict.evidence.nearest]
        answer.terms, answer.rule = list(verdict.evidence.terms), verdict.evidence.rule or None
    return answer


def at_a_glance(found: PlanSummary) -> str:
    """Return a plan's summary as lines."""
    lines = [f"Plan {found.plan_id} for {display_name(found.folder)}: {found.status}"]
    lines += [
        f"{one.files:>6}  {display_name(one.folder)}/{' (new)' if one.is_new else ''}  {one.confidence:.0%}"
        for one in found.folders
    ]
    counts = found.totals
    lines.append(f"{_progress(counts)}, {counts['uncertain']} to look at, {sum(found.skipped.values())} left alone.")
    lines += [found.remark] if found.remark else []
    return "\n".join([*lines, found.next])


def _progress(totals: Mapping[str, int]) -> str:
    """Return what became of the moves, once something did."""
    begun = [f"{totals[status]} {word}" for status, word in _BECAME.items() if totals.get(status)]
    waiting = [f"{totals.get('PENDING', 0)} to move"] if totals.get("PENDING") or not begun else []
    return ", ".join([*begun, *waiting])


def next_step(shown: PlanView) -> str:
    """Return what is to be done with a plan."""
    plan_id, moves = shown.plan.id, shown.moves
    if shown.plan.status is PlanStatus.CREATED and not moves:
        decide = " revise_plan takes decisions on the uncertain files." if shown.notes.doubted else ""
        deeper = " include_subfolders sorts the files in folders too." if _lie_in_folders(shown.notes) else ""
        return f"Nothing is to be moved.{decide}{deeper}"
    if shown.plan.status is PlanStatus.CREATED and shown.needs_approval:
        look = "Decide the uncertain ones with revise_plan; then a" if shown.notes.doubted else "A"
        return f"{look} person approves it: `holdfast organise approve {plan_id[:8]}`. Then call execute_plan."
    return {
        PlanStatus.CREATED: "Call execute_plan.",
        PlanStatus.APPROVED: "Call execute_plan.",
        PlanStatus.RUNNING: "It has begun and not ended; execute_plan goes on with it.",
        PlanStatus.FAILED: "Some items failed; execute_plan tries them again, undo_change with plan_id takes it back.",
        PlanStatus.EXECUTED: "Done. undo_change with plan_id takes it back.",
    }.get(shown.plan.status, "")


def _lie_in_folders(notes: Notes) -> bool:
    """Return whether a scan that had nothing to sort saw files in folders."""
    return not notes.deep and not notes.doubted and any(shelf.known for shelf in notes.shelves)


def _why(found: Explanation) -> str:
    if found.waiting is not None:
        return f"A plan waits to move it: {found.waiting.reasoning}"
    if found.moves:
        return found.moves[0].past.reasoning or f"It was moved by a change of kind {found.moves[0].past.kind}."
    if found.doubt is not None:
        return f"The plan left it to be looked at: {found.doubt.reasoning}"
    if found.skip is not None:
        what = display_name(replace_lone_surrogates(found.skip.relative))
        return f"The plan left {'the folder' if what == '.' else what} alone: {_reason(found.skip)}."
    return "Nothing of Holdfast has moved it."


def _first(shown: PlanView) -> Sequence[UncertainFile]:
    return shown.notes.doubts[:FIRST_UNCERTAIN]


def _summary_fields(shown: PlanView, uncertain: Sequence[object]) -> dict[str, object]:
    plan, notes = shown.plan, shown.notes
    measures = notes.measures
    return {
        "plan_id": plan.id,
        "status": plan.status.value,
        "folder": replace_lone_surrogates(shown.folder),
        "plan_hash": shown.plan_hash,
        "created_at": plan.created_at,
        "made_by": notes.maker or "agent",
        "executed_at": plan.executed_at,
        "totals": {**totals_of(shown.moves), "uncertain": notes.doubted},
        "folders": _folders(shown),
        "shelves": [replace_lone_surrogates(shelf.folder) for shelf in notes.shelves[:MAX_FOLDERS]],
        "uncertain": uncertain,
        "skipped": {reason.value: count for reason, count in measures.skipped.items()},
        "measures": MeasuresAnswer(
            files=measures.files,
            cache_hit_rate=round(measures.cache_hit_rate, 4),
            tokens_saved=measures.tokens_saved,
            safety_skips=measures.safety_skips,
            do_nothing_ratio=round(measures.do_nothing_ratio, 4),
        ),
        "remark": notes.remark or None,
        "next": next_step(shown),
    }


def _folders(shown: PlanView) -> list[FolderTotal]:
    new = {shelf.folder for shelf in shown.notes.shelves if shelf.is_new}
    found: dict[str, list[float]] = {}
    for item in shown.moves:
        found.setdefault(relative(parent_of(item.dest_path or ""), shown.folder), []).append(item.confidence or 0.0)
    totals = [
        FolderTotal(folder=folder, files=len(sure), confidence=round(sum(sure) / len(sure), 3), is_new=folder in new)
        for folder, sure in found.items()
    ]
    return sorted(totals, key=lambda one: (-one.files, one.folder))[:MAX_FOLDERS]


def _uncertain(doubt: UncertainFile, excerpt: str | None) -> UncertainFileAnswer:
    path = replace_lone_surrogates(doubt.relative)
    return UncertainFileAnswer(
        path=path,
        folder=replace_lone_surrogates(doubt.category),
        confidence=doubt.confidence,
        why=doubt.reasoning,
        excerpt=excerpt,
    )


def _moves_from(shown: PlanView, start: int, room: int) -> tuple[list[PlannedMove], int | None]:
    moves = shown.moves
    rows: list[PlannedMove] = []
    for item in moves[start:]:
        row = planned(item, shown.folder)
        room -= _cost(row.path, row.to, row.why, row.error or "")
        if room < 0 and rows:
            return rows, start + len(rows)
        rows.append(row)
    return rows, None


def _uncertain_from(
    organiser: Organiser, folders: Folders, shown: PlanView, start: int, room: int
) -> tuple[list[UncertainFileAnswer], int | None]:
    rows: list[UncertainFileAnswer] = []
    doubts = shown.notes.doubts
    for doubt, text in organiser.said(folders, shown.folder, doubts[start : start + 500]):
        row = _uncertain(doubt, replace_lone_surrogates(text[:_EXCERPT_CHARS]) or None)
        room -= _cost(row.path, row.folder, row.why, row.excerpt or "")
        if room < 0 and rows:
            break
        rows.append(row)
    end = start + len(rows)
    return rows, end if end < len(doubts) else None


def _skipped_from(shown: PlanView, start: int, room: int) -> tuple[list[SkippedEntry], int | None]:
    rows: list[SkippedEntry] = []
    for skip in shown.notes.skips[start:]:
        row = SkippedEntry(path=replace_lone_surrogates(skip.relative), why=_reason(skip))
        room -= _cost(row.path, row.why)
        if room < 0 and rows:
            return rows, start + len(rows)
        rows.append(row)
    return rows, None


def _reason(skip: SkippedFile) -> str:
    return skip.reason.value + (f": {replace_lone_surrogates(skip.detail)}" if skip.detail else "")


def _cost(*texts: str) -> int:
    return _LINE_TOKENS + sum(estimate_tokens(text) for text in texts)


def _position(cursor: str | None, part: PlanPart) -> int:
    if cursor is None:
        return 0
    at = decode_cursor(cursor).get(part)
    if not isinstance(at, int) or at < 0:
        raise InvalidArgument(f"The cursor is not one of get_plan with show={part!r}.")
    return at
