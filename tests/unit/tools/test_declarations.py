"""Tools as function declarations: what each API refuses is not in them, and what a caller needs still is."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, Field

from holdfast.app import App
from holdfast.call import Call
from holdfast.tools.answer import Answer
from holdfast.tools.declarations import (
    declare,
    describe_workspace,
    gemini_declaration,
    mcp_declaration,
    openai_declaration,
)
from holdfast.tools.registry import Arguments, Effect, Group, Tool, tool
from holdfast.tools.table import TOOLS
from holdfast.tools.validate import parse_arguments

pytestmark = pytest.mark.req("SV-43.b")

ENTRIES = list(TOOLS)
NAMES = [entry.name for entry in ENTRIES]
GEMINI_REFUSES = {"$ref", "$defs", "default", "title", "additionalProperties", "oneOf", "allOf", "not", "const"}
GEMINI_TYPES = {"string", "number", "integer", "boolean", "array", "object"}


class Inner(BaseModel):
    """A part of the arguments."""

    title: str = Field(description="A parameter whose name is a keyword elsewhere.")
    default: int = Field(3, gt=0, description="Another one.")


class Odd(Arguments):
    """Arguments with everything that some API refuses."""

    title: str = Field(description="The title.")
    inner: Inner = Field(description="One part.")
    parts: list[Inner] = Field([], description="More parts.")
    count: int | None = Field(None, description="Perhaps a number.")
    either: int | str = Field(1, description="A number or a text.")
    level: float = Field(0.5, gt=0, le=1, description="A share.")
    extra: dict[str, Any] = Field(default={}, description="Anything.")


@tool("odd", group=Group.FILES, effect=Effect.CHANGE, title="Odd")
def odd(_app: App, _call: Call, _args: Odd) -> Answer:
    """Do something odd."""
    return Answer.of("")


def schemas(schema: dict[str, Any], at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Return a schema and every one within it; the names of parameters are none."""
    yield at, schema
    for name, member in schema.get("properties", {}).items():
        yield from schemas(member, f"{at}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from schemas(schema["items"], f"{at}[]")
    for choice in schema.get("anyOf", []):
        yield from schemas(choice, f"{at}|")


@pytest.mark.parametrize("entry", [*ENTRIES, odd], ids=[*NAMES, "odd"])
def test_geminis_declaration_keeps_its_rules_and_loses_no_parameter(entry: Tool) -> None:
    declaration = gemini_declaration(entry)
    assert set(declaration) <= {"name", "description", "parameters"}
    assert re.fullmatch("[a-zA-Z_][a-zA-Z0-9_.-]{0,63}", declaration["name"])
    assert declaration["description"]
    names = entry.input_schema.get("properties", {})
    if not names:
        assert "parameters" not in declaration
        return
    assert declaration["parameters"]["properties"].keys() == names.keys()
    assert declaration["parameters"].get("required") == entry.input_schema.get("required")
    ours, theirs = dict(schemas(entry.input_schema)), dict(schemas(declaration["parameters"]))
    assert {place for place in ours if "|" not in place} == {place for place in theirs if "|" not in place}
    for place, schema in theirs.items():
        assert not GEMINI_REFUSES & schema.keys(), place
        assert ("anyOf" in schema) != ("type" in schema), place
        assert schema.get("type", "string") in GEMINI_TYPES, place
        assert all(isinstance(choice, str) for choice in schema.get("enum", [])), place
        for name, member in schema.get("properties", {}).items():
            assert member.get("nullable", False) == (name not in schema.get("required", [])), f"{place}.{name}"


def test_a_parameter_whose_name_is_a_keyword_survives_and_the_keyword_does_not() -> None:
    parameters = gemini_declaration(odd)["parameters"]
    assert parameters["properties"]["title"] == {"description": "The title.", "type": "string"}
    assert parameters["properties"]["inner"]["properties"].keys() == {"title", "default"}
    assert parameters["properties"]["inner"]["properties"]["default"]["minimum"] == 1
    assert parameters["properties"]["count"] == {
        "description": "Perhaps a number.",
        "type": "integer",
        "nullable": True,
    }
    assert [choice["type"] for choice in parameters["properties"]["either"]["anyOf"]] == ["integer", "string"]
    assert "title" not in parameters


@pytest.mark.parametrize("entry", ENTRIES, ids=NAMES)
def test_openais_and_mcps_declarations_have_the_schema_as_it_is(entry: Tool) -> None:
    function = openai_declaration(entry)
    assert function["type"] == "function"
    assert function["function"]["parameters"] == entry.input_schema
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", function["function"]["name"])
    declared = mcp_declaration(entry)
    assert declared["inputSchema"] == entry.input_schema
    assert declared["annotations"]["readOnlyHint"] is not entry.mutates
    assert json.loads(json.dumps([declare(entry, "mcp"), declare(entry, "openai")])) == [declared, function]


@pytest.mark.parametrize("entry", ENTRIES, ids=NAMES)
def test_what_may_be_null_may_be_sent_as_null(entry: Tool) -> None:
    """A model that is told `nullable` sends null where it has nothing to say."""
    optional = {
        name: None
        for name in entry.input_schema.get("properties", {})
        if name not in entry.input_schema.get("required", [])
    }
    required = entry.input_schema.get("required", [])
    if not required:
        assert parse_arguments(entry, optional) == parse_arguments(entry, {})


def test_a_null_for_what_is_required_is_still_refused() -> None:
    with pytest.raises(Exception, match="path"):
        parse_arguments(next(entry for entry in ENTRIES if entry.name == "read_text_file"), {"path": None})


@pytest.mark.req("SV-43.c")
def test_a_workspace_says_where_the_model_may_work_and_what_with() -> None:
    own = [entry for entry in ENTRIES if entry.name in ("edit_files", "read_files", "undo_change")]
    text = describe_workspace(own, ["/home/me/project"], is_read_only=False)
    assert "- /home/me/project\n" in text
    assert "files: read_files, edit_files, undo_change" in text
    assert "read-only" not in text
    assert "read-only" in describe_workspace(own, ["/p"], is_read_only=True)
    store = describe_workspace([entry for entry in ENTRIES if entry.group is Group.STORE], [], is_read_only=False)
    assert "no local directories" in store
    assert "undo_change" not in store
