"""A plan as text for a terminal: what goes where at a glance, what needs a look, what was left alone, what to do next."""

from collections.abc import Iterator, Sequence
from typing import Any

import click

from holdfast.folders.names import shown

_MAX_FILES = 5
_MAX_LOOK = 20
_BAR = 20
_COLOURS = {
    "CREATED": "yellow",
    "APPROVED": "cyan",
    "EXECUTED": "green",
    "FAILED": "red",
    "SCANNING": "yellow",
    "UNDONE": "magenta",
    "CANCELLED": "white",
}


def plan_lines(plan: dict[str, Any], moves: Sequence[dict[str, Any]], *, every: bool) -> Iterator[str]:
    """Give a plan: its folders with the files that go there, doubts, skips, the measures."""
    totals = plan["totals"]
    yield f"{click.style(shown(plan['folder']), bold=True)}  {status_of(plan['status'])}  plan {plan['plan_id'][:8]}"
    yield ""
    if not moves:
        yield "Nothing to move."
    for folder in plan["folders"]:
        yield from _folder_lines(folder, [move for move in moves if _folder_of(move) == folder["folder"]], every=every)
    yield from _look_lines(plan["uncertain"], totals["uncertain"], every=every)
    if plan["skipped"]:
        told = ", ".join(f"{count} {reason}" for reason, count in sorted(plan["skipped"].items()))
        yield click.style("Left alone: ", bold=True) + told
    yield _measure_line(plan["measures"])
    if plan.get("remark"):
        yield plan["remark"]


def next_line(plan: dict[str, Any]) -> str:
    """Return the command to go on with."""
    name, status = plan["plan_id"][:8], plan["status"]
    if status == "CREATED" and not plan["totals"]["moves"]:
        return ""
    following = {
        "CREATED": f"Next: holdfast organise approve {name}",
        "APPROVED": f"Next: holdfast organise execute {name}",
        "FAILED": f"Next: holdfast organise execute {name} tries again; holdfast organise undo {name} takes it back",
        "EXECUTED": f"To take it back: holdfast organise undo {name}",
    }
    return click.style(following.get(status, ""), fg="cyan")


def status_of(status: str) -> str:
    """Return a status in its colour."""
    return click.style(status, fg=_COLOURS.get(status))


def list_line(plan: dict[str, Any]) -> str:
    """Return a plan as one line of a list."""
    moves = sum(plan.get("moves", {}).values())
    where = shown(plan["folder"])
    return (
        f"{plan['plan_id'][:8]}  {status_of(plan['status']):<18}  {plan['created_at'][:16]}  {moves:>6} files  {where}"
    )


def explained_lines(found: dict[str, Any]) -> Iterator[str]:
    """Give why a file is where it is."""
    yield click.style(shown(found["path"]), bold=True)
    yield found["why"]
    if found.get("category"):
        sure = f", {found['confidence']:.0%} sure" if found.get("confidence") is not None else ""
        yield f"Belongs to: {shown(found['category'])}{sure}"
    if found.get("nearest"):
        yield "Nearest files there: " + ", ".join(map(shown, found["nearest"]))
    if found.get("terms"):
        yield "Words: " + ", ".join(map(shown, found["terms"]))
    for move in found["moves"]:
        yield f"{move['at']}  {move['kind']}  {shown(move['path'])} → {shown(move['to'])}  (plan {move['plan_id'][:8]})"
    if found.get("waiting_to"):
        yield f"Waits to go to {shown(found['waiting_to'])} (plan {found['waiting_plan'][:8]})"


def _folder_lines(folder: dict[str, Any], moves: Sequence[dict[str, Any]], *, every: bool) -> Iterator[str]:
    new = click.style(" new", fg="green") if folder.get("is_new") else ""
    count = f"{folder['files']} file{'' if folder['files'] == 1 else 's'}"
    yield f"{click.style(shown(folder['folder']) + '/', fg='blue', bold=True)}{new}  {count}  {_bar(folder['confidence'])}"
    listed = moves if every else moves[:_MAX_FILES]
    for number, move in enumerate(listed):
        corner = "└" if number == folder["files"] - 1 else "├"
        sure = click.style(f"{move['confidence']:.0%}", dim=True)
        yield f"  {corner} {_name(move)}  {sure}{_trouble(move)}"
    if len(listed) < folder["files"]:
        yield f"  └ and {folder['files'] - len(listed)} more"


def _look_lines(uncertain: Sequence[dict[str, Any]], count: int, *, every: bool) -> Iterator[str]:
    if not count:
        return
    yield ""
    yield click.style(f"Needs a look ({count}, they stay where they are):", bold=True)
    listed = uncertain if every else uncertain[:_MAX_LOOK]
    for one in listed:
        guess = f"{shown(one['folder'])}? {one['confidence']:.0%}" if one["folder"] else ""
        yield f"  {shown(one['path'])}  {click.style(guess, dim=True)}"
    if len(listed) < count:
        yield f"  and {count - len(listed)} more"
    yield ""


def _measure_line(measures: dict[str, Any]) -> str:
    files, saved = measures["files"], measures["tokens_saved"]
    known, stay = measures["cache_hit_rate"], measures["do_nothing_ratio"]
    return click.style(
        f"{files} files seen, {known:.0%} known before, {stay:.0%} stay, {saved:,} tokens not read", dim=True
    )


def _folder_of(move: dict[str, Any]) -> str:
    return str(move["to"]).rpartition("/")[0]


def _name(move: dict[str, Any]) -> str:
    old, new = str(move["path"]), str(move["to"]).rpartition("/")[2]
    renamed = "" if old.rpartition("/")[2] == new else f" as {shown(new)}"
    return f"{shown(old)}{renamed}"


def _trouble(move: dict[str, Any]) -> str:
    if move["status"] in ("PENDING", "DONE"):
        return ""
    colour = "red" if move["status"] == "ERROR" else "magenta"
    return "  " + click.style(f"{move['status']}: {move.get('error') or ''}".rstrip(": "), fg=colour)


def _bar(confidence: float) -> str:
    full = round(confidence * _BAR)
    colour = "green" if confidence >= 0.8 else "yellow"
    return click.style("█" * full + "░" * (_BAR - full), fg=colour) + f" {confidence:.0%}"
