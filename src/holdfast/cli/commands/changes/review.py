"""`holdfast review`: see what agents want to change, and approve, reject or change it."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import click

from holdfast.changes.disk.files import read_all, write_new
from holdfast.cli.approval_codes import ApprovalCodes
from holdfast.cli.client import call_as_person
from holdfast.cli.command_group import CommandGroup
from holdfast.cli.commands.changes.review_text import coded_lines, side_by_side
from holdfast.cli.output import colour_line, confirm, json_option, json_text, recent_time, short_path, table_row
from holdfast.config.environment import state_dir
from holdfast.errors import Conflict, InvalidArgument, NotFound
from holdfast.text.display import escape_diff_lines, escape_invisible, escape_lines

_EXAMPLES = """\b
Examples:
  holdfast review                          what waits for you
  holdfast review show 3f2a                what it would change, with a code
  holdfast review approve 3f2a             look at it and say yes
  holdfast review approve 3f2a k3x7mq2p --yes
                                           approve exactly what `show` printed with that code
  holdfast review approve 3f2a --hunks d4qz2a,w7m3xk
                                           only the hunks with these codes
  holdfast review edit 3f2a                approve it with your own changes, in $EDITOR
  holdfast review revise 3f2a -m "keep the old name"
  holdfast review reject 3f2a -m "not now"
  holdfast review apply 3f2a               make an approved change yourself, when the agent has left
  holdfast review withdraw 3f2a            close it, even when it is approved already

\b
A review is named by its id or the beginning of it; without one it is the only one that waits.
The code changes with anything that `show` shows, so --yes never approves what you have not seen.
The exit code is 0 when it was done, 1 when there is no such review, it changed or was decided already, 2 for a wrong
argument, 13 when this way of deciding is switched off, 75 when it may succeed later."""

_UNDECIDED = ("PENDING", "REVIEW")
_DECISIONS = {
    "APPROVE": ("Approved", "The agent may make the change now; if it has left: {apply}"),
    "REVIEW": ("Sent back", "The agent gets your message with its next call."),
    "REJECT": ("Rejected", "Nothing was changed."),
}
"""What a decision is called, and what comes next."""


@dataclass(frozen=True)
class OpenReview:
    """One review as it was shown; a decision is about exactly this."""

    facts: dict[str, Any]

    @cached_property
    def codes(self) -> ApprovalCodes:
        """Return the codes of what is shown."""
        return ApprovalCodes(self.facts["review_id"], self.facts["shown_hash"])

    @property
    def statement(self) -> str:
        """Return what a review does that is no edit; empty for an edit."""
        return str(self.facts.get("statement") or "")

    def hunks(self) -> list[dict[str, Any]]:
        """Return the hunks, each with its code."""
        return [{**hunk, "code": self.codes.hunk_code(hunk["hash"])} for hunk in self.facts["hunks"]]

    def command(self, verb: str) -> str:
        """Return the command for a decision on this review."""
        return f"holdfast review {verb} {self.facts['review_id'][:8]}"

    def decide(self, decision: str, *, as_json: bool, **more: Any) -> None:
        """Send a decision and say what became of it."""
        arguments = {name: value for name, value in more.items() if value is not None}
        result = call_as_person(
            "decide_review",
            {
                "review_id": self.facts["review_id"],
                "shown_hash": self.facts["shown_hash"],
                "decision": decision,
                **arguments,
            },
        )
        word, what_now = _DECISIONS[result["user_action"]]
        lines = [f"{word}: {short_path(result['path'])}", what_now.format(apply=self.command("apply"))]
        click.echo(json_text(result) if as_json else "\n".join(lines))


_id_argument = click.argument("review", default="", metavar="[ID]")
_code_argument = click.argument("code", default="", metavar="[CODE]")
_message_option = click.option("--message", "-m", metavar="TEXT", help="A message to the agent.")
_yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask; needs the code that `show` printed.")


@click.group("review", cls=CommandGroup, epilog=_EXAMPLES, invoke_without_command=True)
@click.pass_context
def review_group(context: click.Context) -> None:
    """See what agents propose to change, and approve it, reject it or change it yourself.

    Nothing that an agent proposes is written before you approve it. A command goes through the server that is running,
    and does the work itself when none is.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_command)


@review_group.command("list", epilog="Example: holdfast review list --json")
@json_option
def list_command(*, as_json: bool = False) -> None:
    """List the open reviews, newest first: id, who it waits for, since when, what is to be done, and where."""
    answer = call_as_person("pending_reviews", {})
    if as_json:
        click.echo(json_text(answer))
        return
    state_width = max((len(_STATE[review["user_action"]]) for review in answer["reviews"]), default=0)
    when_width = max((len(recent_time(review["created_at"])) for review in answer["reviews"]), default=0)
    for review in answer["reviews"]:
        state = _STATE[review["user_action"]]
        target = f" → {short_path(review['destination'])}" if review.get("destination") else ""
        kind = review["kind"].replace("_", " ")
        when = recent_time(review["created_at"])
        head = f"{review['review_id'][:8]}  {state:<{state_width}}  {when:<{when_width}}  {kind:<6}"
        click.echo(table_row(head, f"{short_path(review['path'])}{target}"))
    if not answer["reviews"]:
        click.echo("No reviews are open.")
    elif waiting := [review["review_id"][:8] for review in answer["reviews"] if review["user_action"] in _UNDECIDED]:
        click.echo(f"To look at one: holdfast review show {waiting[0]}")


@review_group.command("show", epilog="Example: holdfast review show 3f2a --side-by-side")
@_id_argument
@click.option("--side-by-side", "-s", "is_split", is_flag=True, help="Show both texts next to each other.")
@json_option
def show(review: str, *, is_split: bool, as_json: bool) -> None:
    """Show what a review would change, an edit in hunks, and the code that names exactly this."""
    open_review = _load(review)
    if as_json:
        click.echo(json_text({**open_review.facts, "hunks": open_review.hunks(), "code": open_review.codes.code}))
        return
    _print_review(open_review, is_split=is_split)
    if open_review.facts["user_action"] in _UNDECIDED:
        click.echo(f"To approve exactly this: {open_review.command('approve')} {open_review.codes.code} --yes")


@review_group.command("approve", epilog="Example: holdfast review approve 3f2a --hunks d4qz2a,w7m3xk")
@_id_argument
@_code_argument
@click.option("--hunks", metavar="CODE,CODE", help="Approve only these hunks; the rest stays as it is.")
@_message_option
@_yes_option
@json_option
def approve(review: str, code: str, hunks: str | None, message: str | None, *, yes: bool, as_json: bool) -> None:
    """Approve a review after looking at it; the agent may then write exactly what you were shown.

    CODE is what `holdfast review show` printed; with it, a review that has changed since is refused.
    """
    open_review = _load(review)
    approve_command = open_review.command("approve")
    advice = (
        f"Look at it with `{open_review.command('show')}`, then approve what it showed: {approve_command} CODE --yes"
    )
    if code:
        open_review.codes.check(code, open_review.command("show"))
    elif yes:
        raise InvalidArgument(f"--yes needs the code of what you have looked at. {advice}")
    hunk_ids = None if hunks is None else _parse_hunks(hunks, open_review)
    if not yes:
        _print_review(open_review, is_split=False)
        question = "Approve this change?" if hunk_ids is None else f"Approve hunks {hunks} of this change?"
        confirm(question, "Nothing was decided.", advice)
    open_review.decide("approve", as_json=as_json, hunks=hunk_ids, reason=message)


@review_group.command("reject", epilog='Example: holdfast review reject 3f2a -m "not now"')
@_id_argument
@_message_option
@json_option
def reject(review: str, message: str | None, *, as_json: bool) -> None:
    """Reject a review; the file stays as it is."""
    _load(review).decide("reject", as_json=as_json, reason=message)


@review_group.command("revise", epilog='Example: holdfast review revise 3f2a -m "keep the old name"')
@_id_argument
@click.option("--message", "-m", required=True, metavar="TEXT", help="What the agent should change.")
@json_option
def revise(review: str, message: str, *, as_json: bool) -> None:
    """Ask the agent for another version."""
    _load(review).decide("revise", as_json=as_json, reason=message)


@review_group.command("edit", epilog="Example: EDITOR=nano holdfast review edit 3f2a")
@_id_argument
@click.option("--revise", "is_revision", is_flag=True, help="Send your text back to the agent instead of approving it.")
@_message_option
@json_option
def edit(review: str, message: str | None, *, is_revision: bool, as_json: bool) -> None:
    """Open the proposed text in $EDITOR; what you save is approved, and the agent is told what you changed."""
    open_review = _load(review)
    if open_review.statement:
        raise InvalidArgument(f"There is no text to edit. Approve or reject it: {open_review.command('show')}")
    text = _edit_text(open_review.facts["after"], str(open_review.facts["path"]))
    decision = "revise" if is_revision else "approve"
    open_review.decide(decision, as_json=as_json, text=text, reason=message)


@review_group.command("apply", epilog="Example: holdfast review apply 3f2a")
@_id_argument
@json_option
def apply(review: str, *, as_json: bool) -> None:
    """Make the change of a review that you approved, when the agent that should make it has left."""
    open_review = _load(review, ("APPROVE",))
    facts = {name: open_review.facts[name] for name in ("review_id", "shown_hash")}
    result = call_as_person("apply_review", facts)
    lines = [f"Done: {short_path(result['path'])}", f"To take it back: holdfast undo {result['change_id'][:8]}"]
    if result.get("merged_diff"):
        lines.append("Other changes to the file were merged. What is written differs from the approved text by:")
        lines += map(colour_line, escape_diff_lines(result["merged_diff"]))
    click.echo(json_text(result) if as_json else "\n".join(lines))


@review_group.command("withdraw", epilog="Example: holdfast review withdraw 3f2a")
@_id_argument
@json_option
def withdraw(review: str, *, as_json: bool) -> None:
    """Close a review, also one that you approved and that the agent has not made yet; nothing can come of it any more."""
    open_review = _load(review, ("PENDING", "REVIEW", "APPROVE"))
    result = call_as_person("withdraw_review", {"review_id": open_review.facts["review_id"]})
    click.echo(json_text(result) if as_json else f"Closed: {short_path(result['path'])}")


_STATE = {"PENDING": "waits for you", "REVIEW": "waits for the agent", "APPROVE": "approved"}


def _load(review_id: str, actions: Sequence[str] = _UNDECIDED) -> OpenReview:
    return OpenReview(call_as_person("show_review", {"review_id": _complete_id(review_id, actions)}))


def _complete_id(prefix: str, actions: Sequence[str]) -> str:
    """Return the id of the open review that starts with the given text; without one, of the only one that stands so."""
    reviews = call_as_person("pending_reviews", {})["reviews"]
    if prefix:
        matches = [review for review in reviews if review["review_id"].startswith(prefix)]
    else:
        matches = [review for review in reviews if review["user_action"] in actions]
    if not matches:
        none = "No review waits for a decision." if "PENDING" in actions else "No review is approved and not made yet."
        raise NotFound(f"There is no open review {prefix!r}." if prefix else none)
    if len(matches) > 1:
        ids = ", ".join(review["review_id"][:8] for review in matches[:10])
        advice = "Give more of the id." if prefix else "Name one of them."
        raise InvalidArgument(f"Several reviews match: {ids}. {advice}")
    return str(matches[0]["review_id"])


def _print_review(open_review: OpenReview, *, is_split: bool) -> None:
    facts = open_review.facts
    if open_review.statement:
        first, *rest = escape_lines(open_review.statement)
        click.secho(first, bold=True)
        _print_words(facts)
        for line in rest:
            click.echo(colour_line(line))
        return
    what = "a new file" if facts["is_new_file"] else f"round {facts['round']}"
    click.secho(f"{short_path(facts['path'])}  ({what}, {facts['encoding']})", bold=True)
    _print_words(facts)
    if is_split:
        click.echo(side_by_side(facts["before"], facts["after"]))
        return
    for line in coded_lines(open_review.hunks()):
        click.echo(colour_line(line))


def _print_words(facts: dict[str, Any]) -> None:
    """Print what the agent gave as its reason, and what the person said last."""
    if facts["note"]:
        client = escape_invisible(facts["client"]) or "The agent"
        click.echo(f"{client} says: {escape_invisible(facts['note'])}")
    if facts.get("reason"):
        click.echo(f"Your message: {escape_invisible(facts['reason'])}")


def _parse_hunks(hunks: str, open_review: OpenReview) -> list[str]:
    """Return the hashes of the hunks with the given codes."""
    hashes = {hunk["code"]: hunk["hash"] for hunk in open_review.hunks()}
    codes = [code.strip().lower() for code in hunks.split(",")]
    unknown = [code for code in codes if code not in hashes]
    if unknown:
        raise InvalidArgument(
            f"This review has no hunk with the code {unknown[0]!r}. --hunks takes the codes that "
            f"`{open_review.command('show')}` prints, with commas between them."
        )
    return [hashes[code] for code in codes]


def _edit_text(text: str, name: str) -> str:
    """Open a text in the person's editor, byte for byte, in a file of the state folder, where no agent can reach it.

    Returns what the person saved. Raises Conflict when nothing was saved, InvalidArgument when it is not UTF-8.
    """
    folder = tempfile.mkdtemp(prefix=".editing-", dir=state_dir())
    try:
        return _edit_in_folder(folder, text, f"proposal{_suffix(name)}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _edit_in_folder(folder: str, text: str, name: str) -> str:
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        write_new(folder_fd, name, [text.encode()], mode=0o600)
        os.utime(name, ns=(0, 0), dir_fd=folder_fd)  # so that even an editor that is back at once has saved later
        click.edit(filename=os.path.join(folder, name))
        if os.stat(name, dir_fd=folder_fd).st_mtime_ns == 0:
            raise Conflict("Nothing was saved, so nothing was decided.")
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder_fd)
        try:
            return read_all(fd).decode()
        finally:
            os.close(fd)
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"The saved text is not UTF-8: byte {error.start} is invalid.") from None
    finally:
        os.close(folder_fd)


def _suffix(name: str) -> str:
    """Return the suffix of a file's name, by which an editor recognises its type."""
    suffix = name.rpartition(".")[2]
    return f".{suffix}" if suffix != name and suffix.isalnum() and len(suffix) <= 16 else ".txt"
