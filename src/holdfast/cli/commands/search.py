"""`holdfast search`: prints passages of a folder that match a query, with its words highlighted."""

import os
import re
import shutil
import sys
import time
from typing import Any

import click

from holdfast.cli.client import Session, open_session
from holdfast.cli.commands.running import start_server
from holdfast.cli.output import json_option, json_text, wrap
from holdfast.cli.startup import open_state_folder
from holdfast.search.tokens import tokenize, tokenize_query
from holdfast.text.display import display_name, escape_invisible

_EXAMPLES = """\b
Examples:
  holdfast search "when does the lease end" ~/Documents
  holdfast search "retry after timeout" src --limit 10
  holdfast search invoice --wait --json

\b
The exit code is 0 when there are passages, 1 when there are none, 2 for a query that is blank or too long, 13 for a
folder that may not be used, 75 when it may succeed later."""

NO_MATCH_STATUS = 1
_MAX_LINES = 6
_POLL_SECONDS = 1.0
_WORD = re.compile(r"\w+(?:[-_'’]\w+)*")


@click.command("search", epilog=_EXAMPLES)
@click.argument("query")
@click.argument("folder", default=".", metavar="[DIR]", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--limit", default=5, show_default=True, metavar="N", help="Maximum number of passages, up to 20; 0: the default."
)
@click.option("--full", is_flag=True, help="Show each passage whole.")
@click.option("--wait", is_flag=True, help="Wait until the index of DIR is complete.")
@json_option
def search_command(query: str, folder: str, limit: int, *, full: bool, wait: bool, as_json: bool) -> None:
    """Find passages in DIR by their words and their meaning, best first, documents included.

    The first search of a directory starts its index, in a server that is started when none is running; until it is
    complete, files are searched by their words. Hidden files and what .gitignore ignores are left out.
    """
    start_server(open_state_folder())
    with open_session() as session:
        result = _search(session, os.path.realpath(folder), query, limit, wait=wait)
    if as_json:
        click.echo(json_text(result))
    else:
        _print_result(result, query, full=full)
    if not result["hits"]:
        sys.exit(NO_MATCH_STATUS)


def _search(session: Session, folder: str, query: str, limit: int, *, wait: bool) -> dict[str, Any]:
    reported = -1
    while True:
        result = session.call_as_person("find_passages", roots=[folder], query=query, limit=limit)
        if not wait or result["ready"] >= 100:
            return result
        if result["ready"] != reported:
            reported = result["ready"]
            click.echo(f"The index is {reported} % ready.", err=True)
        time.sleep(_POLL_SECONDS)


def _print_result(result: dict[str, Any], query: str, *, full: bool) -> None:
    query_words = frozenset(tokenize_query(query))
    for hit in result["hits"]:
        lines = [line.removesuffix("\r") for line in str(hit["text"]).rstrip().split("\n")]
        first = 0 if full else best_line(lines, query_words)
        line = f":{hit['line'] + first}" if "line" in hit else ""
        click.echo(f"{click.style(display_name(hit['path']) + line, fg='cyan', bold=True)}  {hit['score']:.2f}")
        for text in lines[first:] if full else lines[first : first + _MAX_LINES]:
            click.echo(f"  {highlight(text, query_words)}")
        click.echo()
    if not result["hits"]:
        click.echo("No matches found.")
    for notice in result["notices"]:
        for line in wrap(escape_invisible(notice), shutil.get_terminal_size().columns):
            click.echo(line, err=True)


def best_line(lines: list[str], query_words: frozenset[str]) -> int:
    """Return where the few lines begin that hold most words of the query; the first when none does."""
    counts = [len(query_words.intersection(tokenize(line))) for line in lines]
    last = max(0, len(lines) - _MAX_LINES)
    return max(range(last + 1), key=lambda at: (sum(counts[at : at + _MAX_LINES]), -at))


def highlight(line: str, query_words: frozenset[str]) -> str:
    """Return a line safe for a terminal, with the words of the query highlighted."""

    def style(match: re.Match[str]) -> str:
        word = match[0]
        return word if query_words.isdisjoint(tokenize(word)) else click.style(word, fg="yellow", bold=True)

    return _WORD.sub(style, escape_invisible(line))
