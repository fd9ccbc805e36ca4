"""`holdfast tools` and `holdfast call`: shows the tools, also as the declarations of a model's API, and calls one."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, cast

import click

from holdfast.auth.context import CallerKind
from holdfast.cli.client import open_session
from holdfast.cli.output import json_flag, json_option, json_text, paragraphs
from holdfast.cli.startup import load_settings
from holdfast.errors import InvalidArgument, NotFound, error_from_payload
from holdfast.text.display import display_name
from holdfast.tools.declarations import DeclarationForm, declare, describe_workspace
from holdfast.tools.registry import LOCAL_GROUPS, Tool
from holdfast.tools.table import TOOLS
from holdfast.tools.validate import nearest_tool

_ENTRIES = {entry.name: entry for entry in TOOLS if entry.audience is not CallerKind.PANEL}
"""Those that a person may call or look up; a panel's need the token that its client was given."""
_FORMS = ("mcp", "openai", "gemini")
_TOOLS_EPILOG = """\b
Examples:
  holdfast tools                                what agents can call
  holdfast tools edit_files                     one tool, with its parameters
  holdfast tools edit_files --as gemini         its function declaration
  holdfast tools --as openai > tools.json       those of all listed tools
  holdfast tools --workspace ~/project          what to tell a model of a folder"""
_CALL_EPILOG = """\b
Examples:
  holdfast call list_directory --json '{"path": "."}'
  holdfast call grep_content --dir ~/project --json '{"pattern": "def main"}'
  holdfast call all_changes --raw
  echo '{"path": "a.txt"}' | holdfast call read_text_file --json -"""


@click.command("tools", epilog=_TOOLS_EPILOG)
@click.argument("name", required=False)
@click.option("--as", "form", type=click.Choice(_FORMS), help="Print function declarations in this form, as JSON.")
@click.option("--person", is_flag=True, help="Also the tools that only you have; no agent sees or calls them.")
@click.option(
    "--workspace",
    "directories",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="Print what a model should know of DIR before its first call; repeat for several.",
)
@json_option
def tools_command(
    name: str | None, form: str | None, directories: tuple[str, ...], *, person: bool, as_json: bool
) -> None:
    """Show the tools, or one of them, also as the function declarations of MCP, OpenAI and Gemini.

    Without NAME those that agents are listed, less what the settings switch off. With NAME any tool that there is.
    """
    settings = load_settings(None).settings
    entries = [entry for entry in _ENTRIES.values() if settings.mcp.permits(entry.name, entry.group)]
    if directories:
        listed = [entry for entry in entries if entry.audience is CallerKind.AGENT and entry.listed]
        roots = [os.path.realpath(directory) for directory in directories]
        click.echo(paragraphs(describe_workspace(listed, roots, is_read_only=settings.folders.read_only)))
        return
    if name is not None:
        entry = _find(name)
        if form is not None:
            click.echo(json_text(declare(entry, cast("DeclarationForm", form)), indent=2))
        else:
            click.echo(json_text(_facts(entry), indent=2) if as_json else _describe(entry))
        return
    entries = [entry for entry in entries if entry.listed and (person or entry.audience is CallerKind.AGENT)]
    if form is not None:
        click.echo(json_text([declare(entry, cast("DeclarationForm", form)) for entry in entries], indent=2))
    elif as_json:
        click.echo(json_text([_facts(entry) for entry in entries], indent=2))
    else:
        click.echo(_describe_all(entries))


@click.command("call", epilog=_CALL_EPILOG)
@click.argument("name", metavar="TOOL")
@click.option(
    "--json", "arguments_text", default="{}", metavar="ARGS", help="The arguments as a JSON object; - is stdin."
)
@click.option(
    "--dir",
    "directories",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="A directory that the tool may use; repeat for several. Without any the working directory.",
)
@json_flag("--raw", "Print the whole result as JSON, as an agent gets it; errors too.")
def call_command(name: str, arguments_text: str, directories: tuple[str, ...], *, as_json: bool) -> None:
    """Call any tool, an agent's or your own, and print its text.

    The call takes the path of every call: limits, log, journal. What it changes can be undone.
    """
    entry = _find(name)
    arguments = _parse(sys.stdin.read() if arguments_text == "-" else arguments_text)
    roots = [os.path.realpath(directory) for directory in directories]
    if not roots and entry.audience is CallerKind.AGENT and (entry.group in LOCAL_GROUPS or not entry.allowed_in_pipe):
        roots = [os.getcwd()]
    with open_session() as session:
        result = session.call_whole(entry.audience.value, roots, entry.name, arguments)
    if result.get("isError"):
        raise error_from_payload(result["structuredContent"])
    if as_json:
        click.echo(json_text(result, indent=2))
        return
    for block in result["content"]:
        _print_block(block)


def _print_block(block: dict[str, Any]) -> None:
    """Print a block; in a terminal control characters are escaped, elsewhere the text is as it is."""
    if block["type"] != "text":
        media = block.get("resource", block)
        size = len(media.get("data", media.get("blob", ""))) * 3 // 4
        click.echo(f"[{block['type']}, {media.get('mimeType', 'unknown type')}, about {size:,} bytes; --raw prints it]")
    elif sys.stdout.isatty():
        click.echo(paragraphs(block["text"]))
    else:
        text = block["text"].encode("utf-8", "replace")
        sys.stdout.buffer.write(text if text.endswith(b"\n") else text + b"\n")
        sys.stdout.buffer.flush()


def _parse(text: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"--json takes the arguments as one JSON object: {error}") from None
    if not isinstance(arguments, dict):
        raise InvalidArgument("--json takes the arguments as one JSON object.")
    return arguments


def _find(name: str) -> Tool:
    entry = _ENTRIES.get(name)
    if entry is None:
        near = nearest_tool(name, list(_ENTRIES))
        hint = f" Did you mean {near!r}?" if near else " `holdfast tools` lists them."
        raise NotFound(f"There is no tool {display_name(name)}.{hint}")
    return entry


def _facts(entry: Tool) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": entry.name,
        "title": entry.title,
        "description": entry.description,
        "group": entry.group.value,
        "audience": entry.audience.value,
        "effect": entry.effect.value,
        "schema": entry.input_schema,
    }
    return facts if entry.output_schema is None else {**facts, "output_schema": entry.output_schema}


def _describe(entry: Tool) -> str:
    who = "only you" if entry.audience is CallerKind.PERSON else "agents"
    lines = [
        f"{entry.name}: {entry.title}",
        f"For {who}; group {entry.group.value}; {_EFFECTS[entry.effect.value]}.",
        "",
    ]
    lines += [entry.description, ""]
    properties: dict[str, Any] = entry.input_schema.get("properties", {})
    required = entry.input_schema.get("required", [])
    for name, schema in properties.items():
        kind = schema.get("type", "any")
        kind = f"{kind} of {schema['items'].get('type', 'any')}" if kind == "array" else kind
        need = "required" if name in required else "optional"
        lines.append(f"  {name}  ({kind}, {need})")
        lines.append(f"      {schema.get('description', '')}")
    return "\n".join(lines if properties else [*lines, "It takes no arguments."])


_EFFECTS = {
    "read": "changes nothing",
    "add": "adds something",
    "change": "changes something",
    "destroy": "changes or removes something",
}


def _describe_all(entries: Iterable[Tool]) -> str:
    def place(entry: Tool) -> tuple[str, str]:
        return entry.audience.value, entry.group.value

    parts: list[str] = []
    ordered: Sequence[Tool] = sorted(entries, key=place)
    width = max((len(entry.name) for entry in ordered), default=0)
    for (audience, group), members in groupby(ordered, key=place):
        parts.append(f"{group}, for you alone:" if audience == CallerKind.PERSON.value else f"{group}:")
        parts += [f"  {entry.name:<{width}}  {entry.title}" for entry in members]
    return "\n".join([*parts, "", "`holdfast tools NAME` shows one, `holdfast call NAME --json ARGS` calls it."])
