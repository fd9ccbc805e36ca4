"""The tools that read what is not plain text: media, descriptions of files, jq queries, the allowed directories."""

from typing import Any

from pydantic import BaseModel, Field

from holdfast.app import App
from holdfast.call import Call
from holdfast.clock import format_timestamp
from holdfast.folders.children.media import read_media
from holdfast.folders.children.query import Format, QueryResults, run_query
from holdfast.folders.reading.info import PathInfo, describe_path
from holdfast.text.budget import cut_to_budget
from holdfast.text.display import display_name
from holdfast.tools.answer import Answer, Media, Text
from holdfast.tools.folders.read_text import answer_budget
from holdfast.tools.registry import Arguments, Effect, Group, NoArguments, tool
from holdfast.tools.threads import Load


class PathOnly(Arguments):
    """Arguments of a tool that takes one path."""

    path: str = Field(description="Path of the file.")


class JqQueryArguments(Arguments):
    """Arguments of the jq queries."""

    file_path: str = Field(description="Path of the file to query.")
    expression: str = Field(description="The jq expression to run.")
    timeout: float = Field(30, gt=0, le=600, description="Seconds after which to give up.")


class PathStatus(BaseModel):
    """What get_file_info answers of every path; the tool list declares no more."""

    size: int
    created: str
    modified: str
    accessed: str
    isDirectory: bool  # noqa: N815  the reference server's names
    isFile: bool  # noqa: N815
    permissions: str


class FileInfo(PathStatus):
    """Answer of get_file_info."""

    entries: int | None = None
    mimeType: str | None = None  # noqa: N815
    encoding: str | None = None
    newlines: str | None = None
    lines: int | None = None
    characters: int | None = None
    tokens: int | None = None
    estimated: bool | None = None
    sha256: str | None = None
    shape: str | None = None
    hint: str | None = None


@tool("read_media_file", group=Group.FILES, effect=Effect.READ, title="On disk: read an image or sound")
def read_media_file(app: App, call: Call, args: PathOnly) -> Answer:
    """On disk: read an image (scaled to what a model sees), a sound, or any binary file as base64."""
    folders = app.folders_of(call.caller)
    media = read_media(call, folders.jail, args.path, folders.settings)
    block = Media(media.kind, media.data, media.mime_type, media.uri)
    return Answer((block, *([Text(f"[{media.note}]")] if media.note else [])))


@tool(
    "get_file_info",
    group=Group.FILES,
    effect=Effect.READ,
    title="On disk: describe a file",
    output=PathStatus,
    load=Load.HEAVY,
)
def get_file_info(app: App, call: Call, args: PathOnly) -> Answer:
    """On disk: describe a file or directory: size, times, lines, token estimate, encoding, sha256, shape of JSON or CSV."""
    folders = app.folders_of(call.caller)
    info = _info_answer(describe_path(call, folders.jail, args.path, folders.settings))
    values = info.model_dump(exclude_none=True)
    return Answer.of("\n".join(f"{key}: {_value_text(value)}" for key, value in values.items()), data=info)


def _info_answer(info: PathInfo) -> FileInfo:
    return FileInfo(
        size=info.size,
        created=format_timestamp(info.created, "milliseconds"),
        modified=format_timestamp(info.modified, "milliseconds"),
        accessed=format_timestamp(info.accessed, "milliseconds"),
        isDirectory=info.is_directory,
        isFile=not info.is_directory,
        permissions=info.permissions,
        entries=info.entries,
        mimeType=info.mime_type,
        encoding=info.encoding,
        newlines=info.newlines,
        lines=info.lines,
        characters=info.characters,
        tokens=info.tokens,
        estimated=info.estimated or None,
        sha256=info.sha256,
        shape=info.shape,
        hint=info.hint,
    )


def _value_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@tool("list_allowed_directories", group=Group.FILES, effect=Effect.READ, title="On disk: list the allowed directories")
def list_allowed_directories(app: App, call: Call, _args: NoArguments) -> Answer:
    """On disk: list the directories that can be used; relative paths start at the first."""
    allowed = app.folders_of(call.caller).jail.allowed_paths
    return Answer.of("Allowed directories:\n" + "\n".join(map(display_name, allowed)))


@tool(
    "query_json",
    group=Group.FILES,
    effect=Effect.READ,
    title="On disk: query JSON",
    timeout_seconds=600,
    load=Load.CHILD,
)
def query_json(app: App, call: Call, args: JqQueryArguments) -> Answer:
    """On disk: run a jq expression on a JSON or JSON-lines file of any size; at most 100 results, one a line."""
    return _run_query(app, call, args, "json")


@tool(
    "query_yaml",
    group=Group.FILES,
    effect=Effect.READ,
    title="On disk: query YAML",
    timeout_seconds=600,
    load=Load.CHILD,
    listed=False,
)
def query_yaml(app: App, call: Call, args: JqQueryArguments) -> Answer:
    """On disk: run a jq expression on a YAML file; at most 100 results, one JSON value a line."""
    return _run_query(app, call, args, "yaml")


def _run_query(app: App, call: Call, args: JqQueryArguments, form: Format) -> Answer:
    folders = app.folders_of(call.caller)
    budget = answer_budget(folders)
    with folders.jail.open_file(args.file_path) as file:
        results = run_query(call, file, form, args.expression, args.timeout, budget * 4)
    text, is_cut = cut_to_budget("\n".join(results.values), budget)
    notice = _query_notice(results, is_cut=is_cut)
    return Answer.of(text, f"[{notice}]" if notice else "")


def _query_notice(results: QueryResults, *, is_cut: bool) -> str:
    if results.cut or is_cut:
        return "Cut by the token budget: narrow the expression."
    if results.more:
        return f"Showing the first {len(results.values)} results; there are more. Narrow the expression, or slice with .[100:200]."
    return "" if results.values else "No results."
