"""Draws the progress of long work on stderr where that is a terminal, and says what an interruption left behind."""

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import click

from holdfast.text.display import escape_invisible
from holdfast.transport.client.calls import Progress

INTERRUPTED_STATUS = 130
"""The exit status of a command that Ctrl-C ended, as shells have it."""

_BAR_CHARS = 24
_REDRAW_SECONDS = 0.1
_CLEAR_LINE = "\r\x1b[K"


@contextmanager
def progress_bar(*, is_hidden: bool = False) -> Iterator[Progress | None]:
    """Give a function that draws a bar and a message in one line; None when it is hidden or stderr is no terminal.

    The line is gone at the end, whatever ends the work.
    """
    if is_hidden or not sys.stderr.isatty():
        yield None
        return
    drawn_at = 0.0

    def draw(done: float, total: float | None, message: str) -> None:
        nonlocal drawn_at
        now = time.monotonic()
        if now - drawn_at < _REDRAW_SECONDS and done != total:
            return
        drawn_at = now
        columns = shutil.get_terminal_size().columns
        click.echo(f"{_CLEAR_LINE}{_bar(done, total)}{escape_invisible(message)}"[: columns + 3], nl=False, err=True)

    try:
        yield draw
    finally:
        click.echo(_CLEAR_LINE, nl=False, err=True)


@contextmanager
def explain_interruption(explain: Callable[[], Iterable[str]]) -> Iterator[None]:
    """On Ctrl-C, print what was done and how to go on, and end with status 130 instead of a bare "Aborted!"."""
    try:
        yield
    except KeyboardInterrupt:
        for line in explain():
            click.echo(line, err=True)
        sys.exit(INTERRUPTED_STATUS)


def _bar(done: float, total: float | None) -> str:
    if not total:
        return ""
    share = min(1.0, done / total)
    filled = int(_BAR_CHARS * share)
    return f"{'█' * filled}{'░' * (_BAR_CHARS - filled)} {share:>4.0%}  "
