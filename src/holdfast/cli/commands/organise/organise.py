"""`holdfast organise`: tidy a folder by a plan that you see, approve, execute and can undo."""

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from holdfast.cli.approval_codes import ApprovalCodes
from holdfast.cli.client import Session, open_session
from holdfast.cli.command_group import CommandGroup
from holdfast.cli.commands.organise.evaluate import evaluate_command
from holdfast.cli.commands.organise.plan_text import (
    correction_lines,
    executed_lines,
    explained_lines,
    list_lines,
    next_lines,
    plan_lines,
    status_text,
    undone_lines,
)
from holdfast.cli.output import confirm, json_option, json_text, local_time, quantity, short_path
from holdfast.cli.progress import explain_interruption, progress_bar
from holdfast.errors import Conflict, InvalidArgument, NotFound
from holdfast.text.display import display_name
from holdfast.transport.client.calls import Progress

_EXAMPLES = """\b
Examples:
  holdfast organise scan ~/Downloads        make a plan and show it; nothing moves
  holdfast organise show 3f2a --all         every move of a plan
  holdfast organise move a.pdf Taxes        send a file elsewhere; the rest is classified again
  holdfast organise approve 3f2a            show it and ask for your approval
  holdfast organise approve 3f2a k3x7mq2p --yes
                                            approve exactly the plan that was shown with that code
  holdfast organise execute 3f2a            move the files
  holdfast organise undo 3f2a               undo it, all or single files
  holdfast organise explain ~/Downloads/a.pdf
  holdfast organise evaluate ~/Documents    how well new files would find their folders

\b
PLAN is the id of a plan or the beginning of it. Without it, the command takes the newest plan that it applies to, and
prints which one. The code changes with any move of the plan, so --yes never approves what you have not seen.
The exit code is 0 for success, 1 if there is no such plan, it changed meanwhile or some files could not be moved or
brought back, 2 for a wrong argument, 13 for a folder that may not be used or a plan that is not approved, 75 if it may
succeed later."""

_NO_PLANS = "There are no plans. Make one: holdfast organise scan FOLDER"
_POLL_SECONDS = 0.5
_FOLDER = click.Path(exists=True, file_okay=False)

_plan_argument = click.argument("plan", default="", metavar="[PLAN]")
_code_argument = click.argument("code", default="", metavar="[CODE]")
_yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask; needs the code that `show` printed.")
_all_option = click.option("--all", "-a", "every", is_flag=True, help="List every file.")


@click.group("organise", cls=CommandGroup, epilog=_EXAMPLES)
def organise_group() -> None:
    """Tidy a folder: scan it, look at the plan, approve it, execute it, undo it.

    Nothing moves before you approve a plan, nothing is ever overwritten, and no key or network is needed.
    """


@organise_group.command("scan", epilog="Example: holdfast organise scan ~/Downloads")
@click.argument("folder", type=_FOLDER)
@click.option(
    "--subfolders",
    "include_subfolders",
    is_flag=True,
    help="Sort the files in subfolders too; no folder is an example then.",
)
@_all_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask whether the whole home folder is meant.")
@json_option
def scan(folder: str, *, include_subfolders: bool, every: bool, yes: bool, as_json: bool) -> None:
    """Make a plan for FOLDER and show it; nothing moves.

    Folders of the system are refused, and a whole home folder is asked about.
    """
    path = os.path.realpath(folder)
    if path == os.path.realpath(Path.home()) and not yes:
        question = f"{display_name(path)} is your whole home folder. Make a plan for all of it?"
        confirm(question, "Nothing was scanned.", "Name a folder in it, or add --yes to mean the whole home folder.")
    plan: dict[str, Any] = {}

    def explain() -> Iterator[str]:
        if plan:
            session.call_on_roots([path], "revise_plan", plan_id=plan["plan_id"], cancel=True)
        yield "Stopped; there is no plan, and nothing has moved. What was read is kept:"
        yield f"holdfast organise scan {shlex.quote(folder)} goes on from there."

    with open_session() as session, explain_interruption(explain):
        with progress_bar(is_hidden=as_json) as progress:
            arguments = {"folder_path": path, "include_subfolders": include_subfolders}
            plan = session.call_on_roots([path], "create_organization_plan", progress, **arguments)
            while plan["status"] == "SCANNING":
                if progress is not None:
                    progress(plan["done"], plan.get("total"), plan["message"])
                time.sleep(_POLL_SECONDS)
                plan = session.call_on_roots([path], "get_plan", plan_id=plan["plan_id"])
            plan = _PlanClient(session, {**plan, "roots": [path]}).load(every=every or as_json)
        _print_plan(plan, every=every, as_json=as_json)


@organise_group.command("list", epilog="Example: holdfast organise list --json")
@json_option
def list_command(*, as_json: bool) -> None:
    """List the plans of this machine, newest first."""
    with open_session() as session:
        answer = session.call_as_person("all_plans")
    _print_answer(answer, as_json, *(list_lines(answer["plans"]) if answer["plans"] else [_NO_PLANS]))


@organise_group.command("show", epilog="Example: holdfast organise show 3f2a --all")
@_plan_argument
@_all_option
@json_option
def show(plan: str, *, every: bool, as_json: bool) -> None:
    """Show a plan: its moves, the uncertain files, and what was skipped and why."""
    with open_session() as session:
        answer = _find_plan(session, plan).load(every=every or as_json)
    _print_plan(answer, every=every, as_json=as_json)


@organise_group.command(
    "move", epilog="\b\nExamples:\n  holdfast organise move a.pdf Taxes\n  holdfast organise move 3f2a a.pdf Taxes"
)
@click.argument("words", nargs=-1, required=True, metavar="[PLAN] FILE [FOLDER]")
@json_option
def move(words: tuple[str, ...], *, as_json: bool) -> None:
    """Send FILE of a plan to another FOLDER, or let it stay without one; the other files are classified again."""
    with open_session() as session:
        plan, files = _split_plan(session, words, "move [PLAN] FILE [FOLDER]")
        if len(files) > 2:
            raise InvalidArgument("move takes one file: holdfast organise move [PLAN] FILE [FOLDER]")
        file, folder = files[0], "".join(files[1:])
        client = _find_plan(session, plan, "move")
        path, before = _path_in_plan(client.line["folder"], file), client.load()
        change = {"path": path, "folder": folder or None}
        session.call_as_person("correct_plan", plan_id=client.line["plan_id"], changes=[change])
        answer = client.load()
    moves = [move for move in answer["moves"] if f"/{path}".endswith(f"/{move['path']}")]
    used = {move["to"].rpartition("/")[0] for move in moves}
    if folder and used and folder.strip("/") not in used:
        click.echo(f"The folder is called {display_name(used.pop())}, not {display_name(folder)}.", err=True)
    relative = path.removeprefix(f"{answer['folder'].rstrip('/')}/")
    lines = [*correction_lines(before, answer, relative), *next_lines(answer, every=False)]
    _print_answer({**answer, "code": _codes(answer).code}, as_json, *lines)


@organise_group.command("approve", epilog="Example: holdfast organise approve 3f2a")
@_plan_argument
@_code_argument
@_yes_option
@json_option
def approve(plan: str, code: str, *, yes: bool, as_json: bool) -> None:
    """Approve a plan after looking at it; it may then be executed exactly as shown.

    CODE is what `holdfast organise show` or `scan` printed; with it, a plan that has changed since is refused.
    """
    with open_session() as session:
        answer = _find_plan(session, plan, "approve").load()
        name = answer["plan_id"][:8]
        show_command = f"holdfast organise show {name} --all"
        advice = f"Look at it with `{show_command}`, then approve what it showed: holdfast organise approve {name} CODE --yes"
        if code:
            _codes(answer).check(code, show_command)
        elif yes:
            raise InvalidArgument(f"--yes needs the code of what you have looked at. {advice}")
        if not yes:
            for line in plan_lines(answer, answer["moves"], every=True):
                click.echo(line, err=as_json)
            confirm(_approval_question(answer), "Nothing was approved.", advice)
        result = session.call_as_person("approve_plan", plan_id=answer["plan_id"], plan_hash=answer["plan_hash"])
    _print_answer(
        result, as_json, f"{status_text('APPROVED')}. Next: holdfast organise execute {result['plan_id'][:8]}"
    )


@organise_group.command("cancel", epilog="Example: holdfast organise cancel 3f2a")
@_plan_argument
@json_option
def cancel(plan: str, *, as_json: bool) -> None:
    """Close a plan that was not executed; nothing moves."""
    with open_session() as session:
        result = _find_plan(session, plan, "cancel").call("revise_plan", cancel=True)
    _print_answer(result, as_json, f"{status_text(result['status'])}.")


@organise_group.command("execute", epilog="Example: holdfast organise execute 3f2a")
@_plan_argument
@json_option
def execute(plan: str, *, as_json: bool) -> None:
    """Execute an approved plan, or continue one that was interrupted."""
    with open_session() as session:
        client = _find_plan(session, plan, "execute")
        explain = partial(_describe_interrupted, client, "DONE", "moved", "execute", "undo")
        with explain_interruption(explain), progress_bar(is_hidden=as_json) as progress:
            result = client.call("execute_plan", progress)
    _print_answer(result, as_json, *executed_lines(result))
    if result["status"] != "EXECUTED":
        sys.exit(1)


@organise_group.command("undo", epilog="Example: holdfast organise undo 3f2a Invoices/a.pdf")
@click.argument("words", nargs=-1, metavar="[PLAN] [FILE]...")
@json_option
def undo(words: tuple[str, ...], *, as_json: bool) -> None:
    """Undo a plan, or only single files of it; nothing is overwritten."""
    with open_session() as session:
        plan, files = _split_plan(session, words) if words else ("", [])
        client = _find_plan(session, plan, "undo")
        arguments = {"paths": [_path_in_plan(client.line["folder"], file) for file in files]} if files else {}
        explain = partial(_describe_interrupted, client, "UNDONE", "moved back", "undo")
        with explain_interruption(explain), progress_bar(is_hidden=as_json) as progress:
            result = client.call("undo_plan", progress, **arguments)
    _print_answer(result, as_json, *undone_lines(result))
    if result["stayed"]:
        sys.exit(1)


@organise_group.command("explain", epilog="Example: holdfast organise explain ~/Downloads/a.pdf")
@click.argument("file")
@json_option
def explain(file: str, *, as_json: bool) -> None:
    """Say why FILE is where it is, or where it went."""
    path = os.path.abspath(file)
    with open_session() as session:
        roots = _roots_for(session, path)
        answer = session.call_on_roots(roots, "explain_file", path=path)
    _print_answer(answer, as_json, *explained_lines(answer))


organise_group.add_command(evaluate_command)


class _PlanClient:
    """Calls tools about one plan; `line` is the plan as it is listed, with the directories that it touches."""

    def __init__(self, session: Session, line: dict[str, Any]) -> None:
        self.session, self.line = session, line

    def call(self, tool: str, progress: Progress | None = None, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool about the plan; a directory that is gone is replaced by the nearest one above it."""
        roots = [_nearest_directory(root) for root in self.line["roots"]]
        return self.session.call_on_roots(roots, tool, progress, plan_id=self.line["plan_id"], **arguments)

    def load(self, *, every: bool = True) -> dict[str, Any]:
        """Return the plan with its uncertain files and its moves, the first of them or all.

        With all moves come the first of the skipped entries; unreadable ones come before the others.
        """
        first = plan = self.call("get_plan")
        moves = list(plan["moves"])
        while every and (cursor := plan.get("next_cursor")):
            plan = self.call("get_plan", cursor=cursor)
            if plan["plan_hash"] != first["plan_hash"]:
                raise Conflict("The plan was changed while it was read. Repeat the command.")
            moves += plan["moves"]
        uncertain = self.call("get_plan", show="uncertain")["uncertain"]
        skipped = self.call("get_plan", show="skipped")["left_alone"] if every and plan["skipped"] else []
        return {**plan, "moves": moves, "uncertain": uncertain, "left_alone": skipped}

    def settled_totals(self) -> dict[str, int]:
        """Return how many moves have which status once an interrupted call has ended: its batch is finished first."""
        totals: dict[str, int] = self.call("get_plan")["totals"]
        while True:
            time.sleep(_POLL_SECONDS)
            later: dict[str, int] = self.call("get_plan")["totals"]
            if later == totals:
                return totals
            totals = later


_APPLIES_TO: dict[str, Callable[[dict[str, Any]], bool]] = {
    "show": lambda _plan: True,
    "move": lambda plan: plan["status"] == "CREATED",
    "approve": lambda plan: plan["status"] == "CREATED" and bool(plan["moves"]),
    "cancel": lambda plan: plan["status"] in ("CREATED", "APPROVED", "RUNNING"),
    "execute": lambda plan: plan["status"] in ("APPROVED", "RUNNING", "FAILED"),
    "undo": lambda plan: "DONE" in plan["moves"],
}
"""Which plans a command applies to when none is named."""


def _find_plan(session: Session, prefix: str, verb: str = "show") -> _PlanClient:
    """Return the plan whose id begins with the prefix; without a prefix, the newest that the command applies to."""
    plans = session.call_as_person("all_plans")["plans"]
    if not prefix:
        return _PlanClient(session, _pick_newest(plans, verb))
    matches = [plan for plan in plans if plan["plan_id"].startswith(prefix)]
    if not matches:
        raise NotFound(f"There is no plan {prefix!r}. `holdfast organise list` shows those that there are.")
    if len(matches) > 1:
        ids = ", ".join(plan["plan_id"][:12] for plan in matches[:10])
        raise InvalidArgument(f"Several plans match: {ids}. Give more of the id.")
    return _PlanClient(session, matches[0])


def _split_plan(session: Session, words: Sequence[str], usage: str = "") -> tuple[str, list[str]]:
    """Return the plan that the first word names, empty where it names none, and the other words.

    InvalidArgument with the usage where there must be other words and are none.
    """
    plans = session.call_as_person("all_plans")["plans"]
    first, *others = words
    is_plan = not first or any(plan["plan_id"].startswith(first) for plan in plans) or _is_id(first)
    if not is_plan:
        return "", [first, *others]
    if usage and not others:
        raise InvalidArgument(f"A file of the plan is missing: holdfast organise {usage}")
    return first, others


def _is_id(word: str) -> bool:
    """Return whether a word can only be meant as the id of a plan: it looks like one, and no file has that name."""
    return len(word) >= 4 and set(word) <= set("0123456789abcdef") and not os.path.lexists(word)


def _pick_newest(plans: Sequence[dict[str, Any]], verb: str) -> dict[str, Any]:
    """Return the newest plan for a command and print which it is; to execute, plans without approval come last."""
    candidates = [*filter(_APPLIES_TO[verb], plans)]
    if verb == "execute":
        candidates += filter(_APPLIES_TO["approve"], plans)
    if not candidates:
        raise NotFound(f"There is no plan to {verb}." if plans else _NO_PLANS)
    plan = candidates[0]
    made_at = local_time(plan["created_at"])
    click.echo(f"plan {plan['plan_id'][:8]} of {made_at} for {short_path(plan['folder'])}", err=True)
    return plan


def _roots_for(session: Session, path: str) -> list[str]:
    """Return the directories of the plans above a file, or else the file's own."""
    plans = session.call_as_person("all_plans")["plans"]
    above = {root for plan in plans for root in plan["roots"] if path.startswith(f"{root.rstrip('/')}/")}
    return sorted(map(_nearest_directory, above), key=len) or [_nearest_directory(os.path.dirname(path))]


def _nearest_directory(path: str) -> str:
    """Return a directory, or the nearest one above it that exists."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def _path_in_plan(folder: str, file: str) -> str:
    """Return the absolute path of a file in the planned folder; any other path as it was given, for the server to resolve."""
    absolute = os.path.abspath(file)
    return absolute if absolute.startswith(f"{folder}/") else file


def _print_plan(plan: dict[str, Any], *, every: bool, as_json: bool) -> None:
    code = _codes(plan).code
    lines = [*plan_lines(plan, plan["moves"], every=every), *next_lines(plan, code, every=every)]
    _print_answer({**plan, "code": code}, as_json, *lines)


def _codes(plan: dict[str, Any]) -> ApprovalCodes:
    return ApprovalCodes(plan["plan_id"], plan["plan_hash"])


def _print_answer(data: dict[str, Any], as_json: bool, *lines: str) -> None:
    for line in [json_text(data)] if as_json else lines:
        click.echo(line)


def _approval_question(plan: dict[str, Any]) -> str:
    maker = "an agent" if plan["made_by"] == "agent" else "`holdfast organise scan`"
    maker_and_time = f"made by {maker} at {local_time(plan['created_at'])}"
    where = f"the move of {quantity(plan['totals']['moves'], 'file')} in {display_name(plan['folder'])}"
    return f"Approve plan {plan['plan_id'][:8]}, {maker_and_time}: {where}?"


def _describe_interrupted(
    client: _PlanClient, status: str, word: str, again: str, other: str | None = None
) -> Iterator[str]:
    """Yield how far an interrupted execution or undo came, and the commands to go on with."""
    totals = client.settled_totals()
    done_count, plan = totals.get(status, 0), client.line["plan_id"][:8]
    yield f"Stopped: {done_count:,} of {quantity(totals['moves'], 'file')} {word}."
    yield "Every file is whole, at its old place or its new one."
    yield f"To go on: holdfast organise {again} {plan}"
    if other and done_count:
        yield f"To take it back: holdfast organise {other} {plan}"
