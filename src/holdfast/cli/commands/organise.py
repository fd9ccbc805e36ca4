"""`holdfast organise`: tidy a folder by a plan that you see, approve, carry out and can take back."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from holdfast.cli.client import Session, open_session
from holdfast.cli.commands.organise_evaluate import evaluate_command
from holdfast.cli.commands.organise_text import (
    counted,
    executed_lines,
    explained_lines,
    list_line,
    next_lines,
    plan_lines,
    status_of,
    undone_lines,
)
from holdfast.cli.output import json_option, json_text
from holdfast.errors import Conflict, InvalidArgument, NotFound
from holdfast.text.display import display_name, escape_invisible
from holdfast.transport.client.calls import Progress

_EXAMPLES = """\b
Examples:
  holdfast organise scan ~/Downloads        make a plan and show it; nothing moves
  holdfast organise show 3f2a --all         every move of a plan
  holdfast organise move 3f2a a.pdf Taxes   send a file elsewhere; the rest is judged anew
  holdfast organise approve 3f2a            look at it and say yes
  holdfast organise execute 3f2a            carry it out
  holdfast organise undo 3f2a               take it back, all or single files
  holdfast organise explain ~/Downloads/a.pdf
  holdfast organise evaluate ~/Documents    how well new files would find their folders

\b
A plan is named by its id or the beginning of it; without one it is the newest that can be approved, executed, undone
and so on, and it is said which.
The exit code is 0 when it was done, 1 when there is no such plan, it changed meanwhile or some files could not be
moved or brought back, 2 for a wrong argument, 13 for a folder that may not be used or a plan that nobody approved,
75 when it may succeed later."""

_POLL_SECONDS = 0.5
_BAR = 30
_FOLDER = click.Path(exists=True, file_okay=False)

_named = click.argument("plan", default="", metavar="[PLAN]")
_sure = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
_all = click.option("--all", "-a", "every", is_flag=True, help="List every file.")


@click.group("organise", epilog=_EXAMPLES)
def organise_group() -> None:
    """Tidy a folder: scan it, look at the plan, approve it, carry it out, take it back.

    Nothing moves before you approve a plan, nothing is ever overwritten, and no key or network is needed.
    """


@organise_group.command("scan", epilog="Example: holdfast organise scan ~/Downloads")
@click.argument("folder", type=_FOLDER)
@click.option("--subfolders", "deep", is_flag=True, help="Sort the files in subfolders as well.")
@_all
@json_option
def scan(folder: str, *, deep: bool, every: bool, as_json: bool) -> None:
    """Make a plan for FOLDER and show it; nothing moves."""
    path = os.path.realpath(folder)
    with _progress(as_json) as progress:
        if progress is not None:
            progress(0, None, f"Looking at {display_name(path)}")
        with open_session() as session:
            arguments = {"folder_path": path, "include_subfolders": deep}
            made = session.call_on_roots([path], "create_organization_plan", progress, **arguments)
            while made["status"] == "SCANNING":
                if progress is not None:
                    progress(made["done"], made.get("total"), made["message"])
                time.sleep(_POLL_SECONDS)
                made = session.call_on_roots([path], "get_plan", plan_id=made["plan_id"])
            whole = _Found(session, {**made, "roots": [path]}).whole(every=every or as_json)
            if progress is not None:
                progress(0, None, "")
            _print(whole, every=every, as_json=as_json)


@organise_group.command("list", epilog="Example: holdfast organise list --json")
@json_option
def list_command(*, as_json: bool) -> None:
    """List the plans of this machine, newest first."""
    with open_session() as session:
        found = session.call_as_person("all_plans")
    if as_json:
        click.echo(json_text(found))
        return
    for plan in found["plans"]:
        click.echo(list_line(plan))
    if not found["plans"]:
        click.echo("There are no plans. Make one: holdfast organise scan FOLDER")


@organise_group.command("show", epilog="Example: holdfast organise show 3f2a --all")
@_named
@_all
@json_option
def show(plan: str, *, every: bool, as_json: bool) -> None:
    """Show a plan: what goes where, what needs a look, what was left alone and why."""
    with open_session() as session:
        whole = _find(session, plan).whole(every=every or as_json)
    _print(whole, every=every, as_json=as_json)


@organise_group.command("move", epilog="Example: holdfast organise move 3f2a a.pdf Taxes")
@click.argument("plan")
@click.argument("file")
@click.argument("folder", default="")
@json_option
def move(plan: str, file: str, folder: str, *, as_json: bool) -> None:
    """Send FILE of a plan to another FOLDER, or leave it where it is when none is named; the rest is judged anew."""
    with open_session() as session:
        found = _find(session, plan, "move")
        change = {"path": _from(found.facts["folder"], file), "folder": folder or None}
        session.call_as_person("correct_plan", plan_id=found.facts["plan_id"], changes=[change])
        whole = found.whole()
    _print(whole, every=False, as_json=as_json)


@organise_group.command("approve", epilog="Example: holdfast organise approve 3f2a")
@_named
@_sure
@json_option
def approve(plan: str, *, yes: bool, as_json: bool) -> None:
    """Approve a plan after looking at it; it may then be carried out exactly as shown."""
    with open_session() as session:
        found = _find(session, plan, "approve")
        whole = found.whole()
        if not yes:
            for line in plan_lines(whole, whole["moves"], every=True):
                click.echo(line, err=as_json)
            _confirm(_question(whole))
        done = session.call_as_person("approve_plan", plan_id=whole["plan_id"], plan_hash=whole["plan_hash"])
    _say(done, as_json, f"{status_of('APPROVED')}. Next: holdfast organise execute {done['plan_id'][:8]}")


@organise_group.command("cancel", epilog="Example: holdfast organise cancel 3f2a")
@_named
@json_option
def cancel(plan: str, *, as_json: bool) -> None:
    """Close a plan that was not carried out; nothing moves."""
    with open_session() as session:
        done = _find(session, plan, "cancel").call("revise_plan", cancel=True)
    _say(done, as_json, f"{status_of(done['status'])}.")


@organise_group.command("execute", epilog="Example: holdfast organise execute 3f2a")
@_named
@json_option
def execute(plan: str, *, as_json: bool) -> None:
    """Carry out an approved plan, or go on with one that was interrupted."""
    with open_session() as session, _progress(as_json) as progress:
        done = _find(session, plan, "execute").call("execute_plan", progress)
    _say(done, as_json, *executed_lines(done))
    if done["status"] != "EXECUTED":
        sys.exit(1)


@organise_group.command("undo", epilog="Example: holdfast organise undo 3f2a Invoices/a.pdf")
@_named
@click.argument("files", nargs=-1)
@json_option
def undo(plan: str, files: tuple[str, ...], *, as_json: bool) -> None:
    """Take a plan back, or only single FILES of it; nothing is overwritten."""
    with open_session() as session, _progress(as_json) as progress:
        found = _find(session, plan, "undo")
        chosen = {"paths": [_from(found.facts["folder"], one) for one in files]} if files else {}
        done = found.call("undo_plan", progress, **chosen)
    _say(done, as_json, *undone_lines(done))
    if done["stayed"]:
        sys.exit(1)


@organise_group.command("explain", epilog="Example: holdfast organise explain ~/Downloads/a.pdf")
@click.argument("file")
@json_option
def explain(file: str, *, as_json: bool) -> None:
    """Say why FILE is where it is, or where it went."""
    path = os.path.abspath(file)
    with open_session() as session:
        roots = _roots_for(session, path)
        found = session.call_on_roots(roots, "explain_file", path=path)
    _say(found, as_json, *explained_lines(found))


organise_group.add_command(evaluate_command)


class _Found:
    """One plan, and the directories that it touches."""

    def __init__(self, session: Session, facts: dict[str, Any]) -> None:
        self.session, self.facts = session, facts

    def call(self, tool: str, progress: Progress | None = None, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool about the plan; of directories that are gone, those above them stand for them."""
        roots = [_nearest(root) for root in self.facts["roots"]]
        return self.session.call_on_roots(roots, tool, progress, plan_id=self.facts["plan_id"], **arguments)

    def whole(self, *, every: bool = True) -> dict[str, Any]:
        """Return the plan with its moves, at least the first of them, and the files that need a look.

        With all its moves come the first of what was left alone: what could not be read is there before all else.
        """
        plan = self.call("get_plan")
        moves = list(plan["moves"])
        while every and (cursor := plan.get("next_cursor")):
            plan = self.call("get_plan", cursor=cursor)
            moves += plan["moves"]
        doubts = self.call("get_plan", show="uncertain")
        left = self.call("get_plan", show="skipped") if every and plan["skipped"] else {}
        return {**plan, "moves": moves, "uncertain": doubts["uncertain"], "left_alone": left.get("left_alone", [])}


_FITS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "show": lambda _plan: True,
    "move": lambda plan: plan["status"] == "CREATED",
    "approve": lambda plan: plan["status"] == "CREATED" and bool(plan["moves"]),
    "cancel": lambda plan: plan["status"] in ("CREATED", "APPROVED", "RUNNING"),
    "execute": lambda plan: plan["status"] in ("APPROVED", "RUNNING", "FAILED"),
    "undo": lambda plan: "DONE" in plan["moves"],
}
"""Which plan a command is for when none is named."""


def _find(session: Session, given: str, verb: str = "show") -> _Found:
    """Return the one plan that is meant; where none was named, the newest that the command makes sense for."""
    every = session.call_as_person("all_plans")["plans"]
    if not given:
        return _Found(session, _newest(every, verb))
    found = [one for one in every if one["plan_id"].startswith(given)]
    if not found:
        raise NotFound(f"There is no plan {given!r}.")
    if len(found) > 1:
        names = ", ".join(one["plan_id"][:12] for one in found[:10])
        raise InvalidArgument(f"Several plans are meant: {names}. Name one by more of its id.")
    return _Found(session, found[0])


def _newest(every: Sequence[dict[str, Any]], verb: str) -> dict[str, Any]:
    """Return the newest plan for a command and say which it is; to execute, one that waits for approval comes last."""
    fitting = [*filter(_FITS[verb], every)]
    if verb == "execute":
        fitting += filter(_FITS["approve"], every)
    if not fitting:
        raise NotFound(f"There is no plan to {verb}." if every else "There are no plans.")
    plan = fitting[0]
    click.echo(f"plan {plan['plan_id'][:8]} of {plan['created_at'][:16]} for {display_name(plan['folder'])}", err=True)
    return plan


def _roots_for(session: Session, path: str) -> list[str]:
    """Return the directories of the plans that a file may have to do with, and the file's own."""
    plans = session.call_as_person("all_plans")["plans"]
    above = {root for plan in plans for root in plan["roots"] if path.startswith(f"{root.rstrip('/')}/")}
    return sorted(map(_nearest, above), key=len) or [_nearest(os.path.dirname(path))]


def _nearest(path: str) -> str:
    """Return a directory, or where it is gone the nearest one above it that is there."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def _from(folder: str, file: str) -> str:
    """Return how a plan calls a file: by its path from the planned folder, or as it was given."""
    absolute = os.path.abspath(file)
    return absolute if absolute.startswith(f"{folder}/") else file


def _print(plan: dict[str, Any], *, every: bool, as_json: bool) -> None:
    if as_json:
        click.echo(json_text(plan))
        return
    for line in plan_lines(plan, plan["moves"], every=every):
        click.echo(line)
    for line in next_lines(plan, every=every):
        click.echo(line)


def _say(data: dict[str, Any], as_json: bool, *lines: str) -> None:
    if as_json:
        click.echo(json_text(data))
        return
    for line in lines:
        click.echo(line)


def _question(plan: dict[str, Any]) -> str:
    maker = "an agent" if plan["made_by"] == "agent" else "`holdfast organise scan`"
    made = f"made by {maker} at {plan['created_at'][:16]}"
    where = f"the move of {counted(plan['totals']['moves'], 'file')} in {display_name(plan['folder'])}"
    return f"Approve plan {plan['plan_id'][:8]}, {made}: {where}?"


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise InvalidArgument("Nobody can be asked here: add --yes to approve what you have looked at.")
    if not click.confirm(question, err=True):
        raise Conflict("Nothing was decided.")


@contextmanager
def _progress(as_json: bool) -> Iterator[Progress | None]:
    """Give a line on stderr that shows how far the work is, where somebody watches; None elsewhere."""
    if as_json or not sys.stderr.isatty():
        yield None
        return
    yield _draw
    click.echo("\r\x1b[K", nl=False, err=True)


def _draw(done: float, total: float | None, message: str) -> None:
    line = escape_invisible(message)
    if total:
        full = round(_BAR * min(1.0, done / total))
        line = f"{'█' * full}{'░' * (_BAR - full)} {done / total:.0%} {line}"
    click.echo(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}", nl=False, err=True)
