"""`holdfast changes`: what programs did to your files, the net effect of it, and how much of it can still be undone."""

import os
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

import click

from holdfast.changes.model import ChangeKind
from holdfast.cli.client import open_session
from holdfast.cli.command_group import CommandGroup
from holdfast.cli.commands.changes.changes_text import (
    change_table,
    effect_lines,
    effect_summary,
    empty_lines,
    prune_lines,
    shown_lines,
)
from holdfast.cli.output import confirm, json_option, json_text
from holdfast.clock import format_utc, utc_clock
from holdfast.errors import InvalidArgument
from holdfast.text.decode import has_lone_surrogate
from holdfast.text.display import display_name

_EXAMPLES = """\b
Examples:
  holdfast changes                          the newest changes of this machine
  holdfast changes ~/project --since 2h     in one folder, in the last two hours
  holdfast changes --client claude-code --kind delete
  holdfast changes show 3f2a9c1d            what one change did, as a diff
  holdfast changes diff --since 1h          everything of the last hour, as one diff
  holdfast undo --since 10m                 take it back
  holdfast changes restore 3f2a9c1d         a file as it was before that change, whatever came after

\b
A change is named by its id or the beginning of it. Times are a length of time back from now, such as 10m, 2h, 3d or 1w,
or a date with or without a time, in your time zone.
The exit code is 0 for success, 1 when there is no such change or client, 2 for a wrong argument."""

_AGO = re.compile(r"(\d{1,6})\s*(s|m|min|h|d|w)", re.IGNORECASE)
_UNITS = {"s": "seconds", "m": "minutes", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)
_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_KINDS = [kind.value for kind in ChangeKind]


class ChangesGroup(CommandGroup):
    """A group whose list is shown when no other of its commands is named: `holdfast changes ~/project`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the name of the list in front of arguments that name no command."""
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def selection_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that select changes; the command gets them as one dictionary, `selection`."""

    @click.option("--client", metavar="NAME", help="Only changes by this program; `you` for your own commands.")
    @click.option("--since", metavar="TIME", help="Only changes since then, such as 10m, 2h, 3d or 2026-01-31.")
    @click.option("--until", metavar="TIME", help="Only changes until then.")
    @click.option(
        "--kind", "kinds", multiple=True, type=click.Choice(_KINDS), help="Only changes of this kind; may be repeated."
    )
    @click.option("--path", metavar="GLOB", help="Only changes of such paths: '*.py' anywhere, 'src/**' from DIR.")
    @wraps(command)
    def with_selection(
        *args: Any,
        client: str | None,
        since: str | None,
        until: str | None,
        kinds: tuple[str, ...],
        path: str | None,
        **more: Any,
    ) -> None:
        selection = {
            "client": client,
            "since": parse_moment(since, "--since"),
            "until": parse_moment(until, "--until"),
            "kinds": list(kinds) or None,
            "path": path,
        }
        command(*args, selection={name: value for name, value in selection.items() if value is not None}, **more)

    return with_selection


_directory_argument = click.argument("directory", metavar="[DIR]", required=False)


@click.group("changes", cls=ChangesGroup, epilog=_EXAMPLES)
def changes_group() -> None:
    """See what programs did to your files: who, when, what, the diff of each change and of many together.

    `holdfast changes [DIR]` is short for `holdfast changes list [DIR]`. `holdfast undo` takes changes back.
    """


@changes_group.command("list", epilog="Example: holdfast changes ~/project --since 2h --client claude-code")
@_directory_argument
@selection_options
@click.option(
    "--limit", "-n", default=50, show_default=True, type=click.IntRange(1, 1000), help="Maximum number of changes."
)
@click.option("--older", metavar="ID", help="Only changes before this one: the next page.")
@json_option
def list_command(
    directory: str | None, limit: int, older: str | None, *, selection: dict[str, Any], as_json: bool
) -> None:
    """List changes, newest first: id, when, by whom, what and where."""
    where = resolve_directory(directory)
    arguments = {**selection, **where, "limit": limit, **({"older_than": older} if older else {})}
    with open_session() as session:
        answer = session.call_as_person("all_changes", **arguments)
    if as_json:
        click.echo(json_text(answer))
        return
    lines = change_table(answer["changes"], where.get("directory")) or empty_lines(arguments)
    if answer["has_more"]:
        lines.append(f"Older ones: add --older {answer['changes'][-1]['change_id'][:8]}")
    click.echo("\n".join(lines))


@changes_group.command("show", epilog="Example: holdfast changes show 3f2a9c1d")
@click.argument("change", metavar="ID")
@json_option
def show(change: str, *, as_json: bool) -> None:
    """Show what one change did: the diff of each text, types and sizes of anything else, a list of many files."""
    with open_session() as session:
        answer = session.call_as_person("show_change", change_id=change)
    click.echo(json_text(answer) if as_json else "\n".join(shown_lines(answer)))


@changes_group.command("diff", epilog="Example: holdfast changes diff --since 1h ~/project")
@_directory_argument
@selection_options
@json_option
def diff(directory: str | None, *, selection: dict[str, Any], as_json: bool) -> None:
    """Show the selected changes as one diff: each file as it was before the first of them, and as it is now.

    What was changed and changed back is not shown. What other programs did to these files since is part of it.
    """
    if not selection:
        raise InvalidArgument("Select the changes: --since 1h, --client NAME, or another option.")
    where = resolve_directory(directory)
    with open_session() as session:
        answer = session.call_as_person("net_changes", **selection, **where)
    if as_json:
        click.echo(json_text(answer))
        return
    for file in answer["files"]:
        click.echo("\n".join(effect_lines(file, where.get("directory"))))
    click.echo(effect_summary(answer), err=bool(answer["files"]))


@changes_group.command("restore", epilog="Example: holdfast changes restore 3f2a9c1d")
@click.argument("change", metavar="ID")
@json_option
def restore(change: str, *, as_json: bool) -> None:
    """Restore what a file was before a change, whatever was changed there since, also where undo cannot go step by step.

    The content that is there now is kept, as by any change: `holdfast undo` brings it back.
    """
    with open_session() as session:
        answer = session.call_as_person("restore_before", change_id=change)
    path = display_name(answer["path"])
    if as_json:
        click.echo(json_text(answer))
    elif answer.get("restore_id"):
        click.echo(f"{path} is again what it was before change {answer['change_id'][:8]}.")
    else:
        click.echo(f"{path} is what it was before change {answer['change_id'][:8]}; nothing was changed.")


@changes_group.command("prune", epilog="Example: holdfast changes prune --before 10d")
@click.option("--before", metavar="TIME", help="Remove bytes last needed before then, such as 10d.")
@click.option("--to-bytes", "to_bytes", metavar="SIZE", help="Remove the oldest until this much is left, such as 50MB.")
@click.option("--root", metavar="DIR", help="Only bytes of changes in this folder.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
def prune(before: str | None, to_bytes: str | None, root: str | None, *, yes: bool, as_json: bool) -> None:
    """Remove bytes that are kept for undo, after showing which changes can then not be undone any more."""
    if (before is None) is (to_bytes is None):
        raise InvalidArgument("Say what to remove: either --before 10d or --to-bytes 50MB.")
    which: dict[str, Any] = {
        **({"before": parse_moment(before, "--before")} if before else {}),
        **({"to_bytes": parse_size(to_bytes)} if to_bytes else {}),
        **resolve_directory(root),
    }
    with open_session() as session:
        answer = session.call_as_person("prune_images", **which)
        if answer["images"] and not yes:
            click.echo("\n".join(prune_lines(answer)), err=as_json)
            confirm(
                "Remove them? This cannot be undone.",
                "Nothing was removed.",
                "Add --yes to remove them without being asked.",
            )
        if answer["images"]:
            answer = session.call_as_person("prune_images", **which, dry_run=False)
    click.echo(json_text(answer) if as_json else prune_lines(answer, is_done=True)[0])


def parse_moment(text: str | None, option: str) -> str | None:
    """Return the time that a person means, RFC 3339 in UTC: so long ago, or a date and time of this time zone."""
    if text is None:
        return None
    ago = _AGO.fullmatch(text.strip())
    try:
        if ago is not None:
            return format_utc(utc_clock() - timedelta(**{_UNITS[ago[2].lower()]: int(ago[1])}))
        return format_utc(datetime.fromisoformat(text.strip()).astimezone())
    except (ValueError, OverflowError):
        raise InvalidArgument(f"{option} takes a time such as 10m, 2h, 3d or 2026-01-31T14:00: {text!r}") from None


def resolve_directory(directory: str | None) -> dict[str, str]:
    """Return the argument for a directory, by its real path, as changes are recorded; empty for none."""
    if directory is None:
        return {}
    path = os.path.realpath(os.path.expanduser(directory))
    if has_lone_surrogate(path):
        raise InvalidArgument("The path of the folder must be valid Unicode text.")
    return {"directory": path}


def parse_size(text: str) -> int:
    """Return the bytes of a size with or without a unit of 1,024."""
    size = _SIZE.fullmatch(text.strip())
    if size is None:
        raise InvalidArgument(f"--to-bytes takes a size such as 500000, 50MB or 1GB: {text!r}")
    return int(float(size[1]) * _FACTORS[size[2].lower()])
