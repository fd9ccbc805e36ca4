"""Validates the arguments of a call within bounds: few names and values, little depth, and only the first errors worded."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from holdfast.errors import InvalidArgument, NotFound
from holdfast.observe.redact import PATH_NAMES
from holdfast.tools.registry import OTHER_NAMES, Tool

MAX_VALUES = 20_000
MAX_DEPTH = 64
_MAX_NAMES = 100
_MAX_WORDED = 5
_MAX_NAME_CHARS = 64
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WRONG_SHAPES = frozenset({"model_type", "model_attributes_type", "dict_type", "list_type"})
_SYNONYMS = [
    frozenset(line.split())
    for line in (
        "path file_path filepath file filename file_name search_path folder_path folder directory dir source original_path",
        "destination target to to_path new_path dest",
        "old_string oldtext old_text old_str old search find match",
        "new_string newtext new_text new_str new replace replacement",
        "content contents text file_text data body",
        "pattern regex regexp query expression search_term q glob",
        "limit max_results max count top_k",
        "change_id id plan_id",
    )
]
"""Names that tools give to the same thing, here and elsewhere; one of them that is unknown means another of its group."""

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
        details = error.errors(include_input=False, include_url=False, include_context=False)
        problems = _describe_problems(tool, arguments, details[: 2 * _MAX_WORDED])
        raise InvalidArgument(f"{tool.name}: {'; '.join(problems)}") from None


def parse_moment(name: str, text: str | None) -> datetime | None:
    """Return the time that an argument holds, None for none. InvalidArgument for a text that is no time with a zone."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidArgument(
            f"{name} must be an RFC 3339 time with its zone, such as 2026-01-31T12:00:00Z: {text!r:.80}"
        )
    return moment


def nearest_name(name: str, known: list[str]) -> str | None:
    """Return the known name that is most like another one, None when none is; a long name is like none."""
    near = get_close_matches(name, known, n=1) if len(name) <= _MAX_NAME_CHARS else []
    return near[0] if near else None


def nearest_tool(name: str, known: list[str]) -> str | None:
    """Return the known tool that another name means or is most like, None when there is none."""
    plain = _HUMPS.sub("_", name[:_MAX_NAME_CHARS]).casefold().replace("-", "_")
    other_name = OTHER_NAMES.get(plain)
    return other_name if other_name in known else nearest_name(name, known)


def no_such_tool(name: str, known: list[str]) -> NotFound:
    """Return the error about a tool that there is not; it names the one that is meant, or else all that there are."""
    near = nearest_tool(name, known)
    hint = f"Did you mean {near!r}?" if near else f"The tools: {', '.join(known)}"
    return NotFound(f"There is no tool {shorten(name)}. {hint}")


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


def _describe_problems(tool: Tool, arguments: Mapping[str, Any], details: Sequence[Any]) -> list[str]:
    """Return the first problems in words, each as what was given and the name that was meant, and the known names for the rest.

    An argument that was given under another name is not called missing as well.
    """
    missing = [_dotted(detail["loc"]) for detail in details if detail["type"] == "missing"]
    unknown = [tuple(detail["loc"]) for detail in details if detail["type"] == "extra_forbidden"]
    suggestions = {loc: _nearest_argument(tool, arguments, loc) for loc in unknown}
    strange = [loc for loc, name in suggestions.items() if name is None]
    unmet = [name for name in missing if name not in suggestions.values()]
    if len(strange) == 1 and len(unmet) == 1 and unmet[0].rpartition(".")[0] == _dotted(strange[0][:-1]):
        suggestions[strange[0]] = unmet[0]
    problems = []
    for detail in details:
        loc = tuple(detail["loc"])
        if detail["type"] == "missing" and _dotted(loc) in suggestions.values():
            continue
        if loc in suggestions:
            near = f" (did you mean {suggestions[loc]!r}?)" if suggestions[loc] else ""
            problems.append(f"unknown argument {shorten(_dotted(loc))}{near}")
        else:
            problems.append(_describe_problem(tool, arguments, detail))
    if any(len(loc) == 1 and not name for loc, name in suggestions.items()):
        names = list(tool.input_schema["properties"])
        known = f"{tool.name} takes {', '.join(names)}" if names else f"{tool.name} takes no arguments"
        return [*problems[:_MAX_WORDED], known]
    return problems[:_MAX_WORDED]


def _dotted(loc: Iterable[int | str]) -> str:
    return ".".join(map(str, loc))


def _describe_problem(tool: Tool, arguments: Mapping[str, Any], detail: Any) -> str:
    """Return what is wrong with one argument that is known, and how it should be."""
    loc, kind = tuple(detail["loc"]), detail["type"]
    where = shorten(_dotted(loc) or "arguments")
    if kind == "missing":
        return f"argument {where} is missing"
    if kind in _WRONG_SHAPES:
        name = next((step for step in reversed(loc) if isinstance(step, str)), "")
        return f"argument {where}: {_describe_shape(_schema_at(tool, loc), name, _value_at(arguments, loc))}"
    message = detail["msg"].replace(" after validation", "")
    return f"argument {where}: {message[0].lower()}{message[1:]}"


def _nearest_argument(tool: Tool, arguments: Mapping[str, Any], loc: tuple[int | str, ...]) -> str | None:
    """Return the argument that an unknown one stands for, by its use in other tools or by its letters, in its object."""
    above, name = loc[:-1], str(loc[-1])
    known = list(_schema_at(tool, above).get("properties", {}))
    container = _value_at(arguments, above)
    free = [other for other in known if not (isinstance(container, Mapping) and other in container)]
    alike = next((names for names in _SYNONYMS if name.casefold() in names), frozenset[str]())
    near = next((other for other in free if other.casefold() in alike), None) or nearest_name(name, known)
    return None if near is None else ".".join([*map(str, above), near])


def _describe_shape(schema: Mapping[str, Any], name: str, value: Any) -> str:
    """Return that an object or a list is expected where something else was given, with an example."""
    is_list = schema.get("type") == "array"
    noun = "a list" if is_list else "an object"
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        return f"{noun} is expected, and a text was given that may hold one: give it without the quotes"
    text = value if isinstance(value, str) and len(value) <= _MAX_NAME_CHARS else "…"
    example = _example_of(schema, name, text)
    return f"{noun} is expected, for example {json.dumps(example, ensure_ascii=False)}"


def _example_of(schema: Mapping[str, Any], name: str, text: str) -> Any:
    """Return a value of a schema with what is required; the first text in it is the given one where that may be a path."""
    if schema.get("type") == "object":
        required = {name: schema.get("properties", {}).get(name, {}) for name in schema.get("required", [])}
        return {
            name: _example_of(member, name, text if place == 0 else "…")
            for place, (name, member) in enumerate(required.items())
        }
    if schema.get("type") == "array":
        return [_example_of(schema.get("items", {}), name, text)]
    others = {"integer": 1, "number": 1, "boolean": True}
    return others.get(str(schema.get("type")), text if name in PATH_NAMES else "…")


def _schema_at(tool: Tool, loc: Iterable[int | str]) -> Mapping[str, Any]:
    """Return the schema of the argument at a place, empty when there is none."""
    schema: Mapping[str, Any] = tool.input_schema
    for step in loc:
        schema = schema.get("items", {}) if isinstance(step, int) else schema.get("properties", {}).get(step, {})
    return schema


def _value_at(arguments: Mapping[str, Any], loc: Iterable[int | str]) -> Any:
    """Return what was given at a place, None when nothing was."""
    value: Any = arguments
    for step in loc:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value
