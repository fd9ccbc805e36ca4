"""`holdfast stdio --in-process`: runs the server in the process that the MCP client started.

Without that option `holdfast.__main__` starts the relay before the command line is imported.
"""

import asyncio
import os
import sys
from contextlib import ExitStack

import click

from holdfast.auth.context import LOCAL_USER, Caller, Door, Restrictions
from holdfast.cli.startup import load_settings, log_to_stderr
from holdfast.config.environment import root_dirs, state_dir
from holdfast.errors import HoldfastError, InvalidArgument, describe_fault
from holdfast.transport.client.dial import Client
from holdfast.transport.client.relay import Relay
from holdfast.transport.client.relay import main as relay
from holdfast.transport.lifecycle import IN_PROCESS, hold_server_lock
from holdfast.transport.shutdown import MAX_EXIT_SECONDS, exit_within
from holdfast.transport.state_folder import StateFault, StateFolder

_EPILOG = """\b
Example, as MCP clients are configured:
  {"command": "holdfast", "args": ["stdio", "/home/me/project"]}"""


@click.command("stdio", epilog=_EPILOG)
@click.argument("directories", nargs=-1, metavar="[DIR]...")
@click.option("--in-process", is_flag=True, help="Serve from this process, without a shared server.")
@click.option("--settings", "settings_path", metavar="FILE", help="The settings file; with --in-process only.")
@click.option("--read-only", is_flag=True, help="Offer this client no tool that changes anything.")
@click.option("--review", is_flag=True, help="Let every change of a local file by this client wait for you.")
@click.option(
    "--tools", metavar="GROUP[,GROUP]", help="Offer only these groups: files, review, organise, store, search."
)
def stdio_command(
    directories: tuple[str, ...],
    settings_path: str | None,
    tools: str | None,
    *,
    in_process: bool,
    read_only: bool,
    review: bool,
) -> None:
    """Speak MCP on stdin and stdout; this is what an MCP client starts.

    DIR are the directories the client's agent may use; roots that the client declares narrow them. Without any, the
    declared roots are used, or else the working directory, unless that is / or the home folder. The work is done by
    one server for all clients, started in the background when there is none.
    """
    if in_process:
        log_to_stderr()
        serve_in_process(directories, settings_path, Restrictions(read_only, review, _parse_groups(tools)))
        return
    if settings_path is not None:
        raise click.UsageError("--settings goes with --in-process: the shared server has its own settings file.")
    flags = [flag for flag, is_set in (("--read-only", read_only), ("--review", review)) if is_set]
    flags += [] if tools is None else [f"--tools={tools}"]
    sys.exit(relay([*flags, "--", *directories]))


def _parse_groups(tools: str | None) -> frozenset[str] | None:
    from holdfast.transport.doors.restrictions import parse_groups

    try:
        return None if tools is None else parse_groups(tools.split(","))
    except InvalidArgument as error:
        raise click.UsageError(error.message) from None


def serve_in_process(directories: tuple[str, ...], settings_path: str | None, restrictions: Restrictions) -> None:
    """Be the one server of the state folder, for this client and for those that connect to the socket."""
    from holdfast.transport.doors.streams.client_roots import RefusedConnection
    from holdfast.transport.doors.streams.stdio import claim_stdout

    stdout = claim_stdout()
    folder = StateFolder(state_dir())
    try:
        folder.prepare()
        with ExitStack() as stack:
            _serve(stack, folder, directories, settings_path, restrictions, stdout)
        exit_within(MAX_EXIT_SECONDS)
    except Exception as fault:  # noqa: BLE001 - whatever it is, the client is answered
        # A relay without a server answers every request of the client with the error.
        unanswered = fault.request_id if isinstance(fault, RefusedConnection) else None
        reason = fault.fault if isinstance(fault, RefusedConnection) else fault
        error = reason if isinstance(reason, StateFault) else describe_fault(reason)
        code = error.code if isinstance(error, HoldfastError) else "INTERNAL"
        relay_without_server = Relay(folder, Client("agent", [], [], "/"), stdout=stdout)
        sys.exit(relay_without_server.give_up(code, str(error), error.exit_status, unanswered))


def _serve(
    stack: ExitStack,
    folder: StateFolder,
    directories: tuple[str, ...],
    settings_path: str | None,
    restrictions: Restrictions,
    stdout: int,
) -> None:
    from holdfast.transport.doors.streams.client_roots import open_connection_roots
    from holdfast.transport.server import Server, ServerOptions
    from holdfast.wiring.build import build

    loaded = load_settings(settings_path)
    settings = loaded.settings
    stack.enter_context(hold_server_lock(folder, IN_PROCESS))
    parts = build(settings, folder.path, loaded.path)
    stack.callback(parts.close)
    roots = directories or tuple(settings.folders.roots) or tuple(root_dirs())
    caller = Caller(LOCAL_USER, roots=roots, cwd=os.getcwd(), door=Door.STDIO, restrictions=restrictions)
    connection = open_connection_roots(caller, parts.folders.open_roots)
    options = ServerOptions(
        folder,
        settings,
        IN_PROCESS,
        parts.dispatcher,
        parts.folders.open_roots,
        stdio=(connection, stdout),
        release=parts.release,
        index_status=parts.index_status,
        warnings=parts.app.changes.storage_warnings,
    )
    parts.workers.start()
    asyncio.run(Server(options).run())
