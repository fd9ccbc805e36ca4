"""Formats changes, diffs and previews of undos for a terminal; nothing of a name or a text steers it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from holdfast.cli.output import colour_line, local_time, quantity, recent_time, short_path, table_row
from holdfast.text.display import display_name, escape_diff_lines, escape_lines, format_size

_MAX_CLIENT_CHARS = 24
_MAX_LISTED_FILES = 10
_INDENT = " " * 10
_EFFECT_COLOURS = {"created": "green", "deleted": "red", "changed": "yellow", "moved": "cyan"}
_STEPS = {
    "replace": "gets back its earlier content",
    "remove": "is removed: the change made it",
    "restore": "comes back",
    "mkdir": "is made again",
    "rmdir": "is removed if it is empty",
    "kept": "what another program had saved is written beside it",
}


def change_table(changes: Sequence[dict[str, Any]], directory: str | None) -> list[str]:
    """Return a line for each change."""
    rows = [(change["change_id"][:8], recent_time(change["at"]), client_text(change), change) for change in changes]
    when_width = max((len(row[1]) for row in rows), default=0)
    client_width = max((len(row[2]) for row in rows), default=0)
    return [
        table_row(
            f"{click.style(id_, fg='yellow')}  {when:<{when_width}}  {client:<{client_width}}  {change['kind']:<8}",
            f"{_where(change, directory)}{_details(change)}",
        )
        for id_, when, client, change in rows
    ]


def client_text(change: Mapping[str, Any]) -> str:
    """Return who made a change: `you`, or the program by the name and version that it gave itself."""
    if change["is_yours"]:
        return "you"
    text = f"{change['client']} {change['client_version']}".strip()
    if not text:
        return "unknown"
    label = display_name(text)
    if label in ("you", "unknown"):
        label = f'"{label}"'
    return label if len(label) <= _MAX_CLIENT_CHARS else f"{label[: _MAX_CLIENT_CHARS - 1]}…"


def empty_lines(arguments: Mapping[str, Any]) -> list[str]:
    """Return what to read where no change is listed."""
    directory = arguments.get("directory")
    if directory is not None and not os.path.isdir(directory):
        return [f"No changes match, and there is no folder {short_path(directory)}."]
    if set(arguments) - {"limit"}:
        return ["No changes match. `holdfast changes` without options lists all of them."]
    return [
        "No program has changed a file through Holdfast yet.",
        "Connect one to a folder: `holdfast stdio DIR` is what an MCP client starts.",
        "Then its changes are listed here, and `holdfast undo` takes them back.",
    ]


def shown_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield one change with what it did to each file."""
    change = answer["change"]
    yield f"{click.style('change', fg='yellow')} {click.style(change['change_id'], fg='yellow')}"
    yield f"{change['kind']} by {client_text(change)}, {local_time(change['at'], with_seconds=True)}, {change['status']}"
    if change.get("undoes"):
        yield f"undoes {change['undoes'][:8]}"
    for file in answer["files"]:
        yield from effect_lines(file, None)
    yield ""
    yield (
        f"To undo it: holdfast undo {change['change_id'][:8]}" if change["status"] == "EXECUTED" else _redo_hint(change)
    )


def effect_lines(file: Mapping[str, Any], directory: str | None) -> Iterator[str]:
    """Yield what became of one file: a headline, then its diff."""
    name = _path(file["path"], directory, is_folder=file["type"] == "dir")
    if file.get("former_path"):
        name = f"{_path(file['former_path'], directory)} → {name}"
    facts = ", ".join(part for part in (_sizes(file), file["note"]) if part)
    kind = click.style(f"{file['effect']:<7}", fg=_EFFECT_COLOURS[file["effect"]], bold=True)
    yield f"{kind}  {name}{f'  ({_line(facts)})' if facts else ''}"
    if file["diff"]:
        yield from map(colour_line, escape_diff_lines(file["diff"]))


def effect_summary(answer: Mapping[str, Any]) -> str:
    """Return how much a net effect is."""
    if not answer["changes"]:
        return "No changes match."
    if not answer["files"]:
        return f"{quantity(answer['changes'], 'change')}, and every file is as it was before."
    return f"{quantity(answer['changes'], 'change')}, {quantity(len(answer['files']), 'file')}."


def undo_lines(steps: Sequence[dict[str, Any]], *, verb: str, with_files: bool = True) -> Iterator[str]:
    """Yield what an undo would do: each change, and each of its files up to a number where they are wanted."""
    for step in steps:
        change = step["change"]
        what = f"{change['kind']} {_where(change, None)}"
        maker = click.style(f"by {client_text(change)}, {recent_time(change['at'])}", dim=True)
        yield table_row(f"{click.style(change['change_id'][:8], fg='yellow')}  {what}", maker)
        if step["problem"]:
            yield f"{_INDENT}{click.style('stays:', fg='red')} {_line(step['problem'])}"
            continue
        if not with_files:
            continue
        for file in step["files"][:_MAX_LISTED_FILES]:
            yield _undone_file(file)
        if len(step["files"]) > _MAX_LISTED_FILES:
            yield f"{_INDENT}and {len(step['files']) - _MAX_LISTED_FILES:,} more"
    count = sum(step["can_be_done"] for step in steps)
    if count < len(steps):
        yield f"{quantity(count, 'change')} of {len(steps)} can be {verb}."


def prune_lines(answer: Mapping[str, Any], *, is_done: bool = False) -> list[str]:
    """Return what a removal of before-images does or did, and which changes can then not be undone."""
    if not answer["images"]:
        return ["There is nothing to remove."]
    what = f"{quantity(answer['images'], 'before-image')}, {format_size(answer['bytes'])}"
    lines = [f"{'Removed' if is_done else 'To be removed'}: {what}."]
    if answer["changes"]:
        lines.append(f"{quantity(answer['changes'], 'change')} can then not be undone any more:")
        lines += _pruned_lines(answer["newest"])
        if answer["changes"] > len(answer["newest"]):
            lines.append(f"and {answer['changes'] - len(answer['newest']):,} older")
    return lines


def _pruned_lines(changes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    when_width = max((len(recent_time(change["at"])) for change in changes), default=0)
    for change in changes:
        when = recent_time(change["at"])
        yield table_row(f"{change['change_id'][:8]}  {when:<{when_width}}  {change['kind']:<8}", _where(change, None))


def _undone_file(file: Mapping[str, Any]) -> str:
    name = f"{_INDENT}{_path(file['path'], None, is_folder=file['type'] == 'dir')}"
    if file["problem"]:
        return table_row(name, f"{click.style('stays:', fg='red')} {_line(file['problem'])}")
    if file["step"] == "move":
        return table_row(name, f"goes back to {_path(file['destination'], None)}")
    return table_row(name, _STEPS[file["step"]])


def _where(change: Mapping[str, Any], directory: str | None) -> str:
    path = _path(change["path"], directory)
    return path if change.get("destination") is None else f"{path} → {_path(change['destination'], directory)}"


def _details(change: Mapping[str, Any]) -> str:
    parts = [f"{change['entries']:,} entries"] if change["entries"] > 1 else []
    parts += [format_size(change["size_bytes"])] if change["size_bytes"] else []
    if change["status"] == "UNDONE":
        parts.append("undone")
    elif not change["undoable"]:
        parts.append("failed" if change["status"] == "FAILED" else "cannot be undone")
    return click.style(f"  ({', '.join(parts)})", dim=True) if parts else ""


def _sizes(file: Mapping[str, Any]) -> str:
    sizes = [file[name] for name in ("before_bytes", "after_bytes") if name in file]
    return " → ".join(format_size(size) for size in dict.fromkeys(sizes))


def _path(path: str, directory: str | None, *, is_folder: bool = False) -> str:
    """Return a path for display, relative to a directory that it is in."""
    if directory is not None and path.startswith(f"{directory.rstrip('/')}/"):
        path = path[len(directory.rstrip("/")) + 1 :]
    path = f"{path}/" if is_folder else path
    return short_path(path) if os.path.isabs(path) else display_name(path)


def _line(text: str) -> str:
    return " ".join(escape_lines(text))


def _redo_hint(change: Mapping[str, Any]) -> str:
    return f"It is undone. To redo it: holdfast redo {change['change_id'][:8]}" if change["status"] == "UNDONE" else ""
