"""What every command prints by: JSON, texts of others and errors, none of which can steer a terminal."""

import json
import re
from collections.abc import Mapping
from typing import Any

import click

from holdfast.text.names import is_seen
from holdfast.text.visible import visible_lines

_JSON_ASKED = "holdfast.json"
_DOUBTFUL = re.compile(r"[^\x20-\x7e]")


def _remember(context: click.Context, _option: click.Parameter, value: bool) -> bool:
    context.meta[_JSON_ASKED] = value
    return value


json_option = click.option(
    "--json", "as_json", is_flag=True, is_eager=True, callback=_remember, help="Print JSON, errors too."
)
"""Says of a command that it prints JSON; it is read before anything that may be wrong with the other arguments."""


def json_text(data: object, indent: int | None = None) -> str:
    """Return JSON that means the same everywhere: what a terminal would act on or hide is written as its number."""
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    return _DOUBTFUL.sub(lambda found: found[0] if is_seen(found[0]) or found[0] == "\n" else _number(found[0]), text)


def paragraphs(text: str) -> str:
    """Return a text of several lines with nothing in it that steers a terminal, without the line end after the last."""
    return "\n".join(visible_lines(text))


def print_error(context: click.Context, message: str, payload: Mapping[str, Any]) -> None:
    """Print what went wrong: for a person on stderr, and as JSON on stdout where JSON was asked for."""
    print_json_error(context, payload)
    click.echo(f"holdfast: {paragraphs(message)}", err=True)


def print_json_error(context: click.Context, payload: Mapping[str, Any]) -> None:
    """Print an error as JSON on stdout, where JSON was asked for."""
    if context.meta.get(_JSON_ASKED):
        click.echo(json_text({"error": dict(payload)}))


def _number(char: str) -> str:
    return json.dumps(char)[1:-1]
