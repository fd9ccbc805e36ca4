"""The tool list as clients get it: small, flat, described, in a fixed order, and text without a structured twin."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from holdfast.tools.registry import Group
from holdfast.tools.table import TOOLS
from tests.helpers.agent import LEGACY, MODERN, Agent

NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
MAX_TOOLS = 40
MAX_TOKENS = 9_000
MAX_FOLDER_TOKENS = 4_000
CHARACTERS_PER_TOKEN = 4
"""Fewer than a tokenizer takes: o200k_base makes a token of 4.3 characters of this list, cl100k_base of 4.5."""

ON_DISK, IN_DATABASE = "On disk: ", "Project database: "
FORBIDDEN = ("$ref", "$defs", "oneOf", "prefixItems")
TEXT_TOOLS = ("read_text_file", "read_files", "edit_file", "grep_content", "query_json")
FOLDER_TOOLS = {
    "append_text",
    "create_directory",
    "delete_file",
    "directory_tree",
    "edit_file",
    "edit_files",
    "get_file_info",
    "grep_content",
    "list_allowed_directories",
    "list_changes",
    "list_directory",
    "move_file",
    "query_json",
    "read_files",
    "read_media_file",
    "read_text_file",
    "search_files",
    "undo_change",
    "write_file",
}
FILES_ALONE = FOLDER_TOOLS | {"mcp_pipe"}
"""What a client is offered that asked for the group `files` alone."""

each_era = pytest.mark.parametrize("era", [LEGACY, MODERN])


@pytest.fixture
def listed(era: str, root: Path, state_dir: Path) -> list[types.Tool]:
    """Give the list that a client of the era gets."""
    with Agent([root], state_dir, mode=era) as client:
        return client.tools()


def nodes(schema: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Give every object of a schema with the place it stands at."""
    if isinstance(schema, dict):
        yield where, schema
        for key, value in schema.items():
            yield from nodes(value, f"{where}/{key}")
    elif isinstance(schema, list):
        for number, value in enumerate(schema):
            yield from nodes(value, f"{where}/{number}")


def parameters(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give every parameter, nested ones too, with the place it stands at."""
    for where, node in nodes(schema):
        properties = node.get("properties")
        if isinstance(properties, dict) and node.get("type") == "object":
            yield from ((f"{where}/{name}", parameter) for name, parameter in properties.items())


def tokens(tools: list[types.Tool]) -> float:
    """Return what these entries of the list cost a model, by estimate."""
    wire = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    return len(json.dumps(wire, separators=(",", ":"), ensure_ascii=False)) / CHARACTERS_PER_TOKEN


@pytest.mark.req("SV-06.b", "SV-06.d")
@each_era
def test_the_list_has_the_folder_tools_and_stays_small(listed: list[types.Tool]) -> None:
    names = [tool.name for tool in listed]
    assert set(names) >= FOLDER_TOOLS
    assert len(names) == len(set(names)) <= MAX_TOOLS
    assert tokens(listed) < MAX_TOKENS
    assert tokens([tool for tool in listed if tool.name in FILES_ALONE]) < MAX_FOLDER_TOKENS


@pytest.mark.req("SV-06.d")
@each_era
def test_titles_and_first_words_tell_files_on_disk_from_the_project_database(listed: list[types.Tool]) -> None:
    stored = {tool.name for tool in TOOLS if tool.group is Group.STORE}
    for tool in listed:
        if tool.name == "mcp_pipe":
            continue
        title, words = (
            (IN_DATABASE, "In the project database, not on disk: ") if tool.name in stored else (ON_DISK, ON_DISK)
        )
        assert str(tool.title).startswith(title), tool.name
        assert str(tool.description).startswith(words), tool.name


@pytest.mark.req("SV-06.d")
@each_era
def test_every_parameter_says_what_it_is_in_a_phrase(listed: list[types.Tool]) -> None:
    for tool in listed:
        for where, parameter in parameters(tool.input_schema):
            words = str(parameter["description"]).rstrip(".").split()
            assert len(words) >= 3, f"{tool.name}{where}: {parameter['description']}"


@pytest.mark.req("SV-06.d")
@each_era
def test_every_tool_is_named_titled_described_and_annotated(listed: list[types.Tool]) -> None:
    for tool in listed:
        assert NAME.fullmatch(tool.name), tool.name
        assert tool.title, tool.name
        assert tool.description, tool.name
        hints = tool.annotations
        assert hints is not None, tool.name
        assert None not in (hints.read_only_hint, hints.open_world_hint)
        writes = (hints.destructive_hint, hints.idempotent_hint)
        assert all(hint is None if hints.read_only_hint else hint is not None for hint in writes), tool.name


@pytest.mark.req("SV-06.d")
@each_era
def test_schemas_are_flat_and_every_parameter_is_described(listed: list[types.Tool]) -> None:
    for tool in listed:
        assert tool.input_schema["type"] == "object", tool.name
        assert tool.input_schema.get("additionalProperties") is False, tool.name
        for where, node in nodes([tool.input_schema, tool.output_schema or {}]):
            assert not [key for key in FORBIDDEN if key in node], f"{tool.name}{where}"
        for where, parameter in parameters(tool.input_schema):
            assert parameter.get("description"), f"{tool.name}{where} has no description"
            assert "type" in parameter or "enum" in parameter or "anyOf" in parameter, f"{tool.name}{where} has no type"


@pytest.mark.req("SV-06.d")
@each_era
def test_the_order_of_the_list_is_always_the_same(era: str, root: Path, state_dir: Path) -> None:
    lists = []
    for _client in range(2):
        with Agent([root], state_dir, mode=era) as client:
            lists += [[tool.name for tool in client.tools()], [tool.name for tool in client.tools()]]
    assert lists == [lists[0]] * 4


@pytest.mark.req("SV-06.c")
@each_era
def test_tools_that_answer_with_text_declare_no_structured_output(listed: list[types.Tool]) -> None:
    schemas = {tool.name: tool.output_schema for tool in listed}
    assert {name: schemas[name] for name in TEXT_TOOLS} == dict.fromkeys(TEXT_TOOLS)


@pytest.mark.req("SV-06.c")
@each_era
def test_text_comes_once_and_data_is_complete_in_itself(era: str, root: Path, state_dir: Path) -> None:
    (root / "a.json").write_text('{"said": "once"}\n')
    with Agent([root], state_dir, mode=era) as client:
        schemas = {tool.name: tool.output_schema for tool in client.tools()}
        calls: list[tuple[str, dict[str, Any]]] = [
            ("read_text_file", {"path": "a.json"}),
            ("read_files", {"files": [{"path": "a.json"}]}),
            ("query_json", {"file_path": "a.json", "expression": ".said"}),
            ("grep_content", {"pattern": "once"}),
            ("get_file_info", {"path": "a.json"}),
            ("list_directory", {"path": "."}),
            ("list_allowed_directories", {}),
        ]
        for name, arguments in calls:
            result = client.call_with(name, arguments).ok().result
            assert (result.structured_content is None) == (schemas[name] is None), name
