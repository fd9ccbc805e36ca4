"""Validates the arguments of a call within bounds: few names and values, little depth, and only the first errors worded."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from holdfast.errors import InvalidArgument
from holdfast.tools.registry import Tool

MAX_VALUES = 20_000
MAX_DEPTH = 64
_MAX_NAMES = 100
_MAX_WORDED = 5
_MAX_NAME_CHARS = 64
_SMALL_VALUES = 200
_SMALL_CHARS = 65_536


def is_small(arguments: Mapping[str, Any]) -> bool:
    """Return whether arguments are validated at once: so few and short that the event loop does not notice."""
    count, chars = 0, 0
    waiting: list[Any] = [arguments]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            chars += len(value)
        elif isinstance(value, (dict, list)):
            count += len(value)
            if count > _SMALL_VALUES:
                return False
            waiting += value.values() if isinstance(value, dict) else value
        if chars > _SMALL_CHARS:
            return False
    return True


def parse_arguments(tool: Tool, arguments: Mapping[str, Any]) -> Any:
    """Return the arguments as the tool's model. InvalidArgument names the first errors, and the nearest known names."""
    _check_bounds(tool, arguments)
    try:
        return tool.arguments.model_validate(arguments)
    except ValidationError as error:
        details = error.errors(include_input=False, include_url=False, include_context=False)[:_MAX_WORDED]
        raise InvalidArgument(
            f"{tool.name}: {'; '.join(_describe_problem(tool, detail) for detail in details)}"
        ) from None


def nearest_name(name: str, known: list[str]) -> str | None:
    """Return the known name that is most like another one, None when none is; a long name is like none."""
    near = get_close_matches(name, known, n=1) if len(name) <= _MAX_NAME_CHARS else []
    return near[0] if near else None


def shorten(name: str) -> str:
    """Return a name quoted for an error, cut when it is long."""
    return repr(name) if len(name) <= _MAX_NAME_CHARS else f"{name[:_MAX_NAME_CHARS]!r}…"


def _check_bounds(tool: Tool, arguments: Mapping[str, Any]) -> None:
    if len(arguments) > _MAX_NAMES:
        known = len(tool.arguments.model_fields)
        raise InvalidArgument(f"{tool.name}: {len(arguments)} arguments were given; it takes at most {known}.")
    count = 0
    level: list[Any] = list(arguments.values())
    for _ in range(MAX_DEPTH):
        count += len(level)
        if count > MAX_VALUES:
            raise InvalidArgument(f"{tool.name}: the arguments hold more than {MAX_VALUES} values; make several calls.")
        level = [inner for value in level if isinstance(value, (dict, list)) for inner in _values(value)]
        if not level:
            return
    raise InvalidArgument(f"{tool.name}: the arguments are nested more than {MAX_DEPTH} levels deep.")


def _values(container: "dict[str, Any] | list[Any]") -> "list[Any]":
    return list(container.values())[: MAX_VALUES + 1] if isinstance(container, dict) else container[: MAX_VALUES + 1]


def _describe_problem(tool: Tool, detail: Any) -> str:
    where = ".".join(str(step) for step in detail["loc"]) or "arguments"
    if detail["type"] == "extra_forbidden":
        near = nearest_name(where, list(tool.input_schema.get("properties", {})))
        return f"unknown argument {shorten(where)}" + (f" (did you mean {near!r}?)" if near else "")
    if detail["type"] == "missing":
        return f"argument {shorten(where)} is missing"
    return f"argument {shorten(where)}: {detail['msg'][0].lower()}{detail['msg'][1:]}"
