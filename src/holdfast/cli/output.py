"""Prints the output of commands: JSON, untrusted text and errors, with nothing in them that a terminal would act on."""

import json
import re
import sys
from collections.abc import Mapping
from typing import Any

import click

from holdfast.errors import Conflict, InvalidArgument
from holdfast.text import display
from holdfast.text.display import escape_lines, is_visible

_WANTS_JSON = "holdfast.json"
_NOT_PLAIN_ASCII = re.compile(r"[^\x20-\x7e]")


def _remember_json(context: click.Context, _option: click.Parameter, value: bool) -> bool:
    context.meta[_WANTS_JSON] = value
    return value


json_option = click.option(
    "--json", "as_json", is_flag=True, is_eager=True, callback=_remember_json, help="Print JSON, errors too."
)
"""The option --json of a command. It is eager, so that errors in the other arguments are printed as JSON too."""


def json_text(data: object, indent: int | None = None) -> str:
    """Return JSON in which characters that a terminal would act on or hide are escaped."""

    def escape(match: re.Match[str]) -> str:
        char = match[0]
        return char if char == "\n" or is_visible(char) else json.dumps(char)[1:-1]

    return _NOT_PLAIN_ASCII.sub(escape, json.dumps(data, ensure_ascii=False, indent=indent))


def quantity(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one, and with commas between thousands."""
    return display.quantity(count, noun, separator=",")


def confirm(question: str, on_refusal: str, without_terminal: str) -> None:
    """Ask the person at the terminal.

    Conflict with the second text for a no; InvalidArgument without a terminal, with the third for what to do then.
    """
    if not sys.stdin.isatty():
        raise InvalidArgument(f"There is no terminal to ask at. {without_terminal}")
    if not click.confirm(question, err=True):
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
