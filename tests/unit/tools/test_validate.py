"""What is wrong with arguments is said in a few words, however much of it there is."""

from typing import Any

import pytest
from pydantic import Field

from holdfast.app import App
from holdfast.call import Call
from holdfast.errors import InvalidArgument
from holdfast.tools.answer import Answer
from holdfast.tools.registry import Arguments, Effect, Group, tool
from holdfast.tools.validate import MAX_DEPTH, MAX_VALUES, is_small, parse_arguments


class Items(Arguments):
    """Arguments of the tool of these tests."""

    path: str = Field(description="A path.")
    items: list[Any] = Field(default=[], description="Anything.")


@tool("take", group=Group.FILES, effect=Effect.READ, title="Take")
def take(_app: App, _call: Call, _args: Items) -> Answer:
    """Take anything."""
    return Answer.of("taken")


def nest(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pat": "x"}, "take: unknown argument 'pat' (did you mean 'path'?)"),
        ({"zzz": "x"}, "take: unknown argument 'zzz' (did you mean 'path'?)"),
        ({"path": "x", "zzz": 1}, "take: unknown argument 'zzz'; take takes path, items"),
        ({"path": "x", "y" * 70: 1}, "take: unknown argument '" + "y" * 64 + "'…"),
        ({"path": "x", **{f"n{n}": 1 for n in range(90)}}, "; ".join(f"unknown argument 'n{n}'" for n in range(5))),
        ({f"n{n}": 1 for n in range(200_000)}, "take: 200000 arguments were given; it takes at most 2."),
        ({"path": "x", "items": [1] * MAX_VALUES}, f"more than {MAX_VALUES} values; make several calls."),
        ({"path": "x", "items": [[1]] * (MAX_VALUES // 2)}, f"more than {MAX_VALUES} values; make several calls."),
        ({"path": "x", "items": nest(100_000)}, f"take: the arguments are nested more than {MAX_DEPTH} levels deep."),
    ],
)
def test_the_first_errors_are_worded_and_no_more(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse_arguments(take, arguments)
    assert message in refused.value.message
    assert len(refused.value.message) < 500


def test_what_is_within_the_bounds_is_taken() -> None:
    arguments = {"path": "x", "items": [*([1] * (MAX_VALUES - 2 * MAX_DEPTH)), nest(MAX_DEPTH - 3)]}
    assert parse_arguments(take, arguments).items == arguments["items"]


@pytest.mark.parametrize(
    ("arguments", "small"),
    [
        ({}, True),
        ({"path": "x" * 60_000}, True),
        ({"path": "x" * 70_000}, False),
        ({"items": [1] * 100}, True),
        ({"items": [1] * 1_000_000}, False),
        ({"items": [{"text": "x" * 40_000}, {"text": "x" * 40_000}]}, False),
        ({"items": nest(1_000)}, False),
    ],
)
def test_large_arguments_are_told_from_small_ones(arguments: dict[str, Any], small: bool) -> None:
    assert is_small(arguments) is small
