"""`holdfast install` and `holdfast uninstall`: put Holdfast into the configuration of an MCP client, or take it out."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.output import colour_line, confirm, json_option, json_text, short_path, table_row
from holdfast.config_files.entry import ENTRY_NAME
from holdfast.errors import InvalidArgument
from holdfast.text.display import display_name, escape_diff_lines

if TYPE_CHECKING:
    from holdfast.config_files.clients import McpClient
    from holdfast.config_files.entry import EntryOptions
    from holdfast.config_files.machine import ClientHere
    from holdfast.config_files.target import ConfigEdit, Target

_WITHOUT_TERMINAL = "Nothing was written. Look at the change with --dry-run, then add --yes."
_ALIASES = {"claude": "claude-code", "code": "vscode", "vs-code": "vscode", "gemini-cli": "gemini", "codex-cli": "codex",
            "lmstudio": "lm-studio"}  # fmt: skip

_INSTALL_EXAMPLES = """\b
Examples:
  holdfast install                                the clients, and which are on this machine
  holdfast install claude-code                    the agent gets the folder it works in
  holdfast install claude-desktop ~/notes         the agent gets this folder
  holdfast install cursor --project               for this project only: .cursor/mcp.json
  holdfast install codex --read-only --dry-run    show the change, write nothing
  holdfast install vscode --show-in-editor        look at the change in VS Code first
  holdfast install --print ~/notes                for a client that is not in the list"""

_UNINSTALL_EXAMPLES = """\b
Examples:
  holdfast uninstall cursor
  holdfast uninstall cursor --project --yes"""

Command = Callable[..., None]


def _target_options(command: Command) -> Command:
    options = [
        click.option("--project", is_flag=True, help="The configuration of the project in the working directory."),
        click.option(
            "--config", "config_path", metavar="FILE", help="Configure this file instead of the client's usual one."
        ),
        click.option("--name", default=ENTRY_NAME, show_default=True, help="The name of the entry."),
        click.option("--yes", "-y", is_flag=True, help="Write without asking."),
        click.option("--dry-run", is_flag=True, help="Show the change and write nothing."),
        json_option,
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command("install", epilog=_INSTALL_EXAMPLES)
@click.argument("client", required=False)
@click.argument("directories", nargs=-1, metavar="[DIR]...")
@click.option("--folder", "more_directories", multiple=True, metavar="DIR", help="Another DIR; may be repeated.")
@click.option("--tools", metavar="GROUP,…", help="Only these groups of tools: files, review, organise, store, search.")
@click.option("--read-only", is_flag=True, help="The agent can read and never change anything.")
@click.option("--review", is_flag=True, help="Every change waits for your approval.")
@click.option(
    "--print", "print_only", is_flag=True, help="Print the entry instead of writing it; for any other client too."
)
@click.option("--show-in-editor", is_flag=True, help="Open the change as a diff in VS Code before the question.")
@_target_options
def install_command(
    client: str | None,
    directories: tuple[str, ...],
    more_directories: tuple[str, ...],
    tools: str | None,
    config_path: str | None,
    name: str,
    *,
    read_only: bool,
    review: bool,
    print_only: bool,
    show_in_editor: bool,
    project: bool,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Write Holdfast into the configuration of an MCP client: shows the change, asks, and keeps a backup.

    DIR are the folders that the client's agent may use. Without any, a client that works in a folder or a project
    serves that one. Nothing else in the file changes, comments and formatting included; a second run has nothing to
    do, or changes the options. Without CLIENT it lists the clients.
    """
    from holdfast.config_files.machine import entry_variables, own_program
    from holdfast.config_files.target import absolute_folder

    if client is None and not print_only:
        _list_clients(as_json=as_json)
        return
    if print_only and (client is None or _is_folder(client)):
        directories, client = ((client, *directories) if client else directories), "other"
    mcp_client = _find_client(str(client), or_any=print_only)
    folders = [absolute_folder(directory, mcp_client) for directory in (*directories, *more_directories)]
    options = _options(mcp_client, folders, tools, read_only=read_only, review=review, project=project)
    program = own_program()
    target = _target(mcp_client, config_path, name, project=project, needs_place=not print_only)
    if print_only:
        click.echo(target.snippet(program, options, entry_variables()), nl=False)
        return
    edit = target.plan_install(program, options, entry_variables())
    report: dict[str, Any] = {**_report(mcp_client, edit), "entry": edit.entry}
    if not edit.is_needed:
        _print_report(
            report, "unchanged", f"There is nothing to do: {mcp_client.title} has this entry.", as_json=as_json
        )
        return
    with _show_edit(edit, as_json=as_json, in_editor=show_in_editor):
        if dry_run:
            _print_report(report, "would_write", "Nothing was written.", as_json=as_json)
            return
        if not yes:
            confirm(f"Write this to {display_name(edit.file.display_path)}?", "Nothing was written.", _WITHOUT_TERMINAL)
    backup = report["backup"] = edit.write()
    lines = _next_steps(mcp_client, edit, backup, program, options, project=project)
    _print_report(report, "written", *lines, as_json=as_json)


@click.command("uninstall", epilog=_UNINSTALL_EXAMPLES)
@click.argument("client")
@_target_options
def uninstall_command(
    client: str, config_path: str | None, name: str, *, project: bool, yes: bool, dry_run: bool, as_json: bool
) -> None:
    """Take Holdfast out of the configuration of an MCP client: shows the change, asks, and keeps a backup.

    When nothing else was changed since `holdfast install`, the file is then byte for byte what it was before.
    """
    mcp_client = _find_client(client, or_any=False)
    edit = _target(mcp_client, config_path, name, project=project).plan_uninstall()
    report = _report(mcp_client, edit)
    if not edit.is_needed:
        _print_report(
            report, "unchanged", f"There is nothing to do: {mcp_client.title} has no such entry.", as_json=as_json
        )
        return
    with _show_edit(edit, as_json=as_json):
        if dry_run:
            _print_report(report, "would_remove", "Nothing was written.", as_json=as_json)
            return
        if not yes:
            confirm(f"Write this to {display_name(edit.file.display_path)}?", "Nothing was written.", _WITHOUT_TERMINAL)
    report["backup"] = edit.write()
    what = "is gone: it held nothing else" if edit.content is None else "no longer holds Holdfast"
    lines = [
        f"{display_name(edit.file.display_path)} {what}.",
        f"Backup: {display_name(str(report['backup']))}",
        mcp_client.restart,
    ]
    _print_report(report, "removed", *lines, as_json=as_json)


def _find_client(name: str, *, or_any: bool) -> "McpClient":
    from holdfast.config_files.clients import GENERIC, all_clients
    from holdfast.config_files.machine import homes_of_user

    client_id = name.strip().lower().replace("_", "-").replace(" ", "-")
    clients = all_clients(homes_of_user())
    for each in clients:
        if each.id == _ALIASES.get(client_id, client_id):
            return each
    if or_any:
        return GENERIC
    ids = [each.id for each in clients]
    nearest = get_close_matches(client_id, ids, n=1)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    raise InvalidArgument(
        f"{name!r} is not a client that is known here.{hint} Those that are: {', '.join(ids)}. "
        "For any other one, `holdfast install --print DIR` prints what its configuration needs."
    )


def _is_folder(name: str) -> bool:
    return os.sep in name or name.startswith(("~", "."))


def _target(
    client: "McpClient", config_path: str | None, name: str, *, project: bool, needs_place: bool = True
) -> "Target":
    from holdfast.config_files.machine import place_of
    from holdfast.config_files.target import Target

    if not name.strip() or not name.isprintable():
        raise InvalidArgument(f"{name!r} cannot be the name of an entry: it must be text that can be seen.")
    if config_path is not None:
        return Target(client, os.path.abspath(os.path.expanduser(config_path)), name)
    if project:
        if client.project_place is None:
            raise InvalidArgument(f"{client.title} has no configuration for a project; leave --project out.")
        return Target(client, os.path.join(os.getcwd(), client.project_place), name, os.getcwd())
    if not client.places and needs_place:
        raise InvalidArgument(f"Where {client.title} keeps its configuration is not known here: name it with --config.")
    return Target(client, place_of(client) or "", name)


def _options(
    client: "McpClient", folders: list[str], tools: str | None, *, read_only: bool, review: bool, project: bool
) -> "EntryOptions":
    from holdfast.config_files.entry import EntryOptions
    from holdfast.transport.doors.restrictions import parse_groups

    groups: tuple[str, ...] = ()
    if tools is not None:
        groups = tuple(dict.fromkeys(name.strip() for name in tools.split(",")))
        parse_groups(groups)
    if not folders and project and client.project_folder is not None:
        folders = [client.project_folder]
    if not folders and client.needs_folder:
        raise InvalidArgument(
            f"{client.title} does not start its servers in one of your folders: name the folders that its agents may use, "
            f"such as ~/Documents, after the name of the client."
        )
    return EntryOptions(tuple(dict.fromkeys(folders)), groups, read_only, review)


def _list_clients(*, as_json: bool) -> None:
    from holdfast.config_files.clients import all_clients
    from holdfast.config_files.machine import describe_client, homes_of_user

    rows = [_row_of(describe_client(client)) for client in all_clients(homes_of_user())]
    if as_json:
        click.echo(json_text({"clients": rows}, indent=2))
        return
    states = [
        row["problem"] or ("has Holdfast" if row["installed"] else "found" if row["found"] else "not found")
        for row in rows
    ]
    width, state_width = max(len(row["client"]) for row in rows), max(map(len, states))
    for row, state in zip(rows, states, strict=True):
        click.echo(table_row(f"{row['client']:{width}}  {state:{state_width}}", short_path(row["config"])))
    click.echo("\nholdfast install CLIENT [DIR]...    shows the change, and asks")
    click.echo("holdfast install --print [DIR]...   for any other client")


def _row_of(here: "ClientHere") -> dict[str, Any]:
    return {
        "client": here.client.id, "title": here.client.title, "found": here.is_found, "installed": here.is_installed,
        "config": here.config, "problem": here.problem,
    }  # fmt: skip


@contextmanager
def _show_edit(edit: "ConfigEdit", *, as_json: bool, in_editor: bool = False) -> Iterator[None]:
    if not as_json:
        for line in escape_diff_lines(edit.diff()):
            click.echo(colour_line(line))
    if not in_editor:
        yield
        return
    with _opened_in_editor(edit):
        yield


@contextmanager
def _opened_in_editor(edit: "ConfigEdit") -> Iterator[None]:
    """Open the file beside what it would become, until the person closes the diff."""
    import subprocess
    import tempfile

    from holdfast.cli.startup import load_settings

    command = load_settings(None).settings.review.vscode.command
    base = os.path.basename(edit.file.path)
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        paths = [edit.file.path, os.path.join(folder, f"after-{base}")]
        contents = {paths[1]: edit.content or b""}
        if edit.file.raw is None:
            paths[0] = os.path.join(folder, f"before-{base}")
            contents[paths[0]] = b""
        for path, content in contents.items():
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb") as stream:
                stream.write(content)
        try:
            click.echo("Close the diff in VS Code to go on.", err=True)
            subprocess.run([*command, "--wait", "--diff", *paths], stdin=subprocess.DEVNULL, check=False)
        except OSError as error:
            raise InvalidArgument(
                f"VS Code could not be started as {command[0]!r} ({type(error).__name__}): put `code` on your PATH, "
                "set settings.review.vscode.command, or leave --show-in-editor out."
            ) from None
        yield


def _report(client: "McpClient", edit: "ConfigEdit") -> dict[str, Any]:
    return {
        "client": client.id,
        "config": edit.file.display_path,
        "diff": edit.diff(),
        "backup": None,
        "restart": client.restart,
    }


def _print_report(report: dict[str, Any], status: str, *lines: str, as_json: bool) -> None:
    if as_json:
        click.echo(json_text({"status": status, **report}, indent=2))
        return
    for line in lines:
        click.echo(line)


def _next_steps(
    client: "McpClient",
    edit: "ConfigEdit",
    backup: str | None,
    program: list[str],
    options: "EntryOptions",
    *,
    project: bool,
) -> Iterator[str]:
    yield f"{client.title} starts Holdfast: {display_name(edit.file.display_path)}"
    if backup is not None:
        yield f"Backup: {display_name(backup)}"
    folders = ", ".join(map(display_name, options.folders)) or "the folder that it works in"
    yield f"Its agents may use {folders}."
    yield client.restart
    if project:
        yield f"The entry names {display_name(program[0])}, a program of this machine: others who share the project need their own."
    if os.path.expanduser("~/.cache") + os.sep in program[0]:
        yield "That program lies in a cache and may be removed: install Holdfast, then run this again."
