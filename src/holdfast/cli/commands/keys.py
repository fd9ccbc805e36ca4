"""`holdfast keys`: mint, list and revoke the keys of tenants."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.output import json_option, json_text
from holdfast.config.environment import state_dir
from holdfast.text.visible import visible
from holdfast.transport.state_folder import StateFolder

if TYPE_CHECKING:
    from holdfast.auth.keys import ApiKeys, Key

_EXAMPLES = """\b
Examples:
  holdfast keys create --label "build farm" --limit search=30
  holdfast keys list
  holdfast keys revoke 3f9a0c12b7de

\b
A server takes them when its settings say so:
  settings: {auth: {mode: listed}}"""


@click.group("keys", epilog=_EXAMPLES)
def keys_group() -> None:
    """Mint, list and revoke keys for callers that are not the user of this machine.

    Each key is a tenant of its own: it has the project store's tools, never local folders. Its holder sends it as
    `Authorization: Bearer KEY`. Every command holds at once, also for a server that is running.
    """


@keys_group.command(
    "create", epilog='Example: holdfast keys create --label "build farm" --limit read=600 --limit write=60'
)
@click.option("--label", default="", metavar="TEXT", help="A name to recognise its holder by.")
@click.option(
    "--limit", "limits", multiple=True, metavar="CLASS=CALLS",
    help="Calls a minute of a class (read, write or search) for this key; 0: no limit. Others are settings.limits.tenant.",
)  # fmt: skip
@json_option
def create(label: str, limits: tuple[str, ...], *, as_json: bool) -> None:
    """Mint a key and print it, once: only its SHA-256 is kept."""
    from holdfast.auth.rates import parse_limits

    per_minute = parse_limits(limits)
    with _keys() as keys:
        secret, key = keys.create(label, per_minute)
    if as_json:
        click.echo(json_text({"key": secret.reveal(), **_facts(key)}))
        return
    click.echo(secret.reveal())
    click.echo(f"This is the only time that key {key.id} is shown. `holdfast keys revoke {key.id}` ends it.", err=True)


@keys_group.command("list", epilog="Example: holdfast keys list --json")
@json_option
def list_command(*, as_json: bool) -> None:
    """Print every key by id, label, limits and times, the oldest first; the keys themselves are not known here."""
    with _keys() as keys:
        found = keys.all()
    if as_json:
        click.echo(json_text([_facts(key) for key in found], indent=2))
    elif not found:
        click.echo("There are no keys. `holdfast keys create` mints one.")
    else:
        for key in found:
            click.echo(_described(key))


@keys_group.command("revoke", epilog="Example: holdfast keys revoke 3f9a0c12b7de")
@click.argument("key_id", metavar="ID")
@json_option
def revoke(key_id: str, *, as_json: bool) -> None:
    """End a key: its next call is refused. Its files stay; a key cannot be brought back."""
    with _keys() as keys:
        key = keys.revoke(key_id)
    click.echo(
        json_text(_facts(key)) if as_json else f"Key {key.id} ({key.identity}) is revoked since {key.revoked_at}."
    )


@contextmanager
def _keys() -> "Iterator[ApiKeys]":
    from holdfast.wiring import open_keys

    folder = StateFolder(state_dir())
    folder.prepare()
    keys = open_keys(folder.path)
    try:
        yield keys
    finally:
        keys.close()


def _facts(key: "Key") -> dict[str, Any]:
    return {
        "id": key.id,
        "label": key.label,
        "limits": dict(key.per_minute),
        "created_at": key.created_at,
        "revoked_at": key.revoked_at,
    }


def _described(key: "Key") -> str:
    limits = ", ".join(
        f"{rate} {calls} a minute" if calls else f"{rate} unlimited" for rate, calls in key.per_minute.items()
    )
    ended = f"revoked {key.revoked_at}" if key.revoked_at else "good"
    return "  ".join(
        part for part in (key.id, key.created_at, ended, visible(key.label), limits and f"({limits})") if part
    )
