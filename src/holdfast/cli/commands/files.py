"""`holdfast files`: look at, write and bring back the files of the project store."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, BinaryIO

import click

from holdfast.cli.client import call_tool
from holdfast.cli.output import json_option, json_text, paragraphs
from holdfast.errors import InvalidQuery
from holdfast.search.model import no_matches_text
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

\b
The exit code is 0 when it was done, 1 when there is no such file or it is in the way, 2 for a wrong name or number,
13 when it is not allowed, 75 when it may succeed later."""

NOT_THERE_STATUS = 1


@dataclass(frozen=True)
class Asked:
    """The options that every command here has."""

    key: str | None
    url: str | None
    as_json: bool

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its data; with --json it is printed too."""
        data = call_tool(tool, arguments, self.key, self.url)
        if self.as_json:
            click.echo(json_text(data))
        return data

    def say(self, text: str) -> None:
        """Print for a person."""
        if not self.as_json:
            click.echo(text)


def _asking(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that every command has, given to it as its first argument."""

    @click.option("--key", metavar="KEY", help="Act as the tenant of this key. HOLDFAST_KEY keeps it out of `ps`.")
    @click.option("--url", metavar="URL", help="The server for the key, when it is not the one running here.")
    @json_option
    @wraps(function)
    def asking(*, key: str | None, url: str | None, as_json: bool, **arguments: Any) -> None:
        function(Asked(key, url, as_json), **arguments)

    return asking


_in_project = click.option("--project", "-p", required=True, metavar="NAME", help="The project.")


@click.group("files", epilog=_EXAMPLES)
def files_group() -> None:
    """Look at, write and bring back the files that agents keep in the project store.

    They are yours, the user's of this machine; --key shows those of another tenant. A command goes through the server
    that is running, and does the work itself when none is.
    """


@files_group.command("ls", epilog="Example: holdfast files ls -p notes /drafts --depth 2")
@click.argument("path", default="")
@click.option("--depth", default=1, show_default=True, metavar="N", help="Levels; 0 is the path itself.")
@click.option("--limit", default=1024, show_default=True, metavar="N", help="Most entries.")
@_in_project
@_asking
def ls(asked: Asked, project: str, path: str, depth: int, limit: int) -> None:
    """List a directory: size, last change and path; a directory ends with '/'."""
    found = asked.call("file_list", project=project, path=path, depth=depth, limit=limit)
    for entry in found["entries"]:
        end = "/" if entry["type"] == "DIRECTORY" else ""
        asked.say(f"{entry['size']:>10}  {entry['updated_at'] or '-':<27}  {display_name(entry['path'] + end)}")
    if found["has_more"]:
        click.echo("There are more: raise --limit, or list a directory beneath.", err=True)


@files_group.command("cat", epilog="Example: holdfast files cat -p notes /plan.md > plan.md")
@click.argument("path")
@click.option("--offset", default=0, metavar="BYTES", help="First byte.")
@click.option("--length", default=-1, metavar="BYTES", help="How many; the rest when not given.")
@_in_project
@_asking
def cat(asked: Asked, project: str, path: str, offset: int, length: int) -> None:
    """Print a file, byte for byte; in a terminal what would steer it is shown by its number."""
    found = asked.call("file_read", project=project, path=path, offset=offset, length=length)
    if sys.stdout.isatty():
        asked.say(paragraphs(found["content"]))
    elif not asked.as_json:
        sys.stdout.buffer.write(found["content"].encode())
        sys.stdout.buffer.flush()


@files_group.command("put", epilog="Example: holdfast files put -p notes /plan.md plan.md")
@click.argument("path")
@click.argument("source", type=click.File("rb"), default="-", metavar="[FILE]")
@click.option("--append", is_flag=True, help="Add to what the file holds, instead of replacing it.")
@_in_project
@_asking
def put(asked: Asked, project: str, path: str, source: BinaryIO, *, append: bool) -> None:
    """Write a file from FILE, or from stdin without one; what it held before can be restored."""
    mode = "APPEND" if append else "TRUNCATE"
    found = asked.call("file_write", project=project, path=path, content=_text(source.read()), mode=mode)
    asked.say(f"{found['bytes_written']} bytes written to {display_name(path)}")


@files_group.command("rm", epilog="Example: holdfast files rm -p notes /drafts --recursive")
@click.argument("path")
@click.option("--recursive", "-r", is_flag=True, help="A directory with all that is in it.")
@_in_project
@_asking
def rm(asked: Asked, project: str, path: str, *, recursive: bool) -> None:
    """Delete a file, or a directory with --recursive; `holdfast files restore` brings files back."""
    found = asked.call("file_delete", project=project, path=path, recursive=recursive)
    asked.say(f"files deleted: {found['deleted_count']}")


@files_group.command("mv", epilog="Example: holdfast files mv -p notes /drafts /done")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--overwrite", is_flag=True, help="Replace a file, or merge into a directory.")
@_in_project
@_asking
def mv(asked: Asked, project: str, source: str, target: str, *, overwrite: bool) -> None:
    """Move a file or a directory; TO is its whole new path."""
    found = asked.call("file_rename", project=project, from_path=source, to_path=target, overwrite=overwrite)
    asked.say(f"files moved: {found['moved_count']}")


@files_group.command("stat", epilog="Example: holdfast files stat -p notes /plan.md --json")
@click.argument("path")
@_in_project
@_asking
def stat(asked: Asked, project: str, path: str) -> None:
    """Say what is at a path; the exit code is 1 when nothing is."""
    found = asked.call("file_stat", project=project, path=path)
    if not found["exists"]:
        asked.say("does not exist")
        sys.exit(NOT_THERE_STATUS)
    for name in ("type", "size", "created_at", "updated_at"):
        asked.say(f"{name:<10}  {found[name] or '-' if name.endswith('_at') else found[name]}")


@files_group.command("history", epilog="Example: holdfast files history -p notes /plan.md")
@click.argument("path")
@_in_project
@_asking
def history(asked: Asked, project: str, path: str) -> None:
    """List what a path held before, newest first: version, size, from when, until when. Deleted files too."""
    found = asked.call("file_history", project=project, path=path)
    for one in found["versions"]:
        asked.say(f"{one['version']:>7}  {one['size']:>10}  {one['written_at']}  {one['replaced_at']}")


@files_group.command("restore", epilog="Example: holdfast files restore -p notes /plan.md 3")
@click.argument("path")
@click.argument("version", type=int)
@_in_project
@_asking
def restore(asked: Asked, project: str, path: str, version: int) -> None:
    """Bring back a version by its number in the history, also of a deleted file. It is a write that can be undone."""
    found = asked.call("file_restore", project=project, path=path, version=version)
    asked.say(f"{found['bytes_written']} bytes restored to {display_name(path)}")


@files_group.command("search", epilog='Example: holdfast files search "release date" --prefix /drafts')
@click.argument("query")
@click.option("--project", "-p", default="*", metavar="NAME", help="The project; all of yours without it.")
@click.option("--prefix", default="", metavar="PATH", help="Only paths that begin so.")
@click.option("--limit", default=5, show_default=True, metavar="N", help="Most hits, up to 20; 0: as many as without.")
@_asking
def search(asked: Asked, query: str, project: str, prefix: str, limit: int) -> None:
    """Find passages, best first; the exit code is 1 when there are none."""
    found = asked.call("file_search", project=project, query=query, path_prefix=prefix, limit=limit)
    for hit in found["chunks"]:
        where = " ".join(display_name(hit[name]) for name in ("project", "file_path") if name in hit)
        asked.say(f"{where} [{hit['file_seek_start_bytes']}, {hit['file_seek_end_bytes']})")
        asked.say(f"{paragraphs(hit['chunk_content']).rstrip()}\n")
    if not found["chunks"]:
        asked.say(no_matches_text(prefix))
        sys.exit(NOT_THERE_STATUS)


@files_group.command("projects", epilog="Example: holdfast files projects --json")
@_asking
def projects(asked: Asked) -> None:
    """List the projects: files, bytes, last change and name."""
    found = asked.call("project_list")
    for one in found["projects"]:
        asked.say(
            f"{one['file_count']:>7}  {one['total_bytes']:>11}  {one['updated_at']}  {display_name(one['project'])}"
        )


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidQuery(f"The store keeps UTF-8 text, and this is none: byte {error.start} is wrong.") from None
