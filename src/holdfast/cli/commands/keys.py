"""`holdfast keys`: creates, lists, rotates and revokes the keys of tenants, and rotates those of this machine."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.command_group import CommandGroup
from holdfast.cli.output import confirm, json_option, json_text, local_time, quantity
from holdfast.cli.startup import load_settings, open_state_folder
from holdfast.clock import utc_now
from holdfast.errors import HoldfastError, InvalidArgument
from holdfast.text.display import display_name, escape_invisible
from holdfast.transport.client.dial import NoServer, ServerRefusal, send_control
from holdfast.transport.lifecycle import COMMAND, LockHeld, hold_server_lock
from holdfast.transport.state_folder import BROWSER_SESSIONS, KEY_FILES, PERSON_KEY, StateFolder

if TYPE_CHECKING:
    from holdfast.auth.keys import ApiKeys, Key

_EXAMPLES = """\b
Examples:
  holdfast keys create --label "build farm" --limit search=30
  holdfast keys list
  holdfast keys rotate 3f9a0c12b7de
  holdfast keys rotate agent.token
  holdfast keys revoke 3f9a0c12b7de
  holdfast keys erase 3f9a0c12b7de

\b
A server accepts them when its settings say so:
  settings: {auth: {mode: listed}}"""


@click.group("keys", cls=CommandGroup, epilog=_EXAMPLES)
def keys_group() -> None:
    """Create, list, rotate and revoke keys for callers that are not the user of this machine; rotate those of this machine.

    Each key is a tenant of its own: it has the project store's tools, never local folders. Its holder sends it as
    `Authorization: Bearer KEY`. A change takes effect at once, also in a running server.
    """


@keys_group.command(
    "create", epilog='Example: holdfast keys create --label "build farm" --limit read=600 --limit write=60'
)
@click.option("--label", default="", metavar="TEXT", help="A name to recognise its holder by.")
@click.option(
    "--limit", "limits", multiple=True, metavar="CLASS=CALLS",
    help="Calls a minute of a class (read, write or search); 0: no limit. Without it settings.limits.tenant applies.",
)  # fmt: skip
@json_option
def create(label: str, limits: tuple[str, ...], *, as_json: bool) -> None:
    """Create a key and print it, once: only its SHA-256 is stored."""
    from holdfast.auth.rates import parse_limits

    per_minute = parse_limits(limits)
    with _open_keys() as keys:
        secret, key = keys.create(label, per_minute)
    if as_json:
        click.echo(json_text({"key": secret.reveal(), **_to_json(key)}))
        return
    click.echo(secret.reveal())
    click.echo(f"Key {key.id} is shown only this once. `holdfast keys revoke {key.id}` revokes it.", err=True)


@keys_group.command("list", epilog="Example: holdfast keys list --json")
@json_option
def list_command(*, as_json: bool) -> None:
    """Print every key by id, times, label and limits, the oldest first; the keys themselves are not stored."""
    with _open_keys() as keys:
        every_key = keys.all()
    if as_json:
        click.echo(json_text([_to_json(key) for key in every_key], indent=2))
    elif not every_key:
        click.echo("There are no keys. `holdfast keys create` makes one.")
    else:
        for key in every_key:
            click.echo(_describe(key))


@keys_group.command("revoke", epilog="Example: holdfast keys revoke 3f9a0c12b7de")
@click.argument("key_id", metavar="ID")
@json_option
def revoke(key_id: str, *, as_json: bool) -> None:
    """Revoke a key: its next call is refused. Its files stay; a revoked key cannot be made valid again."""
    with _open_keys() as keys:
        key = keys.revoke(key_id)
    click.echo(
        json_text(_to_json(key)) if as_json else f"Key {key.id} ({key.identity}) was revoked at {key.revoked_at}."
    )


@keys_group.command("rotate", epilog="Example: holdfast keys rotate 3f9a0c12b7de --keep-old")
@click.argument("key", metavar="ID|FILE")
@click.option(
    "--keep-old", is_flag=True, help="Do not revoke the old key of a tenant yet: revoke it when all use the new."
)
@json_option
def rotate(key: str, *, keep_old: bool, as_json: bool) -> None:
    """Exchange a key for a new one, also in a running server: the tenant's key ID, or agent.token, person.key, metrics.token.

    The tenant keeps its files, label and limits, and its new key is printed, once. From then on the old key is refused,
    unless --keep-old is given. A new agent.token ends the connections of HTTP clients of this machine, a new person.key signs
    browsers out. A `holdfast worker` takes a new metrics.token when it starts again.
    """
    if key in KEY_FILES:
        if keep_old:
            raise InvalidArgument(f"There is one {key} at a time; --keep-old is for the keys of tenants.")
        _rotate_file(key, as_json=as_json)
        return
    with _open_keys() as keys:
        secret, new = keys.rotate(key, keeps_old=keep_old)
    if as_json:
        click.echo(json_text({"key": secret.reveal(), "replaces": key, "old_is_valid": keep_old, **_to_json(new)}))
        return
    click.echo(secret.reveal())
    state = f"`holdfast keys revoke {key}` revokes it" if keep_old else "is revoked"
    click.echo(
        f"Key {new.id} is shown only this once. The old key {key} {'stays valid: ' if keep_old else ''}{state}.",
        err=True,
    )


def _rotate_file(name: str, *, as_json: bool) -> None:
    """Have the running server exchange a key, or do it while none runs."""
    folder = open_state_folder()
    try:
        pid = send_control(folder, name)["pid"]
    except ServerRefusal as refusal:
        raise HoldfastError(str(refusal)) from None
    except NoServer:
        pid = None
        with hold_server_lock(folder, COMMAND):
            folder.rotate_key(name)
            if name == PERSON_KEY:
                with suppress(FileNotFoundError):
                    os.unlink(folder.file(BROWSER_SESSIONS))
    if as_json:
        click.echo(json_text({"file": folder.file(name), "server": pid}))
        return
    server = f"The running server (pid {pid}) uses it." if pid else "No server is running."
    click.echo(f"{display_name(folder.file(name))} holds a new key; the old one is refused. {server}")


@keys_group.command("erase", epilog="Example: holdfast keys erase 3f9a0c12b7de --yes --json > erased.json")
@click.argument("tenant", metavar="ID|LABEL|SHA256")
@click.option(
    "--rewrite", is_flag=True, help="PostgreSQL: write the tables' files anew; all other tenants wait meanwhile."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def erase(tenant: str, *, rewrite: bool, yes: bool, as_json: bool) -> None:
    """Erase a tenant: its keys, files, versions, index and call log. Nothing brings them back but a backup.

    Its keys are revoked first. Then every row in every table goes, its space is overwritten or given back, and what is left
    is searched for the tenant: the counts before and after, and the search, are printed as the proof. On a server in open
    mode a tenant is named by the SHA-256 of its key. Backups, and what other programs stored, are not reached.
    """
    from holdfast.wiring.tenants import erase as erase_tenant
    from holdfast.wiring.tenants import find_tenant

    settings = load_settings(None).settings
    with _open_keys() as keys:
        auth = find_tenant(keys, tenant)
        if not yes:
            confirm(
                f"Erase everything of {auth.user_identity!r} ({auth.apikey_hash})? It cannot be undone.",
                "Nothing was erased.",
                "Give --yes to erase the tenant.",
            )
        proof = erase_tenant(settings.mcp.files, open_state_folder().path, keys, auth.apikey_hash, rewrites=rewrite)
    occurrences = sum(trace.occurrences for trace in proof.traces)
    if as_json:
        click.echo(json_text({"at": utc_now(), **asdict(proof)}))
        return
    for table, count in proof.before.items():
        click.echo(f"{table:<28}{count:>12,} -> {proof.after.get(table, 0):,}")
    for trace in proof.traces:
        click.echo(
            f"searched {display_name(trace.place)} ({trace.bytes:,} bytes): {quantity(trace.occurrences, 'occurrence')}"
        )
    click.echo(
        f"Erased {proof.tenant}: {quantity(sum(proof.before.values()), 'row')}; {quantity(occurrences, 'trace')} left."
    )


def _open_keys() -> "AbstractContextManager[ApiKeys]":
    return open_keys_of(open_state_folder())


@contextmanager
def open_keys_of(folder: StateFolder) -> "Iterator[ApiKeys]":
    """Open the keys of tenants: beside a running server, or as the one process that uses the state folder."""
    from holdfast.wiring.build import open_keys

    with ExitStack() as stack:
        try:
            stack.enter_context(hold_server_lock(folder, COMMAND))
            is_alone = True
        except LockHeld:
            is_alone = False
        keys = open_keys(folder.path, is_alone=is_alone)
        stack.callback(keys.close)
        yield keys


def _to_json(key: "Key") -> dict[str, Any]:
    return {
        "id": key.id,
        "tenant": key.tenant_hash,
        "label": key.label,
        "limits": dict(key.per_minute),
        "created_at": key.created_at,
        "revoked_at": key.revoked_at,
    }


def _describe(key: "Key") -> str:
    limits = ", ".join(
        f"{rate} {calls} a minute" if calls else f"{rate} unlimited" for rate, calls in key.per_minute.items()
    )
    state = f"revoked {local_time(key.revoked_at)}" if key.revoked_at else "valid"
    columns = (key.id, local_time(key.created_at), state, escape_invisible(key.label), limits and f"({limits})")
    return "  ".join(column for column in columns if column)
