"""Prints the output of commands: JSON, untrusted text and errors, with nothing in them that a terminal would act on."""

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

import click

from holdfast.clock import utc_clock
from holdfast.config.environment import variable
from holdfast.errors import Conflict, InvalidArgument
from holdfast.text import display
from holdfast.text.display import display_name, display_width, escape_lines, is_visible

AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any])
_WANTS_JSON = "holdfast.json"
INTERRUPTED_STATUS = 130
"""The exit status of a command that Ctrl-C ended, as shells have it."""

_DIFF_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_ROW_INDENT = " " * 10
_NOT_PLAIN_ASCII = re.compile(r"[^\x20-\x7e]")


def _remember_json(context: click.Context, _option: click.Parameter, value: bool) -> bool:
    context.meta[_WANTS_JSON] = value
    return value


def json_flag(name: str, text: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return an option that makes a command print JSON.

    It is eager, so that errors in the other arguments are printed as JSON too.
    """
    return click.option(name, "as_json", is_flag=True, is_eager=True, callback=_remember_json, help=text)


json_option = json_flag("--json", "Print JSON, errors too.")
"""The option --json of a command."""


def json_text(data: object, indent: int | None = None) -> str:
    """Return JSON in which characters that a terminal would act on or hide are escaped."""

    def escape(match: re.Match[str]) -> str:
        char = match[0]
        return char if char == "\n" or is_visible(char) else json.dumps(char)[1:-1]

    return _NOT_PLAIN_ASCII.sub(escape, json.dumps(data, ensure_ascii=False, indent=indent))


def wants_colour() -> bool:
    """Return whether a terminal may be given colours: not with NO_COLOR, and not where TERM is `dumb`."""
    return variable("NO_COLOR") is None and variable("TERM") != "dumb"


def short_path(path: str) -> str:
    """Return an absolute path for display, with `~` for the person's home folder."""
    home = os.path.expanduser("~").rstrip("/")
    return display_name(f"~{path[len(home) :]}" if home and f"{path}/".startswith(f"{home}/") else path)


def wrap(text: str, width: int) -> Iterator[str]:
    """Yield a sentence in lines that break between words, those after the first indented."""
    yield from textwrap.wrap(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def table_row(head: str, tail: str) -> str:
    """Return a row of a table. In a terminal that is too narrow for it, its tail stands in a line of its own."""
    row, columns = f"{head}  {tail}", shutil.get_terminal_size().columns
    if not sys.stdout.isatty() or display_width(click.unstyle(row)) <= columns:
        return row
    if display_width(click.unstyle(head).rstrip()) > columns:
        words = " ".join(click.unstyle(head).split())
        head = "\n".join(textwrap.wrap(words, columns, subsequent_indent=_ROW_INDENT, break_long_words=False))
    return f"{head.rstrip()}\n{_ROW_INDENT}{tail}"


def colour_line(line: str) -> str:
    """Return a line of a diff in its colour; click removes colours outside a terminal."""
    colour = _DIFF_COLOURS.get(line[:1])
    return click.style(line, fg=colour) if colour else line


def quantity(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one, and with commas between thousands."""
    return display.quantity(count, noun, separator=",")


def local_time(at: str | None, *, with_seconds: bool = False) -> str:
    """Return an RFC 3339 time in the person's time zone, to the minute, or to the second where times lie close together.

    A dash for no time.
    """
    if at is None:
        return "-"
    return datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M:%S" if with_seconds else "%Y-%m-%d %H:%M")


def recent_time(at: str, now: datetime | None = None) -> str:
    """Return an RFC 3339 time as a person would say it today: in minutes for the last hour, then by the clock."""
    now = (now or utc_clock()).astimezone()
    then = datetime.fromisoformat(at).astimezone(now.tzinfo)
    seconds = (now - then).total_seconds()
    if 0 <= seconds < 60:
        return "just now"
    if 0 <= seconds < 3600:
        return f"{int(seconds // 60)} min ago"
    return then.strftime("today %H:%M" if then.date() == now.date() else "%Y-%m-%d %H:%M")


def duration(seconds: float) -> str:
    """Return a length of time in its two largest units, such as `2 h 5 min`; a negative one counts as none."""
    whole = max(0, int(seconds))
    units = (("d", whole // 86_400), ("h", whole // 3_600 % 24), ("min", whole // 60 % 60), ("s", whole % 60))
    first = next((index for index, (_, count) in enumerate(units) if count), len(units) - 1)
    return " ".join(f"{count} {unit}" for unit, count in units[first : first + 2] if count) or "0 s"


def confirm(question: str, on_refusal: str, without_terminal: str) -> None:
    """Ask the person at the terminal.

    Conflict with the second text for a no; InvalidArgument without a terminal, with the third for what to do then.
    Ctrl-C at the question is a no that ends the command.
    """
    if not sys.stdin.isatty():
        raise InvalidArgument(f"There is no terminal to ask at. {without_terminal}")
    try:
        is_confirmed = click.confirm(question, err=True)
    except click.Abort:
        click.echo(f"\nholdfast: {on_refusal}", err=True)
        sys.exit(INTERRUPTED_STATUS)
    if not is_confirmed:
        raise Conflict(on_refusal)


def paragraphs(text: str) -> str:
    """Return a text of several lines, safe for a terminal, without the line end after the last."""
    return "\n".join(escape_lines(text))


def print_error(context: click.Context, message: str, payload: Mapping[str, Any]) -> None:
    """Print an error on stderr, and with --json as JSON on stdout too."""
    print_json_error(context, payload)
    click.echo(f"holdfast: {paragraphs(message)}", err=True)


def print_json_error(context: click.Context, payload: Mapping[str, Any]) -> None:
    """Print an error as JSON on stdout if the command has --json."""
    if context.meta.get(_WANTS_JSON):
        click.echo(json_text({"error": dict(payload)}))
