"""Formats plans for a terminal: moves by folder, uncertain files, skipped entries, measures, next commands."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from holdfast.cli.output import local_time, quantity, short_path, table_row, wrap
from holdfast.text.display import (
    cut_to_width,
    display_name,
    display_width,
    escape_invisible,
    fit_to_width,
    format_percent,
    format_size,
)

_MAX_NAMES = 10
_MAX_UNCERTAIN = 20
_MAX_SKIPPED = 100
_PLURALS = {
    "virtual environment": "virtual environments",
    "application or library bundle": "application or library bundles",
    "cloud placeholder": "cloud placeholders",
    "download in progress": "downloads in progress",
    "symbolic link": "symbolic links",
    "not a regular file": "that are not regular files",
    "folder kept whole": "folders kept whole",
}
_MAX_CHANGED = 50
_MAX_FOLDER_CHARS = 30
_MIN_NAME_CHARS = 24
"""Columns that the name of an uncertain file gets, however long the reasons beside the names are."""
_STAYS = "stays"
_ITEM_WORDS = {"ERROR": "not moved", "SKIPPED": "skipped"}
_KIND_WORDS = {"undo": "moved back", "organise": "moved", "move": "moved"}
_COLOURS = {
    "CREATED": "yellow",
    "APPROVED": "cyan",
    "RUNNING": "cyan",
    "EXECUTED": "green",
    "FAILED": "red",
    "SCANNING": "yellow",
    "UNDONE": "magenta",
    "CANCELLED": "white",
}


def plan_lines(plan: dict[str, Any], moves: Sequence[dict[str, Any]], *, every: bool) -> Iterator[str]:
    """Yield a plan: a line for each folder or for every file, then uncertain files, skipped entries and measures."""
    width = shutil.get_terminal_size().columns
    yield f"{click.style(short_path(plan['folder']), bold=True)}  {status_text(plan['status'])}  plan {plan['plan_id'][:8]}"
    yield _headline(plan)
    if moves:
        yield ""
    by_folder: dict[str, list[dict[str, Any]]] = {}
    for move in moves:
        by_folder.setdefault(_target_folder(move), []).append(move)
    if every:
        for folder in plan["folders"]:
            yield from _folder_lines(folder, by_folder.get(folder["folder"], []))
    else:
        yield from _summary_lines(plan["folders"], by_folder, width)
    yield from _uncertain_lines(plan, width, every=every)
    if plan["skipped"]:
        reasons = ", ".join(_skip_text(reason, count) for reason, count in sorted(plan["skipped"].items()))
        yield from wrap(f"Skipped: {reasons}", width)
        if every:
            yield from _skipped_lines(plan)
    yield from (click.style(line, dim=True) for line in wrap(_measure_text(plan["measures"]), width))
    if plan.get("remark"):
        yield from wrap(escape_invisible(plan["remark"]), width)


def correction_lines(before: dict[str, Any], after: dict[str, Any], file: str) -> Iterator[str]:
    """Yield where a file that was decided on goes, every other file that goes elsewhere than before, and the new totals."""
    old, new = _folders_by_file(before), _folders_by_file(after)
    width = shutil.get_terminal_size().columns
    yield from wrap(f"{display_name(file)} {f'goes to {new[file]}' if file in new else 'stays where it is'}.", width)
    others = [path for path in {**old, **new} if path != file and old.get(path) != new.get(path)]
    if others:
        change = "changes its place" if len(others) == 1 else "change their places"
        yield f"{quantity(len(others), 'other file')} {change}:"
    else:
        yield "No other file changes its place."
    for path in others[:_MAX_CHANGED]:
        yield f"  {display_name(path)}: {old.get(path, _STAYS)} → {new.get(path, _STAYS)}"
    if len(others) > _MAX_CHANGED:
        yield f"  and {len(others) - _MAX_CHANGED:,} more"
    yield _headline(after)


def _folders_by_file(plan: dict[str, Any]) -> dict[str, str]:
    return {move["path"]: f"{display_name(_target_folder(move))}/" for move in plan["moves"]}


def next_lines(plan: dict[str, Any], code: str = "", *, every: bool) -> Iterator[str]:
    """Yield the commands to continue with; `code` is the approval code of the plan when all of it was shown."""
    name, status = plan["plan_id"][:8], plan["status"]
    steps = {
        "CREATED": [("show", "--all", "list every file"), ("approve", "", "approve it; then execute it")],
        "APPROVED": [("execute", "", "move the files")],
        "RUNNING": [("execute", "", "continue it")],
        "FAILED": [("execute", "", "try again"), ("undo", "", "undo it")],
        "EXECUTED": [("undo", "", "undo it")],
    }.get(status if plan["totals"]["moves"] else "", [])
    if status == "RUNNING" and plan["totals"].get("DONE"):
        steps = [("execute", "", "continue it"), ("undo", "", "undo it")]
    if every:
        steps = [step for step in steps if step[0] != "show"]
    commands = [(f"holdfast organise {verb} {name} {flag}".rstrip(), purpose) for verb, flag, purpose in steps]
    width = max((len(command) for command, _ in commands), default=0)
    for index, (command, purpose) in enumerate(commands):
        yield f"{'      ' if index else 'Next: '}{click.style(f'{command:<{width}}', fg='cyan')}  {purpose}"
    if status == "CREATED" and commands and code:
        command = click.style(f"holdfast organise approve {name} {code} --yes", fg="cyan")
        yield f"To approve exactly this: {command}"


def status_text(status: str) -> str:
    """Return a status in its colour."""
    return click.style(status, fg=_COLOURS.get(status))


def list_lines(plans: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield each plan of a list: its id, status, time, how many files it moves or moved, and its folder."""
    status_width = max((len(plan["status"]) for plan in plans), default=0)
    moved_width = max((len(_moved_text(plan)) for plan in plans), default=0)
    for plan in plans:
        padding = " " * (status_width - len(plan["status"]))
        head = f"{plan['plan_id'][:8]}  {status_text(plan['status'])}{padding}  {local_time(plan['created_at'])}"
        yield table_row(f"{head}  {_moved_text(plan):>{moved_width}}", short_path(plan["folder"]))


def explained_lines(answer: dict[str, Any]) -> Iterator[str]:
    """Yield why a file is where it is."""
    width = shutil.get_terminal_size().columns
    yield click.style(display_name(answer["path"]), bold=True)
    yield from wrap(escape_invisible(answer["why"]), width)
    if answer.get("category"):
        label = "Belongs to" if answer["moves"] or answer.get("waiting_to") else "Best guess"
        confidence = f", {format_percent(answer['confidence'])} sure" if answer.get("confidence") is not None else ""
        yield f"{label}: {display_name(answer['category'])}{confidence}"
    if answer.get("nearest"):
        yield from wrap("Nearest files there: " + ", ".join(map(display_name, answer["nearest"])), width)
    if answer.get("terms"):
        yield from wrap("Words: " + ", ".join(map(display_name, answer["terms"])), width)
    for move in answer["moves"]:
        source, target = display_name(move["path"]), display_name(move["to"])
        plan = "" if move["kind"] == "undo" else f"  (plan {move['plan_id'][:8]})"
        at, word = local_time(move["at"]), _KIND_WORDS.get(move["kind"], move["kind"])
        yield from wrap(f"{at}  {word}  {source} → {target}{plan}", width)
    if answer.get("waiting_to"):
        waits = f"Waits to be moved to {display_name(answer['waiting_to'])} (plan {answer['waiting_plan'][:8]})"
        yield from wrap(waits, width)


def executed_lines(result: dict[str, Any]) -> Iterator[str]:
    """Yield the result of executing a plan, and the commands to continue with."""
    totals = result["totals"]
    yield f"{_outcome_text(result['status'], totals)}. Files moved: {totals.get('DONE', 0):,} of {totals['moves']:,}."
    for move in result["problems"]:
        yield f"  {display_name(move['path'])}: {_ITEM_WORDS[move['status']]}, {escape_invisible(move.get('error') or '')}"
    if result["status"] == "FAILED":
        yield click.style(f"To try the others again: holdfast organise execute {result['plan_id'][:8]}", fg="cyan")
    if totals.get("DONE"):
        yield click.style(f"To undo it: holdfast organise undo {result['plan_id'][:8]}", fg="cyan")


def undone_lines(result: dict[str, Any]) -> Iterator[str]:
    """Yield the result of undoing a plan: how many files are back, and which stayed, with the reason."""
    totals, problems = result["totals"], result["problems"]
    status = f"{status_text('UNDONE')}. " if result["status"] == "UNDONE" else ""
    note = "" if result.get("change_id") else " The plan was already undone."
    yield f"{status}Files moved back: {totals.get('UNDONE', 0):,} of {totals['moves']:,}.{note}"
    if not result["stayed"]:
        return
    yield f"{quantity(result['stayed'], 'file')} stayed:"
    for entry in problems:
        yield f"  {display_name(entry['path'])}: {escape_invisible(entry['why'])}"
    if len(problems) < result["stayed"]:
        yield f"  and {result['stayed'] - len(problems):,} more"
    yield click.style(
        f"After you have removed what is in the way: holdfast organise undo {result['plan_id'][:8]}", fg="cyan"
    )


def _moved_text(plan: dict[str, Any]) -> str:
    """Return how many files a plan moves and, once it was begun, how many of them have moved or came back."""
    moves = plan.get("moves", {})
    total = sum(moves.values())
    if plan["status"] == "UNDONE":
        return f"{moves.get('UNDONE', 0):,} of {total:,} moved back"
    if moves.get("DONE") or plan["status"] in ("RUNNING", "EXECUTED", "FAILED"):
        return f"{moves.get('DONE', 0):,} of {total:,} moved"
    return quantity(total, "file")


def _outcome_text(status: str, totals: Mapping[str, int]) -> str:
    """Return how an execution ended; a plan of which some moves failed is not called a failure as a whole."""
    if status == "FAILED" and totals.get("DONE"):
        return click.style("INCOMPLETE", fg="yellow")
    return status_text(status)


def _headline(plan: dict[str, Any]) -> str:
    """Return the plan in one sentence."""
    totals, folders, status = plan["totals"], plan["folders"], plan["status"]
    if not totals["moves"]:
        return "Nothing to move."
    new = sum(1 for folder in folders if folder.get("is_new"))
    where = quantity(len(folders), "new folder" if new == len(folders) else "folder")
    new_note = f", {new} of them new" if 0 < new < len(folders) else ""
    files = quantity(totals["moves"], "file")
    done_count, undone_count = totals.get("DONE", 0), totals.get("UNDONE", 0)
    if status == "UNDONE":
        return f"{undone_count:,} of {files} came back from {where}."
    if status in ("EXECUTED", "FAILED") or done_count or undone_count:
        came_back = f" {undone_count:,} came back." if undone_count else ""
        stopped = " It was interrupted before the end." if status == "RUNNING" else ""
        return f"{done_count:,} of {files} moved to {where}{new_note}.{came_back}{stopped}"
    return f"{files} {'will' if status in ('APPROVED', 'RUNNING') else 'would'} move to {where}{new_note}. Nothing has moved yet."


def _summary_lines(
    folders: Sequence[dict[str, Any]], moves: Mapping[str, Sequence[dict[str, Any]]], width: int
) -> Iterator[str]:
    """Yield a line for each folder: how many files it gets, whether it is new, the confidence, and the first names."""
    names = [f"{display_name(folder['folder'])}/" for folder in folders]
    name_width = min(max(map(display_width, names), default=0), _MAX_FOLDER_CHARS)
    for folder, name in zip(folders, names, strict=True):
        new = click.style("new", fg="green") if folder.get("is_new") else "   "
        head = f"{folder['files']:>5,}  {click.style(fit_to_width(name, name_width), fg='blue', bold=True)} {new} "
        room = width - name_width - 20
        files = ", ".join(_move_name(move) for move in moves.get(folder["folder"], ())[:_MAX_NAMES])
        yield f"{head}{_confidence_text(folder['confidence'])}  {click.style(cut_to_width(files, room), dim=True)}"
        for move in moves.get(folder["folder"], ()):
            if problem := _problem_text(move):
                yield f"{'':7}{_move_name(move)}{problem}"


def _folder_lines(folder: dict[str, Any], moves: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a folder with every file that goes there."""
    new = click.style(" new", fg="green") if folder.get("is_new") else ""
    name = click.style(f"{display_name(folder['folder'])}/", fg="blue", bold=True)
    yield f"{name}{new}  {quantity(folder['files'], 'file')}  {_confidence_text(folder['confidence'])}"
    for index, move in enumerate(moves):
        corner = "└" if index == len(moves) - 1 else "├"
        yield f"  {corner} {_move_name(move)}  {_confidence_text(move['confidence'])}{_problem_text(move)}"


def _uncertain_lines(plan: dict[str, Any], width: int, *, every: bool) -> Iterator[str]:
    count = plan["totals"]["uncertain"]
    if not count:
        return
    yield ""
    stay = "stays where it is" if count == 1 else "stay where they are"
    yield click.style(f"Needs a look: {quantity(count, 'uncertain file')} that {stay}", bold=True)
    files = plan["uncertain"] if every else plan["uncertain"][:_MAX_UNCERTAIN]
    names, guesses = [display_name(file["path"]) for file in files], [_guess_text(file) for file in files]
    room = width - max(map(display_width, guesses), default=0) - 4
    name_width = min(max(map(display_width, names), default=0), max(min(_MIN_NAME_CHARS, width // 2), room))
    for file, name, guess in zip(files, names, guesses, strict=True):
        if every:
            why = f"  {escape_invisible(file['why'])}" if file["folder"] else ""
            yield f"  {name}"
            yield from (click.style(f"      {line}", dim=True) for line in wrap(guess + why, width - 6))
        else:
            cut = cut_to_width(guess, width - name_width - 4)
            yield f"  {fit_to_width(name, name_width)}  {click.style(cut, dim=True)}"
    if len(files) < count:
        yield f"  and {count - len(files):,} more"
    if plan["status"] == "CREATED":
        command = click.style(f"holdfast organise move {plan['plan_id'][:8]} FILE FOLDER", fg="cyan")
        yield f"  To decide on a file: {command}"
    yield ""


def _guess_text(file: dict[str, Any]) -> str:
    """Return the folder that an uncertain file is most like, or why there is none."""
    if file["folder"]:
        return f"{display_name(file['folder'])}? {format_percent(file['confidence'])}"
    return escape_invisible(file["why"])


def _skip_text(reason: str, count: int) -> str:
    """Return how many entries were skipped for a reason, in the plural where the reason is a noun that counts them."""
    return f"{count:,} {escape_invisible(_PLURALS.get(reason, reason) if count != 1 else reason)}"


def _skipped_lines(plan: dict[str, Any]) -> Iterator[str]:
    """Yield the first of the skipped entries with their reasons; those that cannot be read come before the others."""
    entries = plan["left_alone"][:_MAX_SKIPPED]
    names = [display_name(entry["path"]) for entry in entries]
    name_width = min(max(map(display_width, names), default=0), _MAX_FOLDER_CHARS)
    for entry, name in zip(entries, names, strict=True):
        padding = " " * (name_width - display_width(name))
        yield f"  {name}{padding}  {click.style(escape_invisible(entry['why']), dim=True)}"
    if len(entries) < (count := sum(plan["skipped"].values())):
        yield f"  and {count - len(entries):,} more"


def _measure_text(measures: dict[str, Any]) -> str:
    cached, saved = measures["cache_hit_rate"], measures["tokens_saved"]
    parts = [f"{quantity(measures['files'], 'file')} scanned", f"{measures['do_nothing_ratio']:.0%} stay"]
    parts += [f"{cached:.0%} known before"] if cached >= 0.01 else []
    parts += [f"{format_size(4 * saved)} did not have to be read"] if saved else []
    return ", ".join(parts)


def _target_folder(move: dict[str, Any]) -> str:
    return str(move["to"]).rpartition("/")[0]


def _move_name(move: dict[str, Any]) -> str:
    old, new = str(move["path"]), str(move["to"]).rpartition("/")[2]
    renamed = "" if old.rpartition("/")[2] == new else f" as {display_name(new)}"
    return f"{display_name(old)}{renamed}"


def _problem_text(move: dict[str, Any]) -> str:
    if move["status"] in ("PENDING", "DONE"):
        return ""
    colour = "red" if move["status"] == "ERROR" else "magenta"
    return "  " + click.style(f"{move['status']}: {escape_invisible(move.get('error') or '')}".rstrip(": "), fg=colour)


def _confidence_text(confidence: float) -> str:
    return click.style(f"{format_percent(confidence):>4}", fg="green" if confidence >= 0.8 else "yellow")
