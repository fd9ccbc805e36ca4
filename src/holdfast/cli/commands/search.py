"""`holdfast search`: passages in a folder that are about something, with the words of the query marked."""

import os
import re
import sys
import time
from typing import Any

import click

from holdfast.cli.client_session import Talk, conversation
from holdfast.cli.commands.running import start_server
from holdfast.cli.output import json_option, json_text
from holdfast.config.environment import state_dir
from holdfast.search.tokens import query_tokens, tokens_of
from holdfast.text.names import shown
from holdfast.text.visible import visible
from holdfast.transport.state_folder import StateFolder

_EXAMPLES = """\b
Examples:
  holdfast search "when does the lease end" ~/Documents
  holdfast search "retry after timeout" src --limit 10
  holdfast search invoice --wait --json

\b
The exit code is 0 when there are passages, 1 when there are none, 2 for a query that is blank or too long, 13 for a
folder that may not be used, 75 when it may succeed later."""

NONE_STATUS = 1
_LINES_SHOWN = 6
_POLL_SECONDS = 1.0
_WORD = re.compile(r"\w+(?:[-_'’]\w+)*")


@click.command("search", epilog=_EXAMPLES)
@click.argument("query")
@click.argument("folder", default=".", metavar="[DIR]", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--limit", default=5, show_default=True, metavar="N", help="Most passages, up to 20; 0: as many as without."
)
@click.option("--full", is_flag=True, help="Show each passage whole.")
@click.option("--wait", is_flag=True, help="Wait until the index of DIR is made to the end.")
@json_option
def search_command(query: str, folder: str, limit: int, *, full: bool, wait: bool, as_json: bool) -> None:
    """Find passages in DIR by their words and their meaning, best first, documents included.

    The first search of a directory begins its index, in a server that is started when none is running; until that is
    made, files are searched by their words. Hidden files and what .gitignore ignores are left out.
    """
    state = StateFolder(state_dir())
    state.prepare()
    start_server(state)
    with conversation() as talk:
        found = _found(talk, os.path.realpath(folder), query, limit, wait=wait)
    if as_json:
        click.echo(json_text(found))
    else:
        _show(found, query, full=full)
    if not found["hits"]:
        sys.exit(NONE_STATUS)


def _found(talk: Talk, folder: str, query: str, limit: int, *, wait: bool) -> dict[str, Any]:
    told = -1
    while True:
        found = talk.as_person("find_passages", roots=[folder], query=query, limit=limit)
        if not wait or found["ready"] >= 100:
            return found
        if found["ready"] != told:
            told = found["ready"]
            click.echo(f"The index is {told} % ready.", err=True)
        time.sleep(_POLL_SECONDS)


def _show(found: dict[str, Any], query: str, *, full: bool) -> None:
    wanted = frozenset(query_tokens(query))
    for hit in found["hits"]:
        lines = [line.removesuffix("\r") for line in str(hit["text"]).rstrip().split("\n")]
        first = 0 if full else telling_line(lines, wanted)
        line = f":{hit['line'] + first}" if "line" in hit else ""
        click.echo(f"{click.style(shown(hit['path']) + line, fg='cyan', bold=True)}  {hit['score']:.2f}")
        for text in lines[first:] if full else lines[first : first + _LINES_SHOWN]:
            click.echo(f"  {marked(text, wanted)}")
        click.echo()
    if not found["hits"]:
        click.echo("No matches found.")
    for notice in found["notices"]:
        click.echo(visible(notice), err=True)


def telling_line(lines: list[str], wanted: frozenset[str]) -> int:
    """Return where the few lines begin that hold most of the words; the first when none does."""
    counts = [len(wanted.intersection(tokens_of(line))) for line in lines]
    last = max(0, len(lines) - _LINES_SHOWN)
    return max(range(last + 1), key=lambda at: (sum(counts[at : at + _LINES_SHOWN]), -at))


def marked(line: str, wanted: frozenset[str]) -> str:
    """Return a line safe for a terminal, with the words that were asked for marked."""
    return _WORD.sub(lambda word: _marked_word(word[0], wanted), visible(line))


def _marked_word(word: str, wanted: frozenset[str]) -> str:
    return word if wanted.isdisjoint(tokens_of(word)) else click.style(word, fg="yellow", bold=True)
