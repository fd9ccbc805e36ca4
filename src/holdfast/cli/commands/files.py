"""`holdfast files`: lists, reads, writes, searches and restores the files of the project store."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, BinaryIO

import click

from holdfast.cli.client import call_tool
from holdfast.cli.command_group import CommandGroup
from holdfast.cli.commands.project_files import export_command, import_command
from holdfast.cli.output import json_option, json_text, local_time, paragraphs, quantity
from holdfast.errors import InvalidQuery
from holdfast.search.model import no_matches_text
from holdfast.store.tenant_share import TenantUsage, describe_usage
from holdfast.text.display import display_name

_EXAMPLES = """\b
Examples:
  holdfast files projects
  holdfast files put -p notes /plan.md plan.md
  date | holdfast files put -p notes /log.txt --append
  holdfast files ls -p notes --depth 9
  holdfast files cat -p notes /plan.md
  holdfast files search -p notes "release date"
  holdfast files history -p notes /plan.md
  holdfast files restore -p notes /plan.md 1
  holdfast files export notes ./notes-of-today
  holdfast files import ./notes-of-today copy-of-notes

\b
The exit code is 0 for success, 1 when a file is missing or in the way, 2 for an invalid name or number, 13 when it is
not allowed, 75 when it may succeed later."""

NOT_FOUND_STATUS = 1


@dataclass(frozen=True)
class StoreClient:
    """Calls the store's tools with the options that every command here has."""

    key: str | None
    url: str | None
    as_json: bool

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its data, which --json prints."""
        data = call_tool(tool, arguments, self.key, self.url)
        if self.as_json:
            click.echo(json_text(data))
        return data

    def echo(self, text: str) -> None:
        """Print a text unless --json was given."""
        if not self.as_json:
            click.echo(text)


def _store_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that every command has; the command gets them as a StoreClient, its first argument."""

    @click.option("--key", metavar="KEY", help="Act as the tenant of this key. HOLDFAST_KEY keeps it out of `ps`.")
    @click.option("--url", metavar="URL", help="The server for the key, when it is not the one running here.")
    @json_option
    @wraps(function)
    def command(*, key: str | None, url: str | None, as_json: bool, **arguments: Any) -> None:
        function(StoreClient(key, url, as_json), **arguments)

    return command


_in_project = click.option("--project", "-p", required=True, metavar="NAME", help="The project.")


@click.group("files", cls=CommandGroup, epilog=_EXAMPLES)
def files_group() -> None:
    """List, read, write, search and restore the files that agents keep in the project store.

    They are those of the user of this machine; --key shows those of another tenant. A command goes through the running
    server, and works on the store itself when none is running.
    """


files_group.add_command(export_command)
files_group.add_command(import_command)


@files_group.command("ls", epilog="Example: holdfast files ls -p notes /drafts --depth 2")
@click.argument("path", default="")
@click.option("--depth", default=1, show_default=True, metavar="N", help="Levels to list; 0 is the path itself.")
@click.option("--limit", default=1024, show_default=True, metavar="N", help="Maximum number of entries.")
@_in_project
@_store_options
def ls(store: StoreClient, project: str, path: str, depth: int, limit: int) -> None:
    """List a directory: size, last change and path; a directory ends with '/'."""
    answer = store.call("file_list", project=project, path=path, depth=depth, limit=limit)
    for entry in answer["entries"]:
        end = "/" if entry["type"] == "DIRECTORY" else ""
        store.echo(f"{entry['size']:>10}  {local_time(entry['updated_at']):<16}  {display_name(entry['path'] + end)}")
    if not answer["entries"] and not store.as_json:
        click.echo("Nothing is stored there. `holdfast files projects` lists the projects.", err=True)
    if answer["has_more"]:
        click.echo("There are more: raise --limit, or list a directory beneath.", err=True)


@files_group.command("cat", epilog="Example: holdfast files cat -p notes /plan.md > plan.md")
@click.argument("path")
@click.option("--offset", default=0, metavar="BYTES", help="First byte to print.")
@click.option("--length", default=-1, metavar="BYTES", help="Number of bytes; the rest when not given.")
@_in_project
@_store_options
def cat(store: StoreClient, project: str, path: str, offset: int, length: int) -> None:
    """Print a file, byte for byte; in a terminal control characters are escaped."""
    answer = store.call("file_read", project=project, path=path, offset=offset, length=length)
    if sys.stdout.isatty():
        store.echo(paragraphs(answer["content"]))
    elif not store.as_json:
        sys.stdout.buffer.write(answer["content"].encode())
        sys.stdout.buffer.flush()


@files_group.command("put", epilog="Example: holdfast files put -p notes /plan.md plan.md")
@click.argument("path")
@click.argument("source", type=click.File("rb"), default="-", metavar="[FILE]")
@click.option("--append", is_flag=True, help="Append to the file instead of replacing it.")
@_in_project
@_store_options
def put(store: StoreClient, project: str, path: str, source: BinaryIO, *, append: bool) -> None:
    """Write a file from FILE, or from stdin without one; the previous content can be restored."""
    mode = "APPEND" if append else "TRUNCATE"
    answer = store.call("file_write", project=project, path=path, content=_decode(source.read()), mode=mode)
    store.echo(f"{quantity(answer['bytes_written'], 'byte')} written to {display_name(path)}")


@files_group.command("rm", epilog="Example: holdfast files rm -p notes /drafts --recursive")
@click.argument("path")
@click.option("--recursive", "-r", is_flag=True, help="Delete a directory and everything in it.")
@_in_project
@_store_options
def rm(store: StoreClient, project: str, path: str, *, recursive: bool) -> None:
    """Delete a file, or a directory with --recursive; `holdfast files restore` brings files back."""
    answer = store.call("file_delete", project=project, path=path, recursive=recursive)
    store.echo(f"files deleted: {answer['deleted_count']}")


@files_group.command("mv", epilog="Example: holdfast files mv -p notes /drafts /done")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--overwrite", is_flag=True, help="Replace a file, or merge into a directory.")
@_in_project
@_store_options
def mv(store: StoreClient, project: str, source: str, target: str, *, overwrite: bool) -> None:
    """Move a file or a directory; TO is its whole new path."""
    answer = store.call("file_rename", project=project, from_path=source, to_path=target, overwrite=overwrite)
    store.echo(f"files moved: {answer['moved_count']}")


@files_group.command("stat", epilog="Example: holdfast files stat -p notes /plan.md --json")
@click.argument("path")
@_in_project
@_store_options
def stat(store: StoreClient, project: str, path: str) -> None:
    """Print what is at a path; the exit code is 1 when nothing is."""
    answer = store.call("file_stat", project=project, path=path)
    if not answer["exists"]:
        store.echo("does not exist")
        sys.exit(NOT_FOUND_STATUS)
    for name in ("type", "size", "created_at", "updated_at"):
        value = local_time(answer[name], with_seconds=True) if name.endswith("_at") else answer[name]
        store.echo(f"{name:<10}  {value}")


@files_group.command("history", epilog="Example: holdfast files history -p notes /plan.md")
@click.argument("path")
@_in_project
@_store_options
def history(store: StoreClient, project: str, path: str) -> None:
    """List the earlier versions of a path, newest first: version, size, from when, until when. Deleted files too."""
    answer = store.call("file_history", project=project, path=path)
    for version in answer["versions"]:
        times = (local_time(version[name], with_seconds=True) for name in ("written_at", "replaced_at"))
        store.echo(f"{version['version']:>7}  {version['size']:>10}  {'  '.join(times)}")
    if not answer["versions"]:
        store.echo(f"{display_name(path)} has no earlier version: what it holds is its first content.")


@files_group.command("restore", epilog="Example: holdfast files restore -p notes /plan.md 3")
@click.argument("path")
@click.argument("version", type=int)
@_in_project
@_store_options
def restore(store: StoreClient, project: str, path: str, version: int) -> None:
    """Restore a version by its number in the history, also of a deleted file. The previous content can be restored in turn."""
    answer = store.call("file_restore", project=project, path=path, version=version)
    store.echo(f"{quantity(answer['bytes_written'], 'byte')} restored to {display_name(path)}")


@files_group.command("search", epilog='Example: holdfast files search "release date" --prefix /drafts')
@click.argument("query")
@click.option("--project", "-p", default="*", metavar="NAME", help="The project; without it, all projects.")
@click.option("--prefix", default="", metavar="PATH", help="Only paths that begin with this.")
@click.option(
    "--limit", default=5, show_default=True, metavar="N", help="Maximum number of hits, up to 20; 0: the default."
)
@_store_options
def search(store: StoreClient, query: str, project: str, prefix: str, limit: int) -> None:
    """Find passages, best first; the exit code is 1 when there are none."""
    answer = store.call("file_search", project=project, query=query, path_prefix=prefix, limit=limit)
    for hit in answer["chunks"]:
        where = " ".join(display_name(hit[name]) for name in ("project", "file_path") if name in hit)
        store.echo(f"{where} [{hit['file_seek_start_bytes']}, {hit['file_seek_end_bytes']})")
        store.echo(f"{paragraphs(hit['chunk_content']).rstrip()}\n")
    if not answer["chunks"]:
        store.echo(no_matches_text(prefix))
        sys.exit(NOT_FOUND_STATUS)


@files_group.command("projects", epilog="Example: holdfast files projects --json")
@_store_options
def projects(store: StoreClient) -> None:
    """List the projects: files, bytes, last change and name; then what all of them hold, versions included."""
    answer = store.call("project_list")
    for row in answer["projects"]:
        store.echo(
            f"{row['file_count']:>7}  {row['total_bytes']:>11}  {local_time(row['updated_at'])}  {display_name(row['project'])}"
        )
    used = answer["usage"]
    usage = TenantUsage(used["file_bytes"], used["history_bytes"])
    store.echo(describe_usage(usage, used["limit_bytes"] or 0))


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidQuery(f"The store keeps UTF-8 text; byte {error.start} is not valid UTF-8.") from None
