"""The rows of a plan as a person pages through them: moves, files that need a look, files that stay and why."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from holdfast.changes.model import Item, ItemStatus
from holdfast.changes.names import parent_of
from holdfast.organiser.model import MIN_GUESS, SkippedFile, UncertainFile
from holdfast.organiser.service import PlanView
from holdfast.text.decode import replace_lone_surrogates
from holdfast.text.path_address import address_of
from holdfast.tools.organiser.answers import count_moves, describe_measures, relative_path, skip_reason
from holdfast.tools.person.plan_shapes import PlanFolder, PlanRow, PlanRows, PlanRowsAnswer, PlanSide

_LOW_CONFIDENCE = 0.8
_MAX_FOLDERS = 1_000
_STAYED = (ItemStatus.SKIPPED, ItemStatus.ERROR)


class _PlanEntry(NamedTuple):
    """What is known of a row before it is written out; `target` is where it goes or might go, empty for neither."""

    source: Item | UncertainFile | SkippedFile | str
    path: str
    target: str
    confidence: float | None = None

    @property
    def has_moved(self) -> bool:
        return isinstance(self.source, Item) and self.source.status is ItemStatus.DONE

    def folder(self, side: PlanSide) -> str:
        """Return the folder of the row on a side, empty for the planned folder itself."""
        if side == "target":
            return self.target
        goes = isinstance(self.source, Item) and self.source.status in (ItemStatus.PENDING, ItemStatus.DONE)
        return self.target if side == "after" and goes else self.path.rpartition("/")[0]


def build_rows(view: PlanView, args: PlanRows) -> PlanRowsAnswer:
    """Return a page of a plan's rows with everything that is shown beside them."""
    notes, plan = view.notes, view.plan
    moves = [*_move_entries(view)]
    uncertain = [*_uncertain_entries(notes.uncertain)]
    left_alone = [*_left_alone_entries(view, moves)]
    skipped = [_PlanEntry(entry, replace_lone_surrogates(entry.relative), "") for entry in notes.skipped]
    every = [*moves, *uncertain, *left_alone, *skipped]
    entries = {
        "moves": moves,
        "below": [entry for entry in moves if (entry.confidence or 0.0) < _LOW_CONFIDENCE],
        "uncertain": uncertain,
        "left_alone": left_alone,
        "skipped": skipped,
        "stayed": [entry for entry in moves if isinstance(entry.source, Item) and entry.source.status in _STAYED],
        "all": every,
        "by_folder": [],
    }
    counts = {name: len(entries[name]) for name in ("moves", "below", "left_alone", "stayed")}
    counts |= {"uncertain": notes.uncertain_count, "skipped": sum(notes.measures.skipped.values())}
    selected = [entry for entry in entries[args.view] if _is_selected(entry, args)]
    new_folders = {destination.folder for destination in notes.destinations if destination.is_new}
    folders = _folder_totals(moves if args.side == "target" else every, args.side, new_folders)
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
        rows=[_build_row(view, entry, new_folders) for entry in selected[args.offset : args.offset + args.limit]],
        total=len(selected),
        counts=counts,
        totals=count_moves(view.moves),
        folders=folders[:_MAX_FOLDERS],
        folders_total=len(folders),
        shelves=[replace_lone_surrogates(folder.folder) for folder in notes.destinations[:_MAX_FOLDERS]],
        skipped={reason.value: count for reason, count in notes.measures.skipped.items()},
        measures=describe_measures(notes.measures),
        remark=notes.remark or None,
    )


def _is_selected(entry: _PlanEntry, args: PlanRows) -> bool:
    if args.folder is not None and entry.folder(args.side) != args.folder.strip("/"):
        return False
    part = args.filter.casefold()
    return not part or part in entry.path.casefold() or part in entry.target.casefold()


def _move_entries(view: PlanView) -> Iterator[_PlanEntry]:
    for item in view.moves:
        target = relative_path(parent_of(item.dest_path or ""), view.folder)
        yield _PlanEntry(item, relative_path(item.src_path, view.folder), target, item.confidence)


def _uncertain_entries(files: Iterable[UncertainFile]) -> Iterator[_PlanEntry]:
    for file in files:
        is_guess = file.confidence >= MIN_GUESS
        target = replace_lone_surrogates(file.category) if is_guess else ""
        yield _PlanEntry(file, replace_lone_surrogates(file.relative), target, file.confidence if is_guess else None)


def _left_alone_entries(view: PlanView, moves: Sequence[_PlanEntry]) -> Iterator[_PlanEntry]:
    """Yield the files that somebody decided to leave where they are."""
    in_plan = {entry.path for entry in moves} | {file.relative for file in view.notes.uncertain}
    for relative, folder in view.notes.decisions.items():
        if folder is None and relative not in in_plan:
            yield _PlanEntry(relative, replace_lone_surrogates(relative), "")


def _build_row(view: PlanView, entry: _PlanEntry, new_folders: set[str]) -> PlanRow:
    source, decisions = entry.source, view.notes.decisions
    row = PlanRow(
        path=entry.path,
        address=entry.path,
        name=entry.path.rpartition("/")[2],
        folder=entry.target,
        confidence=entry.confidence,
        reason="",
        status="LEFT_ALONE",
    )
    if isinstance(source, Item):
        row.address = _address(view, source.src_path, entry.path)
        row.item_id, row.status = source.position, source.status.value
        row.destination = relative_path(source.dest_path or "", view.folder)
        row.reason = replace_lone_surrogates(source.reasoning or "")
        row.error = None if source.error_msg is None else replace_lone_surrogates(source.error_msg)
        row.is_new_folder, row.was_corrected = entry.target in new_folders, entry.path in decisions
    elif isinstance(source, UncertainFile):
        row.address = _address(view, f"{view.folder}/{source.relative}", entry.path)
        row.reason, row.status = replace_lone_surrogates(source.reasoning), "UNCERTAIN"
        row.was_corrected = source.relative in decisions
    elif isinstance(source, SkippedFile):
        row.address = _address(view, f"{view.folder}/{source.relative}", entry.path)
        row.reason, row.status = skip_reason(source), "NOT_SCANNED"
    else:
        row.address = _address(view, f"{view.folder}/{source}", entry.path)
        row.reason, row.was_corrected = "It was decided that it stays.", True
    return row


def _address(view: PlanView, absolute: str, relative: str) -> str:
    """Return the path from the planned folder, or a `file:` URI where a name in it is not UTF-8."""
    address = address_of(absolute)
    return address if address.startswith("file:") else relative


def _folder_totals(entries: Sequence[_PlanEntry], side: PlanSide, new_folders: set[str]) -> list[PlanFolder]:
    counts: Counter[str] = Counter()
    done: Counter[str] = Counter()
    sums: dict[str, float] = {}
    for entry in entries:
        folder = entry.folder(side)
        counts[folder] += 1
        done[folder] += entry.has_moved
        sums[folder] = sums.get(folder, 0.0) + (entry.confidence or 0.0)
    totals = [
        PlanFolder(
            folder=folder,
            files=count,
            confidence=round(sums[folder] / count, 3),
            is_new=folder in new_folders,
            done=done[folder],
        )
        for folder, count in counts.items()
    ]
    return sorted(totals, key=lambda total: (-total.files, total.folder))
