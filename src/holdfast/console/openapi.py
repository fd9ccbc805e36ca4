"""Describes the console's API as an OpenAPI document, made from the registry: the page's types are made from it."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from holdfast import __version__
from holdfast.auth.context import CallerKind
from holdfast.console import shapes
from holdfast.console.gate import KEY_HEADER
from holdfast.tools.registry import Registry, Tool

Schemas = Mapping[tuple[Any, Literal["validation", "serialization"]], dict[str, Any]]
_TEMPLATE = "#/components/schemas/{model}"
_REQUESTS = (shapes.SignInRequest, shapes.SessionEnd)
_ANSWERS = (
    shapes.ContentBlock,
    shapes.Done,
    shapes.FaultAnswer,
    shapes.Me,
    shapes.SessionList,
    shapes.SignInAnswer,
    shapes.ToolList,
)
_TEXT = {"type": "string"}


def openapi_document(registry: Registry) -> dict[str, Any]:
    """Return the document: a path for each entry, and those beside them."""
    models: list[tuple[type[BaseModel], Literal["validation", "serialization"]]] = []
    models += [(model, "validation") for model in _REQUESTS]
    models += [(model, "serialization") for model in _ANSWERS]
    entries = [entry for entry in registry if entry.audience is not CallerKind.PANEL]
    for entry in entries:
        models.append((entry.arguments, "validation"))
        models += [(entry.output, "serialization")] if entry.output else []
    schemas, definitions = models_json_schema(list(dict.fromkeys(models)), ref_template=_TEMPLATE)
    components: dict[str, Any] = definitions.get("$defs", {})
    return {
        "openapi": "3.1.0",
        "info": {"title": "Holdfast console", "version": __version__},
        "paths": {
            **_fixed_paths(schemas),
            **{f"/api/{entry.name}": {"post": _call(entry, schemas)} for entry in entries},
        },
        "components": {
            "schemas": {name: _plain(schema) for name, schema in sorted(components.items())},
            "securitySchemes": {
                "cookie": {"type": "apiKey", "in": "cookie", "name": "holdfast_session_PORT"},
                "key": {"type": "apiKey", "in": "header", "name": KEY_HEADER},
            },
        },
        "security": [{"cookie": [], "key": []}],
    }


def _fixed_paths(schemas: Schemas) -> dict[str, Any]:
    def answer(model: type[BaseModel]) -> dict[str, Any]:
        return _json(_plain(schemas[model, "serialization"]))

    def body(model: type[BaseModel]) -> dict[str, Any]:
        return {"required": True, **_json(_plain(schemas[model, "validation"]))}

    def operation(summary: str, content: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"summary": summary, **more, "responses": _responses(content, schemas)}

    name = {"name": "name", "in": "path", "required": True, "schema": _TEXT}
    form = {"name": "as", "in": "query", "schema": {"type": "string", "enum": ["mcp", "openai", "gemini"]}}
    path = {"name": "path", "in": "query", "required": True, "schema": _TEXT}
    last_id = {"name": "Last-Event-ID", "in": "header", "schema": _TEXT}
    any_object = _json({"type": "object", "additionalProperties": True})
    return {
        "/api/me": {"get": operation("Who is signed in", answer(shapes.Me))},
        "/api/session": {
            "get": operation("The open sessions", answer(shapes.SessionList)),
            "post": operation(
                "Sign in", answer(shapes.SignInAnswer), requestBody=body(shapes.SignInRequest), security=[]
            ),
            "delete": operation("Sign out", answer(shapes.Done)),
        },
        "/api/session/end": {
            "post": operation("End one session", answer(shapes.Done), requestBody=body(shapes.SessionEnd))
        },
        "/api/events": {
            "get": operation(
                "What happens, as ids", {"content": {"text/event-stream": {"schema": _TEXT}}}, parameters=[last_id]
            )
        },
        "/api/tools": {"get": operation("The entries that may be called", answer(shapes.ToolList))},
        "/api/tools/{name}": {"get": operation("A function declaration", any_object, parameters=[name, form])},
        "/api/workspace": {
            "get": operation("What a model may use here, as text", {"content": {"text/plain": {"schema": _TEXT}}})
        },
        "/api/media": {
            "get": operation(
                "The bytes of a local file",
                {"content": {"application/octet-stream": {"schema": {}}}},
                parameters=[path],
            )
        },
        "/api/openapi.json": {"get": operation("This document", any_object)},
    }


def _call(entry: Tool, schemas: Schemas) -> dict[str, Any]:
    data = _plain(schemas[entry.output, "serialization"]) if entry.output else {"type": "null"}
    block = _plain(schemas[shapes.ContentBlock, "serialization"])
    members: dict[str, Any] = {
        "data": data,
        "text": {"type": "array", "items": _TEXT},
        "content": {"type": "array", "items": block},
        "duration_ms": {"type": "number"},
    }
    answer = {"type": "object", "required": list(members), "properties": members}
    arguments = _plain(schemas[entry.arguments, "validation"])
    return {
        "operationId": entry.name,
        "summary": entry.title,
        "description": entry.description,
        "tags": [entry.group.value],
        "x-audience": entry.audience.value,
        "x-effect": entry.effect.value,
        "requestBody": {"required": True, **_json(arguments)},
        "responses": _responses(_json(answer), schemas),
    }


def _responses(content: dict[str, Any], schemas: Schemas) -> dict[str, Any]:
    fault = _json(_plain(schemas[shapes.FaultAnswer, "serialization"]))
    return {"200": {"description": "Done", **content}, "default": {"description": "It failed", **fault}}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def _plain(node: Any) -> Any:
    """Return a schema as answers have it: what is None is left out, so it is neither required nor null."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    properties: dict[str, Any] = node.get("properties", {}) if isinstance(node.get("properties"), dict) else {}
    optional = {name for name, member in properties.items() if _may_be_null(member)}
    plain = {key: value for key, value in node.items() if key != "title" or not isinstance(value, str)}
    if _may_be_null(node):
        choices = [choice for choice in plain.pop("anyOf") if choice.get("type") != "null"]
        plain = {**(choices[0] if len(choices) == 1 else {"anyOf": choices}), **plain}
    if plain.get("default", ...) is None:
        del plain["default"]
    if optional and "required" in plain:
        plain["required"] = [name for name in plain["required"] if name not in optional]
    return {
        key: {name: _plain(member) for name, member in value.items()} if key == "properties" else _plain(value)
        for key, value in plain.items()
    }


def _may_be_null(node: Any) -> bool:
    return isinstance(node, dict) and any(
        isinstance(choice, dict) and choice.get("type") == "null" for choice in node.get("anyOf", ())
    )
