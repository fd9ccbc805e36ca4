"""`holdfast serve`: runs the server in this terminal, or in the background when a relay starts it."""

import asyncio
import logging
import os
import socket
import threading
import webbrowser
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import click

from holdfast.auth.context import LOCAL_USER, Caller, Restrictions
from holdfast.cli.commands.running import create_console_link
from holdfast.cli.commands.stdio import serve_in_process
from holdfast.cli.startup import load_settings, log_to_stderr, open_state_folder
from holdfast.config.environment import root_dirs
from holdfast.config.load import LoadedSettings
from holdfast.config.settings import Settings
from holdfast.errors import HoldfastError, InvalidArgument
from holdfast.text.display import display_name
from holdfast.transport.client.dial import NoServer
from holdfast.transport.lifecycle import BACKGROUND, FOREGROUND, hold_server_lock
from holdfast.transport.shutdown import MAX_EXIT_SECONDS, exit_within
from holdfast.transport.state_folder import StateFolder

_log = logging.getLogger(__name__)

_EPILOG = """\b
Example:
  holdfast serve ~/project --port 9000
  curl -H "Authorization: Bearer $(cat STATE/agent.token)" http://127.0.0.1:9000/mcp …"""


@click.command("serve", epilog=_EPILOG)
@click.argument("directories", nargs=-1, metavar="[DIR]...")
@click.option("--host", help="Address to listen on (setting server.host, 127.0.0.1).")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port to listen on (setting server.port, 8124; 0: any free)."
)
@click.option("--http-host", help="Address of /mcp and /ws, if different from --host.")
@click.option("--http-port", type=click.IntRange(0, 65535), help="Port of /mcp and /ws, if different from --port.")
@click.option(
    "--trusted-proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="Proxy that speaks TLS for this server, besides those of the setting server.trusted_proxies; may be repeated.",
)
@click.option("--settings", "settings_path", metavar="FILE", help="The settings file to read.")
@click.option("--no-ui", is_flag=True, help="Do not serve the web pages.")
@click.option("--no-http", is_flag=True, help="Do not serve /mcp and /ws; with --no-ui, speak MCP on stdin and stdout.")
@click.option("--open", "opens_browser", is_flag=True, help="Open the console in the browser once it is up.")
@click.option("--background", is_flag=True, hidden=True)
def serve_command(
    directories: tuple[str, ...],
    host: str | None,
    port: int | None,
    http_host: str | None,
    http_port: int | None,
    proxies: tuple[str, ...],
    settings_path: str | None,
    *,
    no_ui: bool,
    no_http: bool,
    opens_browser: bool,
    background: bool,
) -> None:
    """Run the server until Ctrl-C: MCP at /mcp, WebSocket at /ws, /health, and the socket that relays use.

    DIR are the directories that agents may use over HTTP; without any there are no file tools there.
    A background server that is running is asked to finish and is replaced.
    """
    log_to_stderr()
    if no_ui and no_http:
        serve_in_process(directories, settings_path, Restrictions())
        return
    from holdfast.transport.doors.http_server import listen_on

    loaded = _with_proxies(load_settings(settings_path), proxies)
    folder = open_state_folder()
    if background:
        log_to_stderr(folder)
    addresses = _addresses(loaded.settings, host, port, http_host, http_port)
    with ExitStack() as stack:
        stack.enter_context(hold_server_lock(folder, BACKGROUND if background else FOREGROUND))
        listeners = tuple(
            stack.enter_context(
                listen_on(host, port, or_any_port=background, is_protected=loaded.settings.server.is_protected)
            )
            for host, port in addresses
        )
        _run(stack, folder, loaded, directories, listeners, no_ui, no_http, background, opens_browser and not no_ui)
    exit_within(MAX_EXIT_SECONDS)


def _run(
    stack: ExitStack,
    folder: StateFolder,
    loaded: LoadedSettings,
    directories: tuple[str, ...],
    listeners: tuple[socket.socket, ...],
    no_ui: bool,
    no_http: bool,
    background: bool,
    opens_browser: bool,
) -> None:
    from holdfast.transport.server import Server, ServerOptions
    from holdfast.wiring.build import build

    settings = loaded.settings
    parts = build(settings, folder.path, loaded.path, is_measured=True)
    stack.callback(parts.close)
    directories = directories or tuple(settings.folders.roots) or tuple(root_dirs())
    roots = parts.folders.open_roots(Caller(LOCAL_USER, roots=directories, cwd=os.getcwd())) if directories else []
    announce = partial(_print_addresses, folder, roots, not no_http, not no_ui, opens_browser)
    options = ServerOptions(
        folder=folder,
        settings=settings,
        kind=BACKGROUND if background else FOREGROUND,
        dispatcher=parts.dispatcher,
        open_roots=parts.folders.open_roots,
        listeners=listeners,
        roots=tuple(roots),
        has_mcp=not no_http,
        has_console=not no_ui,
        find_tenant=parts.tenant_of,
        has_work=parts.has_work,
        release=parts.release,
        index_status=parts.index_status,
        warnings=parts.app.changes.storage_warnings,
        announce=_log_address if background else announce,
        known_roots=parts.known_roots,
        bulletin=parts.app.bulletin,
        issuer_keys=parts.issuer_keys,
    )
    parts.workers.start()
    asyncio.run(Server(options).run())


def _with_proxies(loaded: LoadedSettings, proxies: tuple[str, ...]) -> LoadedSettings:
    """Return the settings with more trusted proxies. Raises InvalidArgument for what is no address."""
    from pydantic import ValidationError

    from holdfast.config.server_settings import ServerSettings

    server = loaded.settings.server
    try:
        ServerSettings(trusted_proxies=list(proxies))
    except ValidationError as error:
        reason = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise InvalidArgument(f"--trusted-proxy: {reason}") from None
    server = server.model_copy(update={"trusted_proxies": [*server.trusted_proxies, *proxies]})
    return replace(loaded, settings=loaded.settings.model_copy(update={"server": server}))


def _addresses(
    settings: Settings, host: str | None, port: int | None, http_host: str | None, http_port: int | None
) -> list[tuple[str, int]]:
    """Return where to listen: one address for everything, and a second one when HTTP was given its own."""
    first = (host or settings.server.host, settings.server.port if port is None else port)
    second = (http_host or first[0], first[1] if http_port is None else http_port)
    if host is None and port is None:
        return [second]
    return [first] if first == second else [first, second]


def _log_address(url: str) -> None:
    _log.info("background server %d at %s", os.getpid(), url)


def _print_addresses(
    folder: StateFolder, roots: list[str], has_mcp: bool, has_console: bool, opens_browser: bool, url: str
) -> None:
    """Print how to reach the server; no link to the console, since one works for a minute alone."""
    click.echo(f"Holdfast is running (pid {os.getpid()}). Ctrl-C ends it.", err=True)
    if has_mcp:
        click.echo(
            f"  MCP       {url}/mcp    with: Authorization: Bearer $(cat {folder.file('agent.token')!r})", err=True
        )
        folders = ", ".join(map(display_name, roots)) or "none over HTTP: give DIR to allow directories"
        click.echo(f"  folders   {folders}", err=True)
    if has_console:
        click.echo(f"  console   {url}    open it with: holdfast open", err=True)
    click.echo("  stdio     holdfast stdio DIR…", err=True)
    if opens_browser:
        threading.Thread(target=_open_browser, args=(folder,), name="holdfast-open", daemon=True).start()


def _open_browser(folder: StateFolder) -> None:
    """Open the console in the browser, which may take its time: the server goes on meanwhile."""
    try:
        has_opened = webbrowser.open(create_console_link(folder))
    except (NoServer, HoldfastError, OSError):
        has_opened = False
    if not has_opened:
        click.echo("No browser could be opened; `holdfast open --print` prints a link to the console.", err=True)
