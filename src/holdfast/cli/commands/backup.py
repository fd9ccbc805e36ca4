"""`holdfast backup` and `restore`: copy everything that Holdfast remembers to one file, verify it, put it back."""

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.command_group import CommandGroup
from holdfast.cli.output import confirm, json_option, json_text, local_time, paragraphs, quantity
from holdfast.cli.progress import explain_interruption, progress_bar
from holdfast.cli.startup import open_state_folder
from holdfast.text.display import display_name
from holdfast.transport.lifecycle import COMMAND, hold_server_lock
from holdfast.transport.pending_restore import begin_restore, complete_restore

if TYPE_CHECKING:
    from holdfast.backup.model import BackupContents

_EXAMPLES = """\b
Examples:
  holdfast backup create ~/backups
  holdfast backup create ~/backups/monday.tar --with-secrets
  holdfast backup verify ~/backups/monday.tar
  holdfast restore ~/backups/monday.tar"""


@click.group("backup", cls=CommandGroup, epilog=_EXAMPLES)
def backup_group() -> None:
    """Copy the state folder to one file, beside a running server, and verify such files. `holdfast restore` puts one back.

    In it are the journal with everything that undo needs, reviews, plans, API keys (as hashes), the call log, the project
    store and the settings. Your own files in folders are not: back them up as you do.
    """


@backup_group.command("create", epilog="Example: holdfast backup create ~/backups --json")
@click.argument("path", metavar="FILE|DIR")
@click.option(
    "--with-secrets", is_flag=True, help="Also agent.token, person.key, metrics.token, and settings that hold secrets."
)
@json_option
def create(path: str, *, with_secrets: bool, as_json: bool) -> None:
    """Make a backup at FILE, or in DIR under the name of the time. A file that is there is never replaced.

    The server may run and agents may change files: the backup has everything that was acknowledged before it began. It
    gets its name when all of it is on the disk; only you can read it. It is neither encrypted nor compressed.
    """
    from holdfast.wiring.backups import create_backup

    folder = open_state_folder()
    if os.path.isdir(path):
        path = os.path.join(path, datetime.now(UTC).strftime("holdfast-%Y%m%dT%H%M%SZ.tar"))

    def explain() -> list[str]:
        return ["Stopped: no backup was made."]

    with explain_interruption(explain), progress_bar(is_hidden=as_json) as progress:
        contents = create_backup(folder.path, os.path.abspath(path), progress or _ignore, has_secrets=with_secrets)
    _print(contents, f"Backed up to {display_name(contents.path)}", as_json=as_json)


@backup_group.command("verify", epilog="Example: holdfast backup verify ~/backups/monday.tar")
@click.argument("path", metavar="FILE")
@json_option
def verify(path: str, *, as_json: bool) -> None:
    """Read every byte of a backup and compare it with its checksums; the exit code is 74 when it is damaged."""
    from holdfast.wiring.backups import check_backup

    with progress_bar(is_hidden=as_json) as progress:
        contents = check_backup(os.path.abspath(path), progress or _ignore)
    _print(contents, f"{display_name(contents.path)} is whole", as_json=as_json)


@click.command("restore", epilog="Example: HOLDFAST_STATE_DIR=~/elsewhere holdfast restore ~/backups/monday.tar")
@click.argument("path", metavar="FILE")
@click.option("--yes", is_flag=True, help="Do not ask before a state that is there is replaced.")
@json_option
def restore_command(path: str, *, yes: bool, as_json: bool) -> None:
    """Make a backup the state of Holdfast, verified first; what was there is kept in a folder beside it.

    No server may run: `holdfast stop` ends it. A restore happens as a whole or not at all: one that is cut short after
    it was verified is completed by the next command or server. Your own files stay as they are. `holdfast undo` works as
    it did when the backup was made, where the files are still what they were then.
    """
    from holdfast.wiring.backups import stage_restore

    folder = open_state_folder()
    if os.path.exists(folder.file("state.db")) and not yes:
        confirm(
            f"Replace the state in {display_name(folder.path)}? It is kept aside.",
            "Nothing was restored.",
            "Give --yes to replace the state that is there.",
        )

    def explain() -> list[str]:
        return ["Stopped: nothing was restored."]

    with hold_server_lock(folder, COMMAND):
        with explain_interruption(explain), progress_bar(is_hidden=as_json) as progress:
            staged = stage_restore(folder.path, os.path.abspath(path), progress or _ignore)
            begin_restore(folder.path, staged.staged, staged.aside, staged.replaced)
        complete_restore(folder.path)
    before = folder.file(staged.aside)
    more = {"state": folder.path, "before": before if os.path.isdir(before) else None}
    _print(staged.contents, f"Restored to {display_name(folder.path)}", as_json=as_json, **more)
    if more["before"] and not as_json:
        click.echo(f"What was there is in {display_name(before)}; remove it when you are sure.")


def _print(contents: "BackupContents", headline: str, *, as_json: bool, **more: Any) -> None:
    manifest = contents.manifest
    if as_json:
        facts = {"file": contents.path, "bytes": contents.bytes, "sha256": contents.sha256}
        click.echo(json_text({**facts, **more, **manifest.to_json()}))
        return
    files = sum(part.type == "file" for part in manifest.parts)
    click.echo(
        f"{headline}: {quantity(files, 'file')}, {quantity(contents.bytes, 'byte')}, made {local_time(manifest.created_at)} "
        f"by Holdfast {manifest.version}."
    )
    click.echo(f"SHA-256 {contents.sha256}")
    for absence in manifest.absences:
        click.echo(paragraphs(f"Not in it: {absence.name}: {absence.reason}."))


def _ignore(_done: float, _total: float | None, _doing: str) -> None:
    """Report nothing."""
