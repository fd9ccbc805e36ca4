"""`holdfast calls`: every call that was made, by which program, how it ended and how long it took."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from holdfast.cli.client import Session, open_session
from holdfast.cli.commands.changes.changes import parse_moment
from holdfast.cli.output import json_option, json_text, local_time, quantity
from holdfast.text.display import display_name

_EXAMPLES = """\b
Examples:
  holdfast calls                            the newest calls of this machine
  holdfast calls --status error --since 1h  what failed in the last hour
  holdfast calls --client claude-code --tool edit_files
  holdfast calls --follow                   each call as it ends, until Ctrl-C
  holdfast calls --json --limit 1000        for a program; its cursor gives the next page

\b
What is recorded of a call's arguments are paths, ids, numbers and fixed words. Contents, queries and replacement texts
are there by their length and SHA-256 alone."""

_POLL_SECONDS = 1.0
_FOLLOWED_AT_ONCE = 1_000
_MAX_CLIENT_CHARS = 24
_MAX_DETAIL_CHARS = 60
_COLOURS = {"ok": "green", "error": "red", "cancelled": "yellow", "input_required": "cyan"}
_SHOWN_FIRST = ("path", "file_path", "paths", "source", "folder_path", "search_path", "project", "plan_id", "change_id")


@click.command("calls", epilog=_EXAMPLES)
@click.option("--tool", metavar="NAME", help="Only calls of this tool.")
@click.option(
    "--status", type=click.Choice(["ok", "error", "cancelled", "input_required"]), help="Only calls that ended so."
)
@click.option("--code", metavar="CODE", help="Only calls that ended with this error code, such as CONFLICT.")
@click.option("--client", metavar="NAME", help="Only calls by this program.")
@click.option("--kind", type=click.Choice(["agent", "person"]), help="Only calls by agents, or only your own.")
@click.option("--since", metavar="TIME", help="Only calls that began since then, such as 10m, 2h, 3d or 2026-01-31.")
@click.option("--until", metavar="TIME", help="Only calls that began until then.")
@click.option(
    "--limit", "-n", default=50, show_default=True, type=click.IntRange(1, 1000), help="Maximum number of calls."
)
@click.option("--cursor", metavar="TEXT", help="Go on with the next page: the cursor at the end of the page before it.")
@click.option("--follow", "-f", is_flag=True, help="Print further calls as they end, until Ctrl-C.")
@json_option
def calls_command(*, as_json: bool, follow: bool, since: str | None, until: str | None, **conditions: Any) -> None:
    """List the calls of this machine, newest first: when, which tool, how it ended, how long it took, by whom, on what."""
    times = {"since": parse_moment(since, "--since"), "until": parse_moment(until, "--until")}
    arguments = {name: value for name, value in {**conditions, **times}.items() if value is not None}
    with open_session() as session:
        answer = session.call("person", (), "list_calls", arguments)
        if not follow:
            click.echo(json_text(answer) if as_json else "\n".join(_page_lines(answer, has_filter=len(arguments) > 1)))
            return
        last = answer["calls"][0]["position"] if answer["calls"] else 0
        _print_calls(answer["calls"][::-1], as_json=as_json)
        for calls in _further_calls(session, arguments, last):
            _print_calls(calls, as_json=as_json)


def _further_calls(session: Session, arguments: Mapping[str, Any], last: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the calls that were recorded after a position, oldest first, as they come."""
    page = {**arguments, "limit": _FOLLOWED_AT_ONCE}
    while True:
        time.sleep(_POLL_SECONDS)
        answer = session.call("person", (), "list_calls", page)
        calls = [call for call in answer["calls"] if call["position"] > last][::-1]
        if calls:
            last = calls[-1]["position"]
            yield calls


def _print_calls(calls: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    for call in calls:
        click.echo(json_text(call) if as_json else _line(call))


def _page_lines(answer: Mapping[str, Any], *, has_filter: bool) -> list[str]:
    if not answer["is_recording"]:
        return ["Calls are not recorded: settings.observe.calls.enabled is false."]
    if not answer["calls"]:
        return ["No call matches." if has_filter else "No call was recorded yet."]
    lines = [_line(call) for call in answer["calls"]]
    if answer.get("cursor"):
        lines.append(f"{quantity(len(lines), 'call')}. Older ones: add --cursor {answer['cursor']}")
    return lines


def _line(call: Mapping[str, Any]) -> str:
    outcome = call["code"] or call["status"]
    who = (
        "you" if call["kind"] == "person" else display_name(f"{call['client']} {call['client_version']}".strip() or "-")
    )
    who = who if len(who) <= _MAX_CLIENT_CHARS else f"{who[: _MAX_CLIENT_CHARS - 1]}…"
    colour = click.style(f"{outcome:<16}", fg=_COLOURS.get(call["status"]))
    return (
        f"{local_time(call['at'], with_seconds=True)}  {call['tool']:<24} {colour} {_format_ms(call['duration_ms']):>8}  "
        f"{who:<{_MAX_CLIENT_CHARS}} {_detail(call['parameters'])}"
    ).rstrip()


def _format_ms(duration_ms: float) -> str:
    return f"{duration_ms:.1f} ms" if duration_ms < 100 else f"{duration_ms / 1000:.2f} s"


def _detail(parameters: Mapping[str, Any]) -> str:
    """Return the parameter that says most about what was called, in few characters."""
    for name in _SHOWN_FIRST:
        value = parameters.get(name)
        if isinstance(value, list) and value:
            more = f" and {len(value) - 1} more" if len(value) > 1 else ""
            return f"{_shorten(display_name(str(value[0])))}{more}"
        if isinstance(value, str) and value:
            return _shorten(display_name(value))
    return ""


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_DETAIL_CHARS else f"…{text[1 - _MAX_DETAIL_CHARS :]}"
