"""The API's document: every entry with its arguments and its answer, references that lead somewhere, no name twice."""

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.auth.context import CallerKind
from holdfast.console.openapi import openapi_document
from holdfast.tools.table import TOOLS

DOCUMENT = openapi_document(TOOLS)
FIXED = {"me", "session", "events", "tools", "workspace", "media", "openapi.json", "logs"}


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from nodes(inner)


ENTRIES = [tool for tool in TOOLS if tool.audience is not CallerKind.PANEL]


@pytest.mark.req("SV-43.a")
def test_every_entry_has_a_path_and_none_hides_one_of_the_console() -> None:
    assert not FIXED & {tool.name for tool in ENTRIES}
    for tool in ENTRIES:
        operation = DOCUMENT["paths"][f"/api/{tool.name}"]["post"]
        assert operation["x-audience"] == tool.audience.value
        data = operation["responses"]["200"]["content"]["application/json"]["schema"]["properties"]["data"]
        assert ("$ref" in data) == (tool.output is not None)


def test_every_reference_leads_to_a_schema() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    targets = {node["$ref"] for node in nodes(DOCUMENT) if "$ref" in node}
    assert targets
    assert {target.removeprefix("#/components/schemas/") for target in targets} <= schemas.keys()


def test_the_arguments_of_a_tool_are_those_of_its_schema() -> None:
    for tool in ENTRIES:
        body = DOCUMENT["paths"][f"/api/{tool.name}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        schema = DOCUMENT["components"]["schemas"][body["$ref"].rsplit("/", 1)[-1]]
        assert schema.get("properties", {}).keys() == tool.input_schema.get("properties", {}).keys()
        assert schema.get("required", []) == tool.input_schema.get("required", [])


def test_what_may_be_none_is_left_out_of_answers_so_it_is_neither_required_nor_null() -> None:
    for name, schema in DOCUMENT["components"]["schemas"].items():
        for node in nodes(schema):
            choices = [choice.get("type") for choice in node.get("anyOf", ()) if isinstance(choice, dict)]
            assert "null" not in choices, name
