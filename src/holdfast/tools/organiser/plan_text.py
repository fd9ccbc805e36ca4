"""Renders the answers of the organiser's tools as text, with everything that an agent needs for its next call."""

from collections.abc import Iterator, Mapping

from holdfast.changes.model import PlanStatus
from holdfast.changes.names import parent_of
from holdfast.organiser.service import PlanView
from holdfast.text.display import display_name, escape_invisible, format_percent
from holdfast.tools.organiser.answers import relative_path
from holdfast.tools.organiser.shapes import (
    ExplainFileAnswer,
    PlanAnswer,
    PlanLineAnswer,
    PlannedMove,
    PlanPage,
    PlanPart,
    PlanProgressAnswer,
    PlanSummaryAnswer,
    UncertainFileAnswer,
    UndoReport,
)

_STATUS_WORDS = {"DONE": "moved", "SKIPPED": "skipped", "ERROR": "failed", "UNDONE": "undone"}
_PART_TITLES: dict[PlanPart, str] = {
    "moves": "Moves",
    "uncertain": "Uncertain files, which stay until they are decided on",
    "skipped": "Skipped entries",
}


def summary_text(plan: PlanSummaryAnswer) -> str:
    """Return the summary of a plan as text, with its first uncertain files."""
    lines = [_head_line(plan), *_folder_lines(plan)]
    if plan.uncertain:
        count = plan.totals["uncertain"]
        limit_note = f", the first {len(plan.uncertain)}" if count > len(plan.uncertain) else ""
        lines += [f"Uncertain files, which stay until they are decided on ({count}{limit_note}):"]
        lines += [_uncertain_line(file) for file in plan.uncertain]
    return "\n".join([*lines, *_closing_lines(plan)])


def page_text(page: PlanPage, part: PlanPart, *, is_first: bool) -> str:
    """Return a page of one part of a plan as text: its rows, and how to get the rest."""
    rows = {
        "moves": [_move_line(move) for move in page.moves or ()],
        "uncertain": [_uncertain_line(file) for file in page.uncertain],
        "skipped": [f"{display_name(entry.path)}: {escape_invisible(entry.why)}" for entry in page.left_alone or ()],
    }[part]
    total = {
        "moves": page.totals["moves"],
        "uncertain": page.totals["uncertain"],
        "skipped": sum(page.skipped.values()),
    }
    lines = [_head_line(page), *(_folder_lines(page) if is_first else ())]
    lines.append(f"{_PART_TITLES[part]} ({len(rows)} of {total[part]} here):")
    lines += rows or ["None."]
    if page.next_cursor is not None:
        call = f'plan_id="{page.plan_id}", show="{part}", cursor="{page.next_cursor}"'
        lines.append(f"[More: call get_plan with {call}]")
    return "\n".join([*lines, *_closing_lines(page)])


def renamed_folder_lines(view: PlanView, decisions: Mapping[str, str | None]) -> Iterator[str]:
    """Yield a line for each chosen folder that is spelled otherwise: to be valid everywhere, or as the folder that exists."""
    used = {item.src_path: relative_path(parent_of(item.dest_path or ""), view.folder) for item in view.moves}
    for path, folder in decisions.items():
        name = used.get(f"{view.folder.rstrip('/')}/{relative_path(path, view.folder).removeprefix('./')}")
        if folder and name and name != folder.strip("/"):
            yield f"[The folder is called {display_name(name)}, not {display_name(folder)}.]"


def line_text(line: PlanAnswer) -> str:
    """Return a plan of a list as one line."""
    if isinstance(line, PlanProgressAnswer):
        return f"{line.plan_id} {line.status} {display_name(line.folder)}: {line.message}"
    if not isinstance(line, PlanLineAnswer):
        return f"{line.plan_id} {line.status}"
    executed_text = "" if line.executed_at is None else f", executed {line.executed_at}"
    moves = _progress_text(line.moves)
    return f"{line.plan_id} {line.status} {display_name(line.folder)}: {moves}, made {line.created_at}{executed_text}"


def explanation_text(answer: ExplainFileAnswer) -> str:
    """Return why a file is where it is as text."""
    lines = [f"It is at {display_name(answer.path)}.", escape_invisible(answer.why)]
    if answer.waiting_plan is not None:
        lines.append(f"Plan {answer.waiting_plan} would move it to {display_name(answer.waiting_to or '')}.")
    if answer.category:
        sure = "" if answer.confidence is None else f" ({format_percent(answer.confidence)} sure)"
        label = "Its folder by content" if answer.moves or answer.waiting_plan else "Best guess"
        lines.append(f"{label}: {display_name(answer.category)}{sure}.")
    if answer.nearest:
        lines.append(f"Nearest files there: {', '.join(map(display_name, answer.nearest))}.")
    if answer.terms:
        lines.append(f"Words that decided: {', '.join(map(display_name, answer.terms))}.")
    if answer.rule:
        lines.append(f"Rule that decided: {answer.rule}.")
    for move in answer.moves:
        where = f"{display_name(move.path)} -> {display_name(move.to)}"
        lines.append(f"{move.at} {move.kind} {where} (change {move.plan_id})")
    return "\n".join(lines)


def _head_line(plan: PlanSummaryAnswer) -> str:
    executed_text = "" if plan.executed_at is None else f", executed {plan.executed_at}"
    return f"Plan {plan.plan_id} for {display_name(plan.folder)}: {plan.status}, made {plan.created_at}{executed_text}"


def _folder_lines(plan: PlanSummaryAnswer) -> Iterator[str]:
    """Yield a line for each folder that files go to, and the other folders that they may be sorted into."""
    for total in plan.folders:
        new = " (new)" if total.is_new else ""
        yield f"{total.files:>6}  {display_name(total.folder)}/{new}  {format_percent(total.confidence)}"
    others = sorted(set(plan.shelves) - {total.folder for total in plan.folders})
    if others and plan.status == PlanStatus.CREATED:
        yield f"Other folders to sort into: {', '.join(map(display_name, others))}"


def _closing_lines(plan: PlanSummaryAnswer) -> Iterator[str]:
    reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(plan.skipped.items()))
    skipped = f"{sum(plan.skipped.values())} skipped" + (f" ({reasons})" if reasons else "")
    yield f"{_progress_text(plan.totals)}, {plan.totals['uncertain']} uncertain, {skipped}."
    if plan.remark:
        yield plan.remark
    if plan.next:
        yield plan.next


def _move_line(move: PlannedMove) -> str:
    state = "" if move.status == "PENDING" else f" {move.status}"
    error = "" if move.error is None else f" ({escape_invisible(move.error)})"
    sure = f"{format_percent(move.confidence)} sure: {escape_invisible(move.why)}"
    return f"{display_name(move.path)} -> {display_name(move.to)}{state}{error}  {sure}"


def _uncertain_line(file: UncertainFileAnswer) -> str:
    sure = f", {format_percent(file.confidence)} sure" if file.confidence is not None else ""
    guess = f"best guess {display_name(file.folder)}/{sure}" if file.folder else "no guess"
    text = "" if file.excerpt is None else f"\n    It begins: {escape_invisible(' '.join(file.excerpt.split()))}"
    return f"{display_name(file.path)}: {guess}: {escape_invisible(file.why)}{text}"


def _progress_text(totals: Mapping[str, int]) -> str:
    """Return how many moves are done, failed or undone, and how many are pending."""
    counts = [f"{totals[status]} {word}" for status, word in _STATUS_WORDS.items() if totals.get(status)]
    pending = [f"{totals.get('PENDING', 0)} to move"] if totals.get("PENDING") or not counts else []
    return ", ".join([*counts, *pending])


def stayed_lines(undone: UndoReport) -> Iterator[str]:
    """Yield a line for each listed file that stayed, and how to go on."""
    if not undone.stayed:
        return
    yield f"{undone.stayed} stayed where {'it is' if undone.stayed == 1 else 'they are'}:"
    for entry in undone.problems:
        yield f"{display_name(entry.path)}: {escape_invisible(entry.why)}"
    if undone.stayed > len(undone.problems):
        yield f"and {undone.stayed - len(undone.problems)} more"
    yield "After you have removed what is in the way, undo it again."
