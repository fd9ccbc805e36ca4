"""`holdfast migrate`: bring the database of the project store to the newest shape."""

import click

from holdfast.cli.output import json_option, json_text


@click.command("migrate", epilog="Example: DATABASE_URL=postgresql://owner@host/holdfast holdfast migrate")
@json_option
def migrate_command(*, as_json: bool) -> None:
    """Bring the database of DATABASE_URL to the newest shape, and print the steps that were taken.

    A server does the same when it starts; this is for a role that may change tables where the server's may not, and for
    doing it beforehand. It can be run at any time, as often as you like, beside running servers. SQLite files need nothing.
    """
    from holdfast.wiring import migrate

    steps = migrate()
    if as_json:
        click.echo(json_text({"steps": steps}))
    elif not steps:
        click.echo("Nothing to do: the database has the newest shape.")
    for step in [] if as_json else steps:
        click.echo(f"taken: {step}")
