"""Which replies fit a form."""

from typing import Any

import pytest

from holdfast.call import Question, Reply
from holdfast.errors import InvalidArgument
from holdfast.transport.mcp.form import parse_reply
from tests.protocol.fixture_asking import DEFAULTS, ENUMS, question


def asking(required: list[str] | None = None, **form: dict[str, Any]) -> Question:
    return question("q", "?", form, required)


def accepted(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_what_a_person_who_does_not_accept_filled_in_is_not_passed_on(action: str) -> None:
    assert parse_reply(asking(), {"action": action, "content": {"ok": True}}).content == {}


@pytest.mark.parametrize(
    "answer", [None, 5, "accept", [], {}, {"action": "yes"}, {"action": ["accept"]}, {"action": 1}]
)
def test_what_is_no_reply_is_refused(answer: object) -> None:
    with pytest.raises(InvalidArgument, match="expected an action: accept, decline or cancel"):
        parse_reply(asking(), answer)


def test_every_kind_of_field_may_be_filled_in() -> None:
    plain = {"name": "Jane", "age": 25, "score": 88.5, "status": "inactive", "verified": False}
    assert parse_reply(question("q", "?", DEFAULTS), accepted(**plain)) == Reply("accept", plain)
    chosen = {
        "untitledSingle": "option1",
        "titledSingle": "value2",
        "legacyEnum": "opt3",
        "untitledMulti": ["option1", "option3"],
        "titledMulti": [],
    }
    assert parse_reply(question("q", "?", ENUMS), accepted(**chosen)) == Reply("accept", chosen)


def test_only_what_was_asked_for_is_in_the_reply() -> None:
    wanted = asking(["name"], name={"type": "string"}, note={"type": "string"})
    assert parse_reply(wanted, accepted(name="", note=None, admin=True)).content == {"name": ""}


@pytest.mark.parametrize(
    ("rule", "value", "wanted"),
    [
        ({"type": "string"}, 5, "text"),
        ({"type": "string"}, "half \ud83c", "text"),
        ({"type": "string", "minLength": 2}, "a", "at least 2 characters"),
        ({"type": "string", "maxLength": 2}, "abc", "at most 2 characters"),
        ({"type": "string", "enum": ["a", "b"]}, "c", "one of a, b"),
        ({"type": "string", "enum": ["a", "b"]}, ["a"], "one of a, b"),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, "A", "one of a"),
        ({"type": "boolean"}, "true", "true or false"),
        ({"type": "boolean"}, 1, "true or false"),
        ({"type": "number"}, "5", "a number"),
        ({"type": "number"}, True, "a number"),
        ({"type": "number"}, float("nan"), "a number"),
        ({"type": "integer"}, 2.5, "a whole number"),
        ({"type": "integer", "minimum": 3}, 2, "at least 3"),
        ({"type": "integer", "maximum": 3}, 4, "at most 3"),
        ({"type": "array", "items": {"type": "string", "enum": ["a"]}}, ["a", "b"], "a list of a"),
        ({"type": "array", "items": {"type": "string", "enum": ["a"]}}, "a", "a list of a"),
        ({"type": "array", "items": {"enum": ["a"]}, "minItems": 1}, [], "at least 1 entry"),
        ({"type": "array", "items": {"enum": ["a"]}, "maxItems": 1}, ["a", "a"], "at most 1 entry"),
    ],
)
def test_a_value_that_breaks_its_rule_is_refused_without_being_shown(
    rule: dict[str, Any], value: Any, wanted: str
) -> None:
    with pytest.raises(InvalidArgument) as error:
        parse_reply(asking(field=rule), accepted(field=value))
    assert error.value.message == f"The answer to the question 'q' does not fit its form: 'field' must be {wanted}."


@pytest.mark.parametrize("content", [{}, {"field": None}, {"other": "x"}])
def test_a_field_that_is_needed_must_be_filled_in(content: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="'field' is missing"):
        parse_reply(asking(field={"type": "string"}), accepted(**content))


def test_a_form_with_what_no_client_can_show_is_a_fault_of_ours() -> None:
    with pytest.raises(ValueError, match="no fields of type 'object'"):
        parse_reply(asking(field={"type": "object"}), accepted(field={}))
