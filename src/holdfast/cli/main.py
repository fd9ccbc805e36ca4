"""The `holdfast` command line: its commands, each imported when it is used, and its errors as one line and an exit status."""

import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError

from holdfast.cli.command_group import CommandGroup
from holdfast.cli.output import INTERRUPTED_STATUS, paragraphs, print_error, print_json_error, wants_colour
from holdfast.errors import HoldfastError, Internal, InvalidArgument, describe_fault
from holdfast.transport.state_folder import StateFault

_EXAMPLES = """\b
Examples:
  holdfast install claude-code      connect an MCP client; no name: a list
  holdfast stdio ~/project          what an MCP client starts
  holdfast serve ~/project          HTTP, WebSocket, socket in this terminal
  holdfast status --json            is a server running, and where
  holdfast open                     open its console in the browser
  holdfast review                   what agents propose, to approve or reject
  holdfast changes ~/project        what agents did to your files
  holdfast calls --status error     which calls failed
  holdfast undo --since 10m         take it back
  holdfast organise scan DIR        a plan to tidy a folder
  holdfast search "release date" .  passages in a folder, by words and meaning
  holdfast files ls -p notes        the files of the project store
  holdfast index status             how fresh the index of stored files is
  holdfast keys create              a key for a caller that is not you
  holdfast backup create ~/backups  everything Holdfast remembers, in one file
  holdfast tools edit_files --as gemini   a tool as a model's API wants it
  holdfast policy test .env         what agents may do with a file, and why
  holdfast config show              every setting, and where it comes from"""

_HEADINGS = {
    "Connect": ("install", "uninstall", "stdio", "serve", "status", "open", "stop"),
    "Stay in control": ("review", "changes", "undo", "redo", "calls", "policy"),
    "Files": ("organise", "search", "files"),
    "Tools and settings": ("tools", "call", "config", "doctor", "backup", "restore"),
    "Servers for others": ("keys", "index", "worker", "migrate"),
}
"""The headings of the help page, in the order of use, with the commands below each."""

_COMMANDS = {
    "install": "holdfast.cli.commands.install:install_command",
    "uninstall": "holdfast.cli.commands.install:uninstall_command",
    "serve": "holdfast.cli.commands.serve:serve_command",
    "stdio": "holdfast.cli.commands.stdio:stdio_command",
    "status": "holdfast.cli.commands.running:status_command",
    "open": "holdfast.cli.commands.running:open_command",
    "stop": "holdfast.cli.commands.running:stop_command",
    "review": "holdfast.cli.commands.changes.review:review_group",
    "changes": "holdfast.cli.commands.changes.changes:changes_group",
    "calls": "holdfast.cli.commands.changes.calls:calls_command",
    "undo": "holdfast.cli.commands.changes.undo:undo_command",
    "redo": "holdfast.cli.commands.changes.undo:redo_command",
    "organise": "holdfast.cli.commands.organise.organise:organise_group",
    "search": "holdfast.cli.commands.search:search_command",
    "files": "holdfast.cli.commands.files:files_group",
    "index": "holdfast.cli.commands.index:index_group",
    "backup": "holdfast.cli.commands.backup:backup_group",
    "restore": "holdfast.cli.commands.backup:restore_command",
    "worker": "holdfast.cli.commands.deployment:worker_command",
    "keys": "holdfast.cli.commands.keys:keys_group",
    "tools": "holdfast.cli.commands.tools:tools_command",
    "call": "holdfast.cli.commands.tools:call_command",
    "policy": "holdfast.cli.commands.policy:policy_group",
    "config": "holdfast.cli.commands.config:config_group",
    "doctor": "holdfast.cli.commands.doctor:doctor_command",
    "migrate": "holdfast.cli.commands.deployment:migrate_command",
}


_ALIASES = {"organize": "organise"}
"""Other spellings of commands; they work and are not listed."""

_OTHER_WORDS = {
    "find": "search",
    "health": "doctor",
    "history": "changes",
    "key": "keys",
    "list": "changes",
    "log": "calls",
    "logs": "calls",
    "revert": "undo",
    "rollback": "undo",
    "settings": "config",
    "sort": "organise",
    "start": "serve",
    "tidy": "organise",
}
"""What a person may call a command that has another name here."""


class LazyGroup(CommandGroup):
    """Imports a command when it is used, and prints errors as one line on stderr, never a traceback."""

    headings = _HEADINGS

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is click's
        """Return the names in the order of the help page."""
        return [name for names in _HEADINGS.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - likewise
        """Return the command of that name, importing its module."""
        target = _COMMANDS.get(_ALIASES.get(cmd_name, cmd_name))
        if target is None:
            return None
        module, _, name = target.partition(":")
        command = getattr(import_module(module), name)
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name. UsageError with the nearest name when there is none."""
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        nearest = _OTHER_WORDS.get(name.lower()) or next(iter(get_close_matches(name.lower(), _COMMANDS, n=1)), None)
        hint = (
            f"Did you mean `holdfast {nearest}`?" if nearest in _COMMANDS else "`holdfast --help` lists the commands."
        )
        raise click.UsageError(f"No such command {name!r}. {hint}", ctx)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of ours ends the process with its own exit status."""
        if not wants_colour():
            ctx.color = False
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            message = paragraphs(error.format_message())
            print_json_error(ctx, InvalidArgument(message).payload())
            raise error if isinstance(error, NoArgsIsHelpError) else click.UsageError(message, error.ctx) from None
        except HoldfastError as error:
            print_error(ctx, error.message, error.payload())
            sys.exit(error.exit_status)
        except StateFault as fault:
            print_error(ctx, str(fault), Internal(str(fault)).payload())
            sys.exit(fault.exit_status)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            click.echo(err=True)
            sys.exit(INTERRUPTED_STATUS)
        except Exception as fault:  # noqa: BLE001 - the last resort: a line that says what failed, and no trace
            known = describe_fault(fault)
            print_error(ctx, known.message, known.payload())
            sys.exit(known.exit_status)


def _print_version(context: click.Context, parameter: click.Parameter, is_asked: bool) -> None:
    if is_asked and not context.resilient_parsing:
        from holdfast.cli.version import version_text

        click.echo(f"holdfast, version {version_text()}")
        context.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    help="The file server that AI agents can be trusted with.",
    epilog=_EXAMPLES,
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print version and commit.",
)
def cli() -> None:
    """Run a command."""
