"""`holdfast policy`: shows the rules of the policy, and says what a rule gives to a path."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.command_group import CommandGroup
from holdfast.cli.commands.config import settings_option
from holdfast.cli.output import json_option, json_text
from holdfast.cli.startup import load_settings
from holdfast.config.environment import root_dirs
from holdfast.text.display import display_name

if TYPE_CHECKING:
    from holdfast.folders.access.policy_rules import Rules

_STATUSES = {"yes": 0, "after your approval": 3, "no": 13}
_SHOW_EPILOG = """\b
Example:
  holdfast policy show"""
_TEST_EPILOG = """\b
Examples:
  holdfast policy test ~/project/.env
  holdfast policy test ~/project/src/main.py --for write --client claude-code"""


_EXAMPLES = """\b
Examples:
  holdfast policy show                                 the rules, and what each is for
  holdfast policy test ~/project/.env                  what agents may do with a file, and why
  holdfast policy test ~/project/src/main.py --for write --client claude-code"""


@click.group("policy", cls=CommandGroup, epilog=_EXAMPLES)
def policy_group() -> None:
    """Show and try the rules that say what agents may do with which paths.

    The rules are `policy.rules` of the settings file: each gives an access (allow, review, read-only or deny) to what its
    root, glob and client match, and the strictest rule wins. A running server takes up a changed file by itself.
    """


@policy_group.command("show", epilog=_SHOW_EPILOG)
@settings_option
@json_option
def show(path: str | None, *, as_json: bool) -> None:
    """Print the rules in their order, with what each is for and where it comes from."""
    from holdfast.folders.access.policy_rules import describe_rules

    rules, source = _load_rules(path)
    if as_json:
        click.echo(json_text({"settings": source, "rules": describe_rules(rules)}, indent=2))
        return
    numbered = [rule for rule in rules if rule.number]
    click.echo(f"{display_name(source)}: " + ("no rules." if not numbered else "the strictest rule that matches wins."))
    for rule in rules:
        root = display_name(rule.roots[-1]) if rule.roots else "each allowed directory"
        what = f"{display_name(rule.glob)} in {root}" if rule.glob else f"all of {root}" if rule.number else root
        client = f"clients {display_name(rule.client)}" if rule.client else "every client"
        click.echo(f"{rule.number or '-':>3}  {rule.access!s:<9}  {what}, for {client}" + _note(rule.number))


@policy_group.command("test", epilog=_TEST_EPILOG)
@click.argument("tested_path", metavar="PATH")
@click.option("--client", default="", metavar="NAME", help="The name that an MCP client declares; none by default.")
@click.option(
    "--for",
    "purpose",
    type=click.Choice(["read", "write"]),
    default="write",
    show_default=True,
    help="What the agent wants to do.",
)
@click.option("--root", "roots", multiple=True, metavar="DIR", help="The allowed directories of the connection.")
@settings_option
@json_option
def test(
    tested_path: str, client: str, purpose: str, roots: tuple[str, ...], path: str | None, *, as_json: bool
) -> None:
    """Say which access a client has to a path, and by which rule; nothing needs to exist there.

    Without --root the allowed directories are those of the settings and of ROOT_DIR, else the working directory. The exit
    status is 0 when the agent may do it by itself, 3 when it waits for you, and 13 when it is refused.
    """
    from holdfast.folders.access.policy_rules import decide_access

    rules, _source = _load_rules(path)
    allowed = [os.path.realpath(Path(root).expanduser()) for root in roots or _usual_roots(path)]
    decision = decide_access(rules, tested_path, client, allowed)
    real, access, source, rule = decision.path, decision.access, decision.source, decision.rule
    answer = decision.answer_for("read" if purpose == "read" else "write")
    if as_json:
        data = {"path": real, "access": str(access), "for": purpose, "answer": answer, "source": source}
        click.echo(json_text({**data, "rule": rule.number if rule else None}, indent=2))
    else:
        click.echo(f"{display_name(real)}: {access} ({source}). May an agent {purpose} it? {answer.capitalize()}.")
        if not roots:
            assumed = ", ".join(map(display_name, allowed))
            click.echo(f"Its allowed directories are taken to be {assumed}; name others with --root.", err=True)
    sys.exit(_STATUSES[answer])


def _load_rules(path: str | None) -> "tuple[Rules, str]":
    from holdfast.config.load import PolicyFile
    from holdfast.folders.access.policy_rules import build_rules

    loaded = load_settings(path)
    source = PolicyFile(loaded.path).path
    return build_rules(loaded.settings.policy, source), source


def _usual_roots(path: str | None) -> list[str]:
    return load_settings(path).settings.folders.roots or root_dirs() or [os.getcwd()]


def _note(number: int) -> str:
    return "" if number else " (built in: no agent may see or change the rules)"
