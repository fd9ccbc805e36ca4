"""`holdfast config`: shows every setting with its source, and checks the settings file."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.command_group import CommandGroup
from holdfast.cli.output import json_option, json_text, quantity, short_path
from holdfast.cli.startup import load_settings
from holdfast.config.environment import (
    SECRET_VARIABLES,
    SETTINGS_VARIABLE,
    STATE_DIR_VARIABLE,
    VARIABLES,
    state_dir,
    unknown_variables,
    variable,
)
from holdfast.text.display import escape_invisible

if TYPE_CHECKING:
    from holdfast.config.load import LoadedSettings

settings_option = click.option("--settings", "path", metavar="FILE", help="The settings file to read.")


_EXAMPLES = """\b
Examples:
  holdfast config show               every setting in force, and where it comes from
  holdfast config check              is the settings file right, and where it belongs"""


@click.group("config", cls=CommandGroup, epilog=_EXAMPLES)
def config_group() -> None:
    """Show and check the settings."""


@config_group.command("show", epilog="Example: holdfast config show --json")
@settings_option
@json_option
def show(path: str | None, *, as_json: bool) -> None:
    """Print every value in force with its source; secrets are masked."""
    loaded = load_settings(path)
    rows = [*_settings_rows(loaded), *_variable_rows(loaded)]
    if as_json:
        click.echo(json_text(rows, indent=2))
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        click.echo(f"{row['name']:<{width}}  {json_text(row['value'])}  ({escape_invisible(row['source'])})")


@config_group.command("check", epilog="Example: holdfast config check --settings draft.yml")
@settings_option
def check(path: str | None) -> None:
    """Check the settings file and the environment; the exit code is 2 when something is wrong."""
    loaded = load_settings(path)
    if loaded.path:
        click.echo(f"{escape_invisible(loaded.path)}: {quantity(len(loaded.lines), 'key')}, no problems.")
    else:
        from holdfast.config.load import find_misnamed_file, settings_file_place

        click.echo(f"No settings file: every setting has its default. Its place: {short_path(settings_file_place())}")
        if misnamed := find_misnamed_file():
            click.echo(f"warning: {short_path(misnamed)} is not read; call it settings.yml.", err=True)
    for name in unknown_variables():
        click.echo(
            f"warning: the environment variable {escape_invisible(name)} is not one that Holdfast reads.", err=True
        )


def _settings_rows(loaded: "LoadedSettings") -> Iterator[dict[str, Any]]:
    from holdfast.config.describe import setting_values

    for name, value in setting_values(loaded.settings):
        yield {"name": name, "value": value, "source": loaded.source_of(name)}


def _variable_rows(loaded: "LoadedSettings") -> Iterator[dict[str, Any]]:
    from holdfast.config.describe import MASK
    from holdfast.config.load import DEFAULT

    defaults = {STATE_DIR_VARIABLE: state_dir(), SETTINGS_VARIABLE: loaded.path}
    for name in VARIABLES:
        value = variable(name)
        displayed = MASK if value and name in SECRET_VARIABLES else value or defaults.get(name)
        yield {"name": name, "value": displayed, "source": "environment" if value else DEFAULT}
