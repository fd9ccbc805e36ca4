"""Pure: validates a client's reply against the form of the question."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from holdfast.call import Question, Reply
from holdfast.errors import InvalidArgument
from holdfast.text.decode import has_lone_surrogate
from holdfast.text.display import quantity


def parse_reply(question: Question, answer: object) -> Reply:
    """Return the reply, with the fields of the form alone. Raises InvalidArgument when it does not fit the form."""
    reply = answer if isinstance(answer, dict) else {}
    match reply.get("action"):
        case "accept":
            return Reply("accept", _check_content(question, reply.get("content")))
        case "decline":
            return Reply("decline")
        case "cancel":
            return Reply("cancel")
        case _:
            raise _mismatch(question, "expected an action: accept, decline or cancel")


def _check_content(question: Question, content: object) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise _mismatch(question, "accepted without content")
    properties: Mapping[str, Any] = question.schema.get("properties", {})
    fields = {name: value for name, value in content.items() if name in properties and value is not None}
    for name in question.schema.get("required", ()):
        if name not in fields:
            raise _mismatch(question, f"{name!r} is missing")
    for name, value in fields.items():
        expected = _expected(properties[name], value)
        if expected is not None:
            raise _mismatch(question, f"{name!r} must be {expected}")
    return fields


def _mismatch(question: Question, problem: str) -> InvalidArgument:
    return InvalidArgument(f"The answer to the question {question.key!r} does not fit its form: {problem}.")


def _expected(rule: Mapping[str, Any], value: object) -> str | None:
    """Return what the rule expects instead of this value, None when the value fits."""
    match rule.get("type"):
        case "string":
            return _expected_string(rule, value)
        case "boolean":
            return None if isinstance(value, bool) else "true or false"
        case "integer" | "number" as kind:
            return _expected_number(rule, value, kind)
        case "array":
            return _expected_list(rule, value)
        case unknown:
            raise ValueError(f"a form has no fields of type {unknown!r}")


def _expected_string(rule: Mapping[str, Any], value: object) -> str | None:
    choices = _choices(rule)
    if choices is not None:
        return None if isinstance(value, str) and value in choices else f"one of {', '.join(choices)}"
    if not isinstance(value, str) or has_lone_surrogate(value):
        return "text"
    return _expected_within(len(value), rule, "minLength", "maxLength", ("character", "characters"))


def _expected_number(rule: Mapping[str, Any], value: object, kind: str) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return "a number"
    if kind == "integer" and value != int(value):
        return "a whole number"
    return _expected_within(value, rule, "minimum", "maximum")


def _expected_list(rule: Mapping[str, Any], value: object) -> str | None:
    choices = _choices(rule.get("items", {})) or []
    if not isinstance(value, list) or not all(isinstance(item, str) and item in choices for item in value):
        return f"a list of {', '.join(choices)}"
    return _expected_within(len(value), rule, "minItems", "maxItems", ("entry", "entries"))


def _expected_within(
    amount: float, rule: Mapping[str, Any], least: str, most: str, unit: tuple[str, str] | None = None
) -> str | None:
    if least in rule and amount < rule[least]:
        return f"at least {_bound(rule[least], unit)}"
    if most in rule and amount > rule[most]:
        return f"at most {_bound(rule[most], unit)}"
    return None


def _bound(limit: Any, unit: tuple[str, str] | None) -> str:
    return str(limit) if unit is None else quantity(limit, *unit)


def _choices(rule: Mapping[str, Any]) -> list[str] | None:
    """Return the texts that a rule allows, None when it allows any."""
    if "enum" in rule:
        return list(rule["enum"])
    titled = rule.get("oneOf", rule.get("anyOf"))
    return None if titled is None else [option["const"] for option in titled]
