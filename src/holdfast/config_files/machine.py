"""This machine: where the clients of this user keep their configuration, which have Holdfast, and how Holdfast is started."""

import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.config.environment import SETTINGS_VARIABLE, STATE_DIR_VARIABLE, plain_state_dir, state_dir, variable
from holdfast.config_files.clients import GENERIC, ConfigHomes, McpClient, all_clients
from holdfast.config_files.entry import ENTRY_NAME, EntryOptions
from holdfast.config_files.target import Target
from holdfast.errors import HoldfastError


@dataclass(frozen=True, slots=True)
class ClientHere:
    """A client on this machine: `config` is where its configuration is or would be, empty when that is not known."""

    client: McpClient
    is_found: bool
    is_installed: bool
    config: str
    problem: str = ""


def homes_of_user() -> ConfigHomes:
    """Return the folders of this user that hold configuration."""
    home = os.path.expanduser("~")
    config = os.path.join(home, ".config")
    support = os.path.join(home, "Library", "Application Support")
    if sys.platform != "darwin":
        config = support = variable("XDG_CONFIG_HOME") or config
    return ConfigHomes(home, config, support, variable("CLAUDE_CONFIG_DIR"), variable("CODEX_HOME"))


def own_program() -> list[str]:
    """Return the command that starts this program from anywhere, whatever PATH is there."""
    invoked = shutil.which(sys.argv[0])
    installed = os.path.join(sysconfig.get_path("scripts"), "holdfast")
    for path in (invoked, installed):
        if path is not None and os.path.basename(path) == "holdfast" and os.access(path, os.X_OK):
            return [os.path.abspath(path)]
    return [sys.executable, "-P", "-m", "holdfast"]


def entry_variables() -> dict[str, str]:
    """Return the variables that the entry must carry, because a program with windows does not get those of a shell."""
    settings = variable(SETTINGS_VARIABLE)
    variables = {STATE_DIR_VARIABLE: state_dir()} if state_dir() != plain_state_dir() else {}
    return {**variables, SETTINGS_VARIABLE: os.path.abspath(settings)} if settings else variables


def place_of(client: McpClient) -> str | None:
    """Return where the client's configuration is, or would be made."""
    existing = (place for place in client.places if os.path.isdir(os.path.dirname(place)))
    return next(existing, client.places[0] if client.places else None)


def describe_client(client: McpClient) -> ClientHere:
    """Return what is known of a client here; a configuration that cannot be read is a problem and no error."""
    place = place_of(client) or ""
    traces = [path for path in (place, os.path.dirname(place), *client.traces) if not _is_home(path)]
    is_found = any(os.path.exists(path) for path in traces)
    try:
        entry = Target(client, place, ENTRY_NAME).entry() if place else None
    except HoldfastError:
        return ClientHere(client, is_found, is_installed=False, config=place, problem="unreadable")
    return ClientHere(client, is_found, is_installed=entry is not None, config=place)


def entry_snippet(client: McpClient, folders: Sequence[str]) -> str:
    """Return the configuration of a client that holds the entry for some folders and nothing else."""
    target = Target(client, place_of(client) or "", ENTRY_NAME)
    return target.snippet(own_program(), EntryOptions(tuple(folders)), entry_variables())


def clients_here() -> list[ClientHere]:
    """Return every client that is known, and the form for any other one."""
    known = [describe_client(client) for client in all_clients(homes_of_user())]
    return [*known, ClientHere(GENERIC, is_found=False, is_installed=False, config="")]


def _is_home(path: str) -> bool:
    return os.path.abspath(path) == os.path.expanduser("~")
