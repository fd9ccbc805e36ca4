"""Pure: the reply that a client brought back, once it is known to fit the form that was asked for."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from holdfast.call import Question, Reply
from holdfast.errors import InvalidArgument


def reply_to(question: Question, answer: object) -> Reply:
    """Return the reply; only what was asked for is in it. Raises InvalidArgument when it does not fit the form."""
    said = answer if isinstance(answer, dict) else {}
    match said.get("action"):
        case "accept":
            return Reply("accept", _filled(question, said.get("content")))
        case "decline":
            return Reply("decline")
        case "cancel":
            return Reply("cancel")
        case _:
            raise _unfit(question, "expected an action: accept, decline or cancel")


def _filled(question: Question, content: object) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise _unfit(question, "accepted without what was asked for")
    properties: Mapping[str, Any] = question.schema.get("properties", {})
    filled = {name: value for name, value in content.items() if name in properties and value is not None}
    for name in question.schema.get("required", ()):
        if name not in filled:
            raise _unfit(question, f"{name!r} is missing")
    for name, value in filled.items():
        wanted = _wanted(properties[name], value)
        if wanted is not None:
            raise _unfit(question, f"{name!r} must be {wanted}")
    return filled


def _unfit(question: Question, problem: str) -> InvalidArgument:
    return InvalidArgument(f"The answer to the question {question.key!r} does not fit its form: {problem}.")


def _wanted(rule: Mapping[str, Any], value: object) -> str | None:
    """Return what the rule wants instead of this value, None when it fits."""
    match rule.get("type"):
        case "string":
            return _wanted_text(rule, value)
        case "boolean":
            return None if isinstance(value, bool) else "true or false"
        case "integer" | "number" as kind:
            return _wanted_number(rule, value, kind)
        case "array":
            return _wanted_list(rule, value)
        case other:
            raise ValueError(f"a form has no fields of type {other!r}")


def _wanted_text(rule: Mapping[str, Any], value: object) -> str | None:
    choices = _choices(rule)
    if choices is not None:
        return None if isinstance(value, str) and value in choices else f"one of {', '.join(choices)}"
    if not isinstance(value, str) or not _is_whole(value):
        return "text"
    return _wanted_within(len(value), rule, "minLength", "maxLength", "characters")


def _wanted_number(rule: Mapping[str, Any], value: object, kind: str) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return "a number"
    if kind == "integer" and value != int(value):
        return "a whole number"
    return _wanted_within(value, rule, "minimum", "maximum", "")


def _wanted_list(rule: Mapping[str, Any], value: object) -> str | None:
    choices = _choices(rule.get("items", {})) or []
    if not isinstance(value, list) or not all(isinstance(item, str) and item in choices for item in value):
        return f"a list of {', '.join(choices)}"
    return _wanted_within(len(value), rule, "minItems", "maxItems", "entries")


def _wanted_within(amount: float, rule: Mapping[str, Any], least: str, most: str, unit: str) -> str | None:
    if least in rule and amount < rule[least]:
        return f"at least {rule[least]} {unit}".rstrip()
    if most in rule and amount > rule[most]:
        return f"at most {rule[most]} {unit}".rstrip()
    return None


def _choices(rule: Mapping[str, Any]) -> list[str] | None:
    """Return the texts that a rule allows, None when it allows any."""
    if "enum" in rule:
        return list(rule["enum"])
    titled = rule.get("oneOf", rule.get("anyOf"))
    return None if titled is None else [option["const"] for option in titled]


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
