"""Pure: a tool's JSON Schema in the flat form that every client can read.

No `$ref`, no `oneOf`, no titles. An optional parameter is one that is not required, so it has no `null` alternative;
a required member of an answer keeps it. `required` of an answer is left out, because every caller would pay for it in tokens.
"""

from typing import Any

from pydantic import BaseModel

_OMITTED = ("required", "default")


def flat_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the model's schema with every reference inlined and every decoration removed."""
    raw = model.model_json_schema(by_alias=True)
    definitions = raw.pop("$defs", {})
    flat: dict[str, Any] = _flatten(raw, definitions)
    flat.pop("description", None)
    return flat


def answer_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of an answer: the types of its members and no more."""
    slim: dict[str, Any] = _slim(flat_schema(model))
    return slim


def _slim(node: Any) -> Any:
    if isinstance(node, list):
        return [_slim(item) for item in node]
    if not isinstance(node, dict):
        return node
    rest = {
        key: value
        for key, value in node.items()
        if key not in _OMITTED and (key, value) != ("additionalProperties", True)
    }
    return {key: _slim_properties(value) if key == "properties" else _slim(value) for key, value in rest.items()}


def _slim_properties(members: dict[str, Any]) -> dict[str, Any]:
    return {name: _slim(member) for name, member in members.items()}


def _flatten(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_flatten(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = dict(definitions[node["$ref"].rsplit("/", 1)[-1]])
        target.pop("description", None)
        return _flatten({**target, **{key: value for key, value in node.items() if key != "$ref"}}, definitions)
    if "anyOf" in node and node.get("default", ...) is None:
        node = _without_null(node)
    rest = {key: value for key, value in node.items() if key != "title" or not isinstance(value, str)}
    if rest.get("default", ...) is None:
        del rest["default"]
    return {key: _flatten_member(key, value, definitions) for key, value in rest.items()}


def _flatten_member(key: str, value: Any, definitions: dict[str, Any]) -> Any:
    """Flatten one member; the names of properties are names, so one called `title` is no decoration."""
    if key == "properties":
        return {name: _flatten(sub, definitions) for name, sub in value.items()}
    return _flatten(value, definitions)


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    choices = [choice for choice in node["anyOf"] if choice.get("type") != "null"]
    if len(choices) == 1:
        return {**choices[0], **{key: value for key, value in node.items() if key != "anyOf"}}
    return {**node, "anyOf": choices}
