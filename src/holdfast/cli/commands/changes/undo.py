"""`holdfast undo` and `holdfast redo`: take changes back, and back again, after showing what will happen."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import click

from holdfast.cli.client import Session, open_session
from holdfast.cli.commands.changes.changes import resolve_directory, selection_options
from holdfast.cli.commands.changes.changes_text import undo_lines
from holdfast.cli.output import INTERRUPTED_STATUS, confirm, json_option, json_text, quantity
from holdfast.cli.progress import progress_bar
from holdfast.errors import HoldfastError
from holdfast.text.display import display_name, escape_lines

_UNDO_EXAMPLES = """\b
Examples:
  holdfast undo                             the newest change: show it, ask, undo it
  holdfast undo 3f2a9c1d 77ab01ce           these changes
  holdfast undo --since 10m                 everything of the last ten minutes, newest first
  holdfast undo --client claude-code --since 2h --dir ~/project
  holdfast undo --since 1h --dry-run        only show what would happen

\b
Nothing newer is ever overwritten: a file that was changed since by something else stays, and is named.
The exit code is 0 when all was done, 1 when something stayed, 2 for a wrong argument, 75 when it may succeed later, 130
after Ctrl-C."""

_REDO_EXAMPLES = """\b
Examples:
  holdfast redo                             what was undone last
  holdfast redo 3f2a9c1d                    this change, which was undone
  holdfast redo --since 10m                 everything that was undone in the last ten minutes

\b
The exit code is as for `holdfast undo`."""


@dataclass
class UndoRun:
    """Undoes changes one after the other; what was done is known at any moment."""

    session: Session
    steps: list[dict[str, Any]]
    undone: list[dict[str, Any]] = field(default_factory=list)
    stayed: list[dict[str, Any]] = field(default_factory=list)
    is_interrupted: bool = False

    def run(self, *, as_json: bool) -> None:
        """Undo each change that can be undone, and note those that stay and why. Raises errors that may pass."""
        steps = [step for step in self.steps if step["can_be_done"]]
        self.stayed = [_stayed_file(step, step["problem"]) for step in self.steps if not step["can_be_done"]]
        with progress_bar(is_hidden=as_json) as draw, _finish_before_interrupt() as is_asked_to_stop:
            for count, step in enumerate(steps):
                if is_asked_to_stop():
                    self.is_interrupted = True
                    return
                if draw is not None:
                    draw(count, len(steps), display_name(step["change"]["path"]))
                try:
                    result = self.session.call_as_person("undo_for_person", change_id=step["change"]["change_id"])
                except HoldfastError as error:
                    if error.retryable:
                        raise
                    self.stayed.append(_stayed_file(step, error.message))
                else:
                    self.undone.append(result)
                    self.stayed += [{"change_id": result["change_id"], **file} for file in result["stayed"]]

    def as_json(self) -> dict[str, Any]:
        """Return what was done and what stayed."""
        return {"undone": self.undone, "stayed": self.stayed, "interrupted": self.is_interrupted}

    def lines(self, participle: str, again: str) -> Iterator[str]:
        """Yield what was done, what stayed and why, and how to go on."""
        possible = sum(step["can_be_done"] for step in self.steps)
        of = "" if len(self.undone) == possible else f" of {possible}"
        yield f"{quantity(len(self.undone), 'change')}{of} {participle}."
        for left in self.stayed:
            yield f"  stays: {display_name(left['path'])}: {' '.join(escape_lines(left['reason']))}"
        if len(self.undone) < possible and (self.is_interrupted or not self.stayed):
            yield f"The others are as they were. To go on: {again}"


@click.command("undo", epilog=_UNDO_EXAMPLES)
@click.argument("changes", nargs=-1, metavar="[ID]...")
@click.option("--dir", "directory", metavar="DIR", help="Only changes in this folder.")
@selection_options
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only show what would happen.")
@json_option
def undo_command(
    changes: tuple[str, ...],
    directory: str | None,
    *,
    selection: dict[str, Any],
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Undo the newest change, changes by their ids, or all by a client or in a time, after showing what will happen.

    Without --client, --since or --until the other options narrow which change is the newest.
    Every undo is a change itself: `holdfast redo` reverses it.
    """
    arguments = {**selection, **resolve_directory(directory), "change_ids": list(changes)}
    _run(arguments, Wording("undo", "undone"), yes=yes, dry_run=dry_run, as_json=as_json)


@click.command("redo", epilog=_REDO_EXAMPLES)
@click.argument("changes", nargs=-1, metavar="[ID]...")
@click.option("--dir", "directory", metavar="DIR", help="Only changes in this folder.")
@selection_options
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only show what would happen.")
@json_option
def redo_command(
    changes: tuple[str, ...],
    directory: str | None,
    *,
    selection: dict[str, Any],
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Redo what was undone last, changes by their ids, or all undos that options select."""
    arguments = {**selection, **resolve_directory(directory), "change_ids": list(changes), "redo": True}
    _run(arguments, Wording("redo", "redone"), yes=yes, dry_run=dry_run, as_json=as_json)


@dataclass(frozen=True)
class Wording:
    """The verb of a command and its participle."""

    verb: str
    participle: str


def _run(arguments: dict[str, Any], words: Wording, *, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Preview, ask, do, and report."""
    with open_session() as session:
        steps = session.call_as_person("preview_undo", **arguments)["steps"]
        possible = sum(step["can_be_done"] for step in steps)
        if not (yes and as_json):
            for line in undo_lines(steps, verb=words.participle, with_files=not yes or dry_run):
                click.echo(line, err=as_json)
        if dry_run or not possible:
            _report_nothing(steps, words, dry_run=dry_run, as_json=as_json)
        if not yes:
            which = "this change" if possible == 1 else f"these {possible} changes"
            question, on_refusal = f"{words.verb.capitalize()} {which}?", f"Nothing was {words.participle}."
            confirm(question, on_refusal, "Look at it with --dry-run, then add --yes.")
        run = UndoRun(session, steps)
        try:
            run.run(as_json=as_json)
        except KeyboardInterrupt:
            run.is_interrupted = True
        except HoldfastError:
            _report(run, words, as_json=False, to_stderr=True)
            raise
    _report(run, words, as_json=as_json)
    if run.is_interrupted:
        sys.exit(INTERRUPTED_STATUS)
    if run.stayed:
        sys.exit(1)


def _report_nothing(steps: list[dict[str, Any]], words: Wording, *, dry_run: bool, as_json: bool) -> None:
    """End a command that changes nothing."""
    if as_json:
        click.echo(json_text({"steps": steps}))
    elif not steps:
        click.echo(f"There is nothing to {words.verb}.")
    elif not dry_run:
        click.echo(f"Nothing was {words.participle}.")
    sys.exit(0 if dry_run else 1)


def _report(run: UndoRun, words: Wording, *, as_json: bool, to_stderr: bool = False) -> None:
    if as_json:
        click.echo(json_text(run.as_json()))
        return
    for line in run.lines(words.participle, "repeat the command"):
        click.echo(line, err=to_stderr)


def _stayed_file(step: dict[str, Any], reason: str) -> dict[str, Any]:
    return {"change_id": step["change"]["change_id"], "path": step["change"]["path"], "reason": reason}


@contextmanager
def _finish_before_interrupt() -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C wait for the change that is being undone; the second one ends the command at once."""
    is_asked = False

    def remember(_signal: int, _frame: FrameType | None) -> None:
        nonlocal is_asked
        if is_asked:
            raise KeyboardInterrupt
        is_asked = True

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield lambda: is_asked
    finally:
        signal.signal(signal.SIGINT, before)
