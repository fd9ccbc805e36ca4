"""The rows of a plan as a person pages through them: moves, files that need a look, entries that were left alone."""

from collections import Counter
from collections.abc import Iterator

from holdfast.changes.model import Item
from holdfast.changes.names import parent_of
from holdfast.organiser.model import MIN_GUESS
from holdfast.organiser.service import PlanView
from holdfast.text.decode import replace_lone_surrogates
from holdfast.tools.organiser.answers import count_moves, describe_measures, relative_path, skip_reason
from holdfast.tools.organiser.shapes import FolderTotal
from holdfast.tools.person.plan_shapes import PlanRow, PlanRows, PlanRowsAnswer

_LOW_CONFIDENCE = 0.8
_MAX_FOLDERS = 1_000


def build_rows(view: PlanView, args: PlanRows) -> PlanRowsAnswer:
    """Return a page of a plan's rows with everything that is shown beside them."""
    notes, plan = view.notes, view.plan
    new_folders = {destination.folder for destination in notes.destinations if destination.is_new}
    moves = [_move_row(view, item, new_folders) for item in view.moves]
    below = [row for row in moves if (row.confidence or 0.0) < _LOW_CONFIDENCE]
    folders = _folder_totals(moves)
    rows = {
        "moves": moves,
        "below": below,
        "uncertain": [*_uncertain_rows(view)],
        "left_alone": [*_skipped_rows(view)],
        "by_folder": [],
    }
    rows["all"] = [*moves, *rows["uncertain"], *rows["left_alone"]]
    selected = [row for row in rows[args.view] if _is_selected(row, args)]
    return PlanRowsAnswer(
        plan_id=plan.id,
        status=plan.status.value,
        folder=replace_lone_surrogates(view.folder),
        plan_hash=view.plan_hash,
        needs_approval=view.needs_approval,
        created_at=plan.created_at,
        executed_at=plan.executed_at,
        made_by=notes.made_by or "agent",
        include_subfolders=notes.include_subfolders,
        rows=selected[args.offset : args.offset + args.limit],
        total=len(selected),
        counts={"moves": len(moves), "below": len(below), "uncertain": notes.uncertain_count}
        | {"left_alone": sum(notes.measures.skipped.values())},
        totals=count_moves(view.moves),
        folders=folders[:_MAX_FOLDERS],
        folders_total=len(folders),
        shelves=[replace_lone_surrogates(folder.folder) for folder in notes.destinations[:_MAX_FOLDERS]],
        skipped={reason.value: count for reason, count in notes.measures.skipped.items()},
        measures=describe_measures(notes.measures),
        remark=notes.remark or None,
    )


def _is_selected(row: PlanRow, args: PlanRows) -> bool:
    if args.folder is not None and row.folder != args.folder.strip("/"):
        return False
    part = args.filter.casefold()
    return not part or part in row.path.casefold() or part in row.folder.casefold()


def _move_row(view: PlanView, item: Item, new_folders: set[str]) -> PlanRow:
    path = relative_path(item.src_path, view.folder)
    destination = relative_path(item.dest_path or "", view.folder)
    folder = relative_path(parent_of(item.dest_path or ""), view.folder)
    return PlanRow(
        item_id=item.position,
        path=path,
        name=path.rpartition("/")[2],
        destination=destination,
        folder=folder,
        confidence=item.confidence,
        reason=replace_lone_surrogates(item.reasoning or ""),
        status=item.status.value,
        error=None if item.error_msg is None else replace_lone_surrogates(item.error_msg),
        is_new_folder=folder in new_folders,
        was_corrected=path in view.notes.decisions,
    )


def _uncertain_rows(view: PlanView) -> Iterator[PlanRow]:
    for file in view.notes.uncertain:
        path, is_guess = replace_lone_surrogates(file.relative), file.confidence >= MIN_GUESS
        yield PlanRow(
            path=path,
            name=path.rpartition("/")[2],
            folder=replace_lone_surrogates(file.category) if is_guess else "",
            confidence=file.confidence if is_guess else None,
            reason=replace_lone_surrogates(file.reasoning),
            status="UNCERTAIN",
            was_corrected=file.relative in view.notes.decisions,
        )


def _skipped_rows(view: PlanView) -> Iterator[PlanRow]:
    for entry in view.notes.skipped:
        path = replace_lone_surrogates(entry.relative)
        name = path.rpartition("/")[2]
        yield PlanRow(path=path, name=name, folder="", reason=skip_reason(entry), status="LEFT_ALONE")


def _folder_totals(moves: list[PlanRow]) -> list[FolderTotal]:
    counts = Counter(row.folder for row in moves)
    sums = dict.fromkeys(counts, 0.0)
    for row in moves:
        sums[row.folder] += row.confidence or 0.0
    is_new = {row.folder: row.is_new_folder for row in moves}
    totals = [
        FolderTotal(folder=folder, files=count, confidence=round(sums[folder] / count, 3), is_new=is_new[folder])
        for folder, count in counts.items()
    ]
    return sorted(totals, key=lambda total: (-total.files, total.folder))
