"""A plan as text for a terminal: what goes where at a glance, what needs a look, what was left alone, what to do next."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from holdfast.text.display import display_name, escape_invisible

_MAX_NAMES = 10
_MAX_LOOK = 20
_MAX_UNREADABLE = 100
_UNREADABLE = "cannot be read"
_MAX_FOLDER_CHARS = 30
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
    """Give a plan: a line for each folder, or every file; doubts, skips, the measures."""
    width = shutil.get_terminal_size().columns
    yield f"{click.style(display_name(plan['folder']), bold=True)}  {status_of(plan['status'])}  plan {plan['plan_id'][:8]}"
    yield _headline(plan)
    yield ""
    by_folder: dict[str, list[dict[str, Any]]] = {}
    for move in moves:
        by_folder.setdefault(_folder_of(move), []).append(move)
    if every:
        for folder in plan["folders"]:
            yield from _folder_lines(folder, by_folder.get(folder["folder"], []))
    else:
        yield from _glance_lines(plan["folders"], by_folder, width)
    yield from _look_lines(plan, width, every=every)
    if plan["skipped"]:
        told = ", ".join(f"{count} {escape_invisible(reason)}" for reason, count in sorted(plan["skipped"].items()))
        yield f"{click.style('Left alone: ', bold=True)}{told}"
        if every:
            yield from _unreadable_lines(plan)
    yield _measure_line(plan["measures"])
    if plan.get("remark"):
        yield escape_invisible(plan["remark"])


def next_lines(plan: dict[str, Any], *, every: bool) -> Iterator[str]:
    """Give the commands to go on with."""
    name, status = plan["plan_id"][:8], plan["status"]
    steps = {
        "CREATED": [("show", "--all", "every file and its place"), ("approve", "", "say yes; then execute it")],
        "APPROVED": [("execute", "", "move the files")],
        "RUNNING": [("execute", "", "go on with it")],
        "FAILED": [("execute", "", "try again"), ("undo", "", "take it back")],
        "EXECUTED": [("undo", "", "take it back")],
    }.get(status if plan["totals"]["moves"] else "", [])
    if status == "RUNNING" and plan["totals"].get("DONE"):
        steps = [("execute", "", "go on with it"), ("undo", "", "take it back")]
    if every:
        steps = [step for step in steps if step[0] != "show"]
    commands = [(f"holdfast organise {verb} {name} {flag}".rstrip(), why) for verb, flag, why in steps]
    wide = max((len(command) for command, _ in commands), default=0)
    for number, (command, why) in enumerate(commands):
        yield f"{'Next: ' if not number else '      '}{click.style(f'{command:<{wide}}', fg='cyan')}  {why}"


def status_of(status: str) -> str:
    """Return a status in its colour."""
    return click.style(status, fg=_COLOURS.get(status))


def list_line(plan: dict[str, Any]) -> str:
    """Return a plan as one line of a list."""
    files = counted(sum(plan.get("moves", {}).values()), "file")
    name, at = plan["plan_id"][:8], plan["created_at"][:16]
    return f"{name}  {status_of(plan['status']):<18}  {at}  {files:>13}  {display_name(plan['folder'])}"


def explained_lines(found: dict[str, Any]) -> Iterator[str]:
    """Give why a file is where it is."""
    yield click.style(display_name(found["path"]), bold=True)
    yield escape_invisible(found["why"])
    if found.get("category"):
        sure = f", {found['confidence']:.0%} sure" if found.get("confidence") is not None else ""
        yield f"Belongs to: {display_name(found['category'])}{sure}"
    if found.get("nearest"):
        yield "Nearest files there: " + ", ".join(map(display_name, found["nearest"]))
    if found.get("terms"):
        yield "Words: " + ", ".join(map(display_name, found["terms"]))
    for move in found["moves"]:
        source, target = display_name(move["path"]), display_name(move["to"])
        yield f"{move['at']}  {move['kind']}  {source} → {target}  (plan {move['plan_id'][:8]})"
    if found.get("waiting_to"):
        yield f"Waits to go to {display_name(found['waiting_to'])} (plan {found['waiting_plan'][:8]})"


def executed_lines(done: dict[str, Any]) -> Iterator[str]:
    """Give what came of carrying a plan out, and the commands to go on with."""
    totals = done["totals"]
    yield f"{status_of(done['status'])}: {totals.get('DONE', 0):,} of {totals['moves']:,} files are where they belong."
    for one in done["problems"]:
        yield f"  {display_name(one['path'])}: {one['status']}, {escape_invisible(one.get('error') or '')}"
    if done["status"] == "FAILED":
        yield click.style(f"To try again what failed: holdfast organise execute {done['plan_id'][:8]}", fg="cyan")
    if totals.get("DONE"):
        yield click.style(f"To take it back: holdfast organise undo {done['plan_id'][:8]}", fg="cyan")


def undone_lines(done: dict[str, Any]) -> Iterator[str]:
    """Give what came of taking a plan back: how many files are back, and which stayed, with the reason."""
    totals, problems = done["totals"], done["problems"]
    status = f"{status_of('UNDONE')}: " if done["status"] == "UNDONE" else ""
    before = "" if done.get("change_id") else " They were before."
    yield f"{status}{totals.get('UNDONE', 0)} of {totals['moves']} files are back.{before}"
    if not done["stayed"]:
        return
    yield f"{counted(done['stayed'], 'file')} stayed:"
    for one in problems:
        yield f"  {display_name(one['path'])}: {escape_invisible(one['why'])}"
    if len(problems) < done["stayed"]:
        yield f"  and {done['stayed'] - len(problems)} more"
    yield click.style(f"Once the way is free: holdfast organise undo {done['plan_id'][:8]}", fg="cyan")


def counted(count: int, noun: str) -> str:
    """Return how many there are, in words."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _headline(plan: dict[str, Any]) -> str:
    """Return the plan in one sentence."""
    totals, folders, status = plan["totals"], plan["folders"], plan["status"]
    if not totals["moves"]:
        return "Nothing to move."
    new = sum(1 for folder in folders if folder.get("is_new"))
    where = counted(len(folders), "new folder" if new == len(folders) else "folder")
    made = f", {new} of them new" if 0 < new < len(folders) else ""
    files = counted(totals["moves"], "file")
    done, back = totals.get("DONE", 0), totals.get("UNDONE", 0)
    if status == "UNDONE":
        return f"{back:,} of {files} came back from {where}."
    if status in ("EXECUTED", "FAILED") or done or back:
        came_back = f" {back:,} came back." if back else ""
        stopped = " It was interrupted before the end." if status == "RUNNING" else ""
        return f"{done:,} of {files} moved to {where}{made}.{came_back}{stopped}"
    return f"{files} {'will' if status in ('APPROVED', 'RUNNING') else 'would'} move to {where}{made}. Nothing has moved yet."


def _glance_lines(
    folders: Sequence[dict[str, Any]], moves: Mapping[str, Sequence[dict[str, Any]]], width: int
) -> Iterator[str]:
    """Give a line for each folder: how many files it gets, whether it is new, how sure that is, and the first names."""
    names = [f"{display_name(folder['folder'])}/" for folder in folders]
    wide = min(max(map(len, names), default=0), _MAX_FOLDER_CHARS)
    for folder, name in zip(folders, names, strict=True):
        new = click.style("new", fg="green") if folder.get("is_new") else "   "
        head = f"{folder['files']:>5}  {click.style(f'{_cut(name, wide):<{wide}}', fg='blue', bold=True)} {new} "
        room = width - wide - 20
        files = ", ".join(_name(move) for move in moves.get(folder["folder"], ())[:_MAX_NAMES])
        yield f"{head}{_sure(folder['confidence'])}  {click.style(_cut(files, room), dim=True)}"
        for move in moves.get(folder["folder"], ()):
            if trouble := _trouble(move):
                yield f"{'':7}{_name(move)}{trouble}"


def _folder_lines(folder: dict[str, Any], moves: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Give a folder with every file that goes there."""
    new = click.style(" new", fg="green") if folder.get("is_new") else ""
    name = click.style(f"{display_name(folder['folder'])}/", fg="blue", bold=True)
    yield f"{name}{new}  {counted(folder['files'], 'file')}  {_sure(folder['confidence'])}"
    for number, move in enumerate(moves):
        corner = "└" if number == len(moves) - 1 else "├"
        yield f"  {corner} {_name(move)}  {_sure(move['confidence'])}{_trouble(move)}"


def _look_lines(plan: dict[str, Any], width: int, *, every: bool) -> Iterator[str]:
    count = plan["totals"]["uncertain"]
    if not count:
        return
    yield ""
    stay = "stays where it is" if count == 1 else "stay where they are"
    yield click.style(f"Needs a look: {counted(count, 'file')} that {stay}", bold=True)
    listed = plan["uncertain"] if every else plan["uncertain"][:_MAX_LOOK]
    wide = min(max((len(display_name(one["path"])) for one in listed), default=0), width // 2)
    for one in listed:
        guess = (
            f"{display_name(one['folder'])}? {int(100 * one['confidence'])}%"
            if one["folder"]
            else escape_invisible(one["why"])
        )
        if every:
            why = f"  {escape_invisible(one['why'])}" if one["folder"] else ""
            yield f"  {display_name(one['path']):<{wide}}  {click.style(guess + why, dim=True)}"
        else:
            yield f"  {_cut(display_name(one['path']), wide):<{wide}}  {click.style(_cut(guess, width - wide - 4), dim=True)}"
    if len(listed) < count:
        yield f"  and {count - len(listed)} more"
    if plan["status"] == "CREATED":
        command = click.style(f"holdfast organise move {plan['plan_id'][:8]} FILE FOLDER", fg="cyan")
        yield f"  To decide one: {command}"
    yield ""


def _unreadable_lines(plan: dict[str, Any]) -> Iterator[str]:
    """Give the files that could not be read by name; what else was left alone is a matter of course."""
    found = [one for one in plan["left_alone"] if one["why"].startswith(_UNREADABLE)][:_MAX_UNREADABLE]
    for one in found:
        yield f"  {display_name(one['path'])}  {click.style(escape_invisible(one['why']), dim=True)}"
    if found and len(found) < plan["skipped"][_UNREADABLE]:
        yield f"  and {plan['skipped'][_UNREADABLE] - len(found)} more that cannot be read"


def _measure_line(measures: dict[str, Any]) -> str:
    known, saved = measures["cache_hit_rate"], measures["tokens_saved"]
    told = [f"{counted(measures['files'], 'file')} seen", f"{measures['do_nothing_ratio']:.0%} stay"]
    told += [f"{known:.0%} known before"] if known else []
    told += [f"{saved:,} tokens not read"] if saved else []
    return click.style(", ".join(told), dim=True)


def _folder_of(move: dict[str, Any]) -> str:
    return str(move["to"]).rpartition("/")[0]


def _name(move: dict[str, Any]) -> str:
    old, new = str(move["path"]), str(move["to"]).rpartition("/")[2]
    renamed = "" if old.rpartition("/")[2] == new else f" as {display_name(new)}"
    return f"{display_name(old)}{renamed}"


def _trouble(move: dict[str, Any]) -> str:
    if move["status"] in ("PENDING", "DONE"):
        return ""
    colour = "red" if move["status"] == "ERROR" else "magenta"
    return "  " + click.style(f"{move['status']}: {escape_invisible(move.get('error') or '')}".rstrip(": "), fg=colour)


def _sure(confidence: float) -> str:
    return click.style(f"{confidence:>4.0%}", fg="green" if confidence >= 0.8 else "yellow")


def _cut(text: str, width: int) -> str:
    """Return a text that fits, the end left out where it does not."""
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"
