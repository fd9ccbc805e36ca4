"""Draws the progress of long work on stderr where that is a terminal, and says what an interruption left behind."""

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import click

from holdfast.cli.output import INTERRUPTED_STATUS
from holdfast.text.display import cut_to_width, escape_invisible
from holdfast.transport.client.calls import Progress

_BAR_CHARS = 24
_REDRAW_SECONDS = 0.1
_CLEAR_LINE = "\r\x1b[K"


@contextmanager
def progress_bar(*, is_hidden: bool = False) -> Iterator[Progress | None]:
    """Give a function that draws a bar and a message in one line; None when it is hidden or stderr is no terminal.

    The line is gone at the end, whatever ends the work; a thread that is still at work then draws nothing more.
    """
    if is_hidden or not sys.stderr.isatty():
        yield None
        return
    lock = threading.Lock()
    drawn_at: float | None = 0.0  # None once the work has ended

    def draw(done: float, total: float | None, message: str) -> None:
        nonlocal drawn_at
        now = time.monotonic()
        with lock:
            if drawn_at is None or (now - drawn_at < _REDRAW_SECONDS and done != total):
                return
            drawn_at = now
            columns = shutil.get_terminal_size().columns
            _print_in_place(cut_to_width(f"{_bar(done, total)}{escape_invisible(message)}", columns - 1))

    try:
        yield draw
    finally:
        with lock:
            drawn_at = None
            _print_in_place("")


@contextmanager
def explain_interruption(explain: Callable[[], Iterable[str]]) -> Iterator[None]:
    """On Ctrl-C, print what was done and how to go on, and end with status 130 instead of a bare "Aborted!"."""
    try:
        yield
    except KeyboardInterrupt:
        for line in explain():
            click.echo(line, err=True)
        sys.exit(INTERRUPTED_STATUS)


def _print_in_place(line: str) -> None:
    """Print over the line that is there; this is no colour, so it is sent where none are wanted too."""
    click.echo(f"{_CLEAR_LINE}{line}", nl=False, err=True, color=True)


def _bar(done: float, total: float | None) -> str:
    if not total:
        return ""
    share = min(1.0, done / total)
    filled = int(_BAR_CHARS * share)
    return f"{'█' * filled}{'░' * (_BAR_CHARS - filled)} {share:>4.0%}  "
