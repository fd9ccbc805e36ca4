"""`holdfast migrate`: migrates the database of the project store to the current schema."""

import click

from holdfast.cli.output import json_option, json_text


@click.command("migrate", epilog="Example: DATABASE_URL=postgresql://owner@host/holdfast holdfast migrate")
@json_option
def migrate_command(*, as_json: bool) -> None:
    """Migrate the database of DATABASE_URL to the current schema, and print the migrations that ran.

    A server does the same when it starts; use this when the server's role may not change tables, or to migrate in
    advance. It can run at any time, beside running servers; a second run does nothing. SQLite files need no migration.
    """
    from holdfast.wiring import migrate

    steps = migrate()
    if as_json:
        click.echo(json_text({"steps": steps}))
    elif not steps:
        click.echo("Nothing to do: the database schema is up to date.")
    for step in [] if as_json else steps:
        click.echo(f"applied: {step}")
