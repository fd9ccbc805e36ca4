"""`holdfast files export` and `import`: whole projects of the store as plain files, of any tenant, for the person."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from holdfast.cli.output import json_option, json_text, quantity
from holdfast.cli.progress import explain_interruption, progress_bar
from holdfast.cli.startup import load_settings, open_state_folder
from holdfast.text.display import display_name

if TYPE_CHECKING:
    from holdfast.auth.context import AuthContext
    from holdfast.store.service import Store
    from holdfast.transport.client.calls import Progress

_of_tenant = click.option(
    "--tenant", metavar="ID|LABEL", help="The tenant of this key; without it the user of this machine."
)


@click.command("export", epilog="Example: holdfast files export notes ./notes --tenant 'build farm'")
@click.argument("project")
@click.argument("directory", metavar="DIR")
@_of_tenant
@json_option
def export_command(project: str, directory: str, tenant: str | None, *, as_json: bool) -> None:
    """Write every file of a PROJECT to DIR, which must not be there or be empty, byte for byte and all of one moment.

    DIR gets its name when all is in it. Versions and deleted files stay in the store; a backup has them.
    """
    from holdfast.store.plain_files import export_project

    def explain() -> list[str]:
        return ["Stopped: nothing was exported."]

    with _open(tenant) as (store, auth), explain_interruption(explain), progress_bar(is_hidden=as_json) as progress:
        outcome = export_project(store, auth, project, directory, _advance(progress))
    if as_json:
        click.echo(json_text({"directory": outcome.directory, "files": outcome.files, "bytes": outcome.bytes}))
        return
    click.echo(
        f"{quantity(outcome.files, 'file')} ({quantity(outcome.bytes, 'byte')}) in {display_name(outcome.directory)}"
    )


@click.command("import", epilog="Example: holdfast files import ./notes notes")
@click.argument("directory", metavar="DIR")
@click.argument("project")
@click.option(
    "--overwrite", is_flag=True, help="Replace files of the project that hold something else; versions are kept."
)
@_of_tenant
@json_option
def import_command(directory: str, project: str, tenant: str | None, *, overwrite: bool, as_json: bool) -> None:
    """Write every file below DIR to a PROJECT, new or not, byte for byte.

    All names and texts are checked before the first is written, and no file of the project is replaced without --overwrite.
    An import that was cut short is repeated: what is there already stays as it is.
    """
    from holdfast.store.plain_files import import_project

    def explain() -> list[str]:
        return ["Stopped: files that were written stay. Repeat the command for the others."]

    with _open(tenant) as (store, auth), explain_interruption(explain), progress_bar(is_hidden=as_json) as progress:
        outcome = import_project(store, auth, directory, project, _advance(progress), overwrite=overwrite)
    counts = {
        "created": len(outcome.created),
        "replaced": len(outcome.replaced),
        "unchanged": len(outcome.unchanged),
        "bytes": outcome.bytes,
    }
    if as_json:
        click.echo(json_text(counts))
        return
    click.echo(f"{counts['created']} created, {counts['replaced']} replaced, {counts['unchanged']} unchanged")


@contextmanager
def _open(tenant: str | None) -> "Iterator[tuple[Store, AuthContext]]":
    """Give the store and the tenant; the database is used as another process beside the server would."""
    from holdfast.cli.commands.keys import open_keys_of
    from holdfast.wiring.tenants import find_tenant, open_tenant_store

    folder, settings = open_state_folder(), load_settings(None).settings
    with open_keys_of(folder) as keys:
        auth = find_tenant(keys, tenant)
    with open_tenant_store(settings.mcp.files, folder.path) as store:
        yield store, auth


def _advance(progress: "Progress | None") -> Callable[[int, int, str], None]:
    def advance(done: int, total: int, path: str) -> None:
        if progress is not None:
            progress(done, total, path)

    return advance
