"""`holdfast status`, `open` and `stop`: the server that is running, whoever started it."""

import sys
import time
import webbrowser
from contextlib import suppress

import click

from holdfast.cli.output import json_option, json_text
from holdfast.config.environment import state_dir
from holdfast.errors import HoldfastError, Internal, ResourceBusy
from holdfast.transport.client.dial import Client, Message, NoServer, ServerRefusal, send_control
from holdfast.transport.client.launch import CannotStart, reach
from holdfast.transport.lifecycle import COMMAND
from holdfast.transport.shutdown import LONGEST_SECONDS
from holdfast.transport.state_folder import StateFolder

NOT_RUNNING_STATUS = 3
_STOP_SECONDS = LONGEST_SECONDS + 3


@click.command("status", epilog="Example: holdfast status --json")
@json_option
def status_command(*, as_json: bool) -> None:
    """Say whether a server is running, where, and since when; the exit code is 3 when none is."""
    folder = _folder()
    try:
        found: Message = {"running": True, **_asked(folder, "status")}
        found.pop("ok", None)
    except NoServer:
        found = {"running": False, "silent_pid": folder.server_lock.holder().get("pid")}
    if as_json:
        click.echo(json_text(found))
    else:
        click.echo(_described(found))
    if not found["running"]:
        sys.exit(NOT_RUNNING_STATUS)


@click.command("open", epilog="Example: holdfast open --print")
@click.option("--print", "print_only", is_flag=True, help="Print the link instead of opening the browser.")
def open_command(*, print_only: bool) -> None:
    """Open the console in the browser by a link that works once, for 60 seconds. Starts the server if none is running."""
    folder = _folder()
    try:
        answer = _asked(folder, "link")
    except NoServer:
        start_server(folder)
        answer = _asked(folder, "link")
    url = str(answer["url"])
    if print_only or not webbrowser.open(url):
        click.echo(url)


@click.command("stop", epilog="Example: holdfast stop")
def stop_command() -> None:
    """End the server after its running calls, within seconds; the exit code is 3 when none is running.

    A call that does not end is cut off. Exit code 75 when the process is still there after all.
    """
    folder = _folder()
    deadline = time.monotonic() + _STOP_SECONDS
    holder = folder.server_lock.holder()
    pid = holder.get("pid")
    if holder.get("kind", COMMAND) == COMMAND:
        click.echo("No server is running.")
        sys.exit(NOT_RUNNING_STATUS)
    # One that does not answer is starting, ending or stuck; its lock tells, which lasts as long as its process.
    with suppress(NoServer):
        _asked(folder, "stop")
    while folder.server_lock.holder().get("pid") == pid:
        if time.monotonic() > deadline:
            raise ResourceBusy(
                f"The server (pid {pid}) was asked to stop and is still running. `kill -9 {pid}` ends it at once; "
                "what it has acknowledged is safe."
            )
        time.sleep(0.02)
    click.echo(f"The server (pid {pid}) has ended.")


def _folder() -> StateFolder:
    folder = StateFolder(state_dir())
    folder.prepare()
    return folder


def _asked(folder: StateFolder, action: str) -> Message:
    try:
        return send_control(folder, action)
    except ServerRefusal as refusal:
        raise HoldfastError(str(refusal)) from None


def start_server(folder: StateFolder) -> None:
    """Make sure that a server is running, in the background if nobody started one."""
    try:
        line, _welcome = reach(folder, Client("control", [], [], "/"), own_version=True)
        line.close()
    except CannotStart as fault:
        raise Internal(str(fault)) from None


def _described(found: Message) -> str:
    if not found["running"]:
        silent = found.get("silent_pid")
        return f"A server (pid {silent}) is there but does not answer." if silent else "No server is running."
    where = f" at {found['url']}" if found.get("url") else ""
    return (
        f"A {found['kind']} server {found['version']} is running (pid {found['pid']}){where}, "
        f"for {found['uptime_seconds']} s, with {found['connections']} connections."
    )
