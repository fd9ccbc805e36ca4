"""`holdfast status`, `open` and `stop`: show, open or end the running server."""

import os
import sys
import time
import webbrowser
from contextlib import suppress
from typing import NoReturn, cast

import click

from holdfast.cli.commands.figures_text import Figures, Snapshot, describe_figures
from holdfast.cli.output import duration, json_option, json_text, quantity
from holdfast.cli.startup import open_state_folder
from holdfast.clock import utc_now
from holdfast.config.environment import STATE_DIR_VARIABLE, plain_state_dir
from holdfast.errors import HoldfastError, Internal, ResourceBusy
from holdfast.text.display import escape_invisible
from holdfast.transport.client.dial import Client, Message, NoServer, ServerRefusal, send_control
from holdfast.transport.client.launch import CannotStart, reach
from holdfast.transport.lifecycle import COMMAND
from holdfast.transport.shutdown import MAX_SHUTDOWN_SECONDS
from holdfast.transport.state_folder import StateFolder

NOT_RUNNING_STATUS = 3
_CLEAR = "\x1b[H\x1b[2J"
_STATUS_EXAMPLES = """\b
Examples:
  holdfast status --json
  holdfast status --watch              what the server does, every two seconds
  holdfast status --watch --json       the same figures for a program, one line for each look"""
_STOP_SECONDS = MAX_SHUTDOWN_SECONDS + 3


@click.command("status", epilog=_STATUS_EXAMPLES)
@click.option("--watch", "-w", is_flag=True, help="Keep showing what the server does, until Ctrl-C.")
@click.option(
    "--interval",
    default=2.0,
    show_default=True,
    type=click.FloatRange(0.1, 3_600),
    metavar="SECONDS",
    help="Seconds between two updates with --watch.",
)
@json_option
def status_command(*, watch: bool, interval: float, as_json: bool) -> None:
    """Print whether a server is running, where, and for how long; the exit code is 3 when none is.

    With --watch also how many calls, errors, searches and changes there are, how long they take and what waits; with
    --json one line for each look.
    """
    folder = open_state_folder()
    if watch:
        _watch(folder, interval, as_json=as_json)
    status = _load_status(folder)
    click.echo(json_text(status) if as_json else _describe(status))
    if not status["running"]:
        sys.exit(NOT_RUNNING_STATUS)


def _load_status(folder: StateFolder) -> Message:
    try:
        status: Message = {"running": True, **_send_control(folder, "status")}
        status.pop("ok", None)
    except NoServer:
        return {"running": False, "silent_pid": folder.server_lock.holder().get("pid"), **_find_elsewhere(folder)}
    return status


def _watch(folder: StateFolder, interval: float, *, as_json: bool) -> NoReturn:
    """Show the server again and again; one that ends or starts meanwhile is seen."""
    before: Snapshot = {}
    looked_at, pid = time.monotonic(), None
    while True:
        status, figures, now = _load_status(folder), _load_figures(folder), time.monotonic()
        if status.get("pid") != pid:
            before, pid = {}, status.get("pid")
        seconds, looked_at = now - looked_at, now
        if as_json:
            click.echo(json_text({"at": utc_now(), **status, "figures": figures}))
        else:
            lines = [_describe(status)]
            if figures:
                lines += ["", *describe_figures(Figures(figures, before, seconds if before else 0.0))]
            elif status["running"]:
                lines.append("Nothing is counted: settings.observe.metrics.enabled is false.")
            if sys.stdout.isatty():
                click.echo(_CLEAR, nl=False, color=True)
            click.echo(f"{chr(10).join(lines)}\n")
        before = figures
        time.sleep(interval)


def _load_figures(folder: StateFolder) -> Snapshot:
    try:
        return cast("Snapshot", _send_control(folder, "metrics")["figures"])
    except NoServer:
        return {}


@click.command("open", epilog="Example: holdfast open --print")
@click.option("--print", "print_only", is_flag=True, help="Print the link instead of opening the browser.")
def open_command(*, print_only: bool) -> None:
    """Open the console in the browser by a link that works once, for 60 seconds. Starts the server if none is running."""
    folder = open_state_folder()
    try:
        url = create_console_link(folder)
    except NoServer:
        start_server(folder)
        url = create_console_link(folder)
    if print_only or not webbrowser.open(url):
        click.echo(url)


def create_console_link(folder: StateFolder) -> str:
    """Return a link that signs one browser in to the running server's console. Raises NoServer."""
    return str(_send_control(folder, "link")["url"])


@click.command("stop", epilog="Example: holdfast stop")
def stop_command() -> None:
    """End the server after its running calls, within seconds; the exit code is 3 when none is running.

    A call that does not end is cut off. The exit code is 75 when the process is still there after 18 seconds.
    """
    folder = open_state_folder()
    deadline = time.monotonic() + _STOP_SECONDS
    holder = folder.server_lock.holder()
    pid = holder.get("pid")
    if holder.get("kind", COMMAND) == COMMAND:
        click.echo("No server is running.")
        sys.exit(NOT_RUNNING_STATUS)
    # A server that does not answer is starting, ending or stuck. Its lock lasts as long as its process.
    with suppress(NoServer):
        _send_control(folder, "stop")
    while folder.server_lock.holder().get("pid") == pid:
        if time.monotonic() > deadline:
            raise ResourceBusy(
                f"The server (pid {pid}) was asked to stop and is still running. `kill -9 {pid}` ends it at once; "
                "what it has acknowledged is safe."
            )
        time.sleep(0.02)
    click.echo(f"The server (pid {pid}) has ended.")


def _send_control(folder: StateFolder, action: str) -> Message:
    try:
        return send_control(folder, action)
    except ServerRefusal as refusal:
        raise HoldfastError(str(refusal)) from None


def start_server(folder: StateFolder) -> None:
    """Start a background server unless one is running. Raises Internal when it cannot be started."""
    try:
        connection, _welcome = reach(folder, Client("control", [], [], "/"), own_version=True)
        connection.close()
    except CannotStart as fault:
        raise Internal(str(fault)) from None


def _find_elsewhere(folder: StateFolder) -> Message:
    """Return the server of the state folder that a program has which does not get this shell's variables."""
    path = plain_state_dir()
    if os.path.realpath(path) == os.path.realpath(folder.path):
        return {}
    holder: Message = {}
    with suppress(OSError):
        holder = StateFolder(path).server_lock.holder()
    is_server = holder.get("kind", COMMAND) != COMMAND
    return {"elsewhere": {"state_folder": path, "pid": holder.get("pid")}} if is_server else {}


def _describe_elsewhere(status: Message) -> str:
    elsewhere = status.get("elsewhere")
    if not isinstance(elsewhere, dict):
        return ""
    return (
        f" Another one (pid {elsewhere['pid']}) serves the state folder {elsewhere['state_folder']!r}: a client that does "
        f"not get {STATE_DIR_VARIABLE} from this shell uses that one. Give the client the variable, or unset it here."
    )


def _describe(status: Message) -> str:
    if not status["running"]:
        silent = status.get("silent_pid")
        if silent:
            return f"A server (pid {silent}) holds the lock but does not answer."
        return f"No server is running.{_describe_elsewhere(status)}"
    where = f" at {status['url']}" if status.get("url") else ""
    connections = quantity(int(str(status["connections"])), "connection")
    warnings = status.get("warnings")
    summary = (
        f"A {status['kind']} server {status['version']} is running (pid {status['pid']}){where}, "
        f"for {duration(float(str(status['uptime_seconds'])))}, with {connections}."
    )
    lines = [
        summary,
        *(f"Warning: {warning}" for warning in (warnings if isinstance(warnings, list) else [])),
    ]
    return "\n".join(map(escape_invisible, lines))
