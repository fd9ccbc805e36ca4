"""`holdfast keys`: creates, lists and revokes the keys of tenants."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.output import json_option, json_text, local_time
from holdfast.cli.startup import open_state_folder
from holdfast.text.display import escape_invisible

if TYPE_CHECKING:
    from holdfast.auth.keys import ApiKeys, Key

_EXAMPLES = """\b
Examples:
  holdfast keys create --label "build farm" --limit search=30
  holdfast keys list
  holdfast keys revoke 3f9a0c12b7de

\b
A server accepts them when its settings say so:
  settings: {auth: {mode: listed}}"""


@click.group("keys", epilog=_EXAMPLES)
def keys_group() -> None:
    """Create, list and revoke keys for callers that are not the user of this machine.

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


@contextmanager
def _open_keys() -> "Iterator[ApiKeys]":
    from holdfast.wiring.build import open_keys

    keys = open_keys(open_state_folder().path)
    try:
        yield keys
    finally:
        keys.close()


def _to_json(key: "Key") -> dict[str, Any]:
    return {
        "id": key.id,
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
