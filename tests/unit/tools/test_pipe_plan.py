"""Which steps wait for which, and what a reference becomes."""

from typing import Any

import pytest

from holdfast.errors import InvalidArgument, PayloadTooLarge
from holdfast.tools.pipe.plan import MAX_REFERENCES, PipeStep, fill_references, find_dependencies

WHOLE = 10**6


def step(name: str, after: tuple[str, ...] = (), **arguments: Any) -> PipeStep:
    return PipeStep(name, "echo", arguments, after)


def ref(source: Any, path: Any = "", **more: Any) -> dict[str, Any]:
    return {"$from": source, "path": path, **more}


def test_steps_wait_for_what_they_refer_to_however_deep_and_for_what_they_name() -> None:
    steps = [
        step("a"),
        step("b", text=ref("a", "/text")),
        step("c", files=[{"edits": [{"old": {"$from": "b"}}]}], other=ref("a")),
        step("d", after=("c",)),
    ]
    assert find_dependencies(steps) == {"a": set(), "b": {"a"}, "c": {"a", "b"}, "d": {"c"}}


def test_a_step_may_stand_before_the_one_it_waits_for() -> None:
    assert find_dependencies([step("b", text=ref("a")), step("a")]) == {"b": {"a"}, "a": set()}


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ([step("a"), step("b"), step("a")], "step 'a': two steps have this id"),
        ([step("a", text=ref("z"))], "step 'a': there is no step 'z' to wait for"),
        ([step("a", after=("z",))], "step 'a': there is no step 'z' to wait for"),
        ([step("a", text=ref("a"))], "step 'a': dependency cycle: a -> a"),
        (
            [step("o", text=ref("p")), step("p", text=ref("q")), step("q", after=("p",))],
            "step 'p': dependency cycle: p -> q -> p",
        ),
        ([step("a"), step("b", text=ref("a", "text"))], "step 'b': a JSON pointer is empty or starts with '/': 'text'"),
        ([step("a"), step("b", text=ref("a", "/~2"))], "step 'b': a JSON pointer is empty"),
        ([step("a"), step("b", text=ref("a", 5))], "step 'b': a reference is"),
        ([step("a"), step("b", text=ref(["a"]))], "step 'b': a reference is"),
        ([step("a"), step("b", text=ref("a", "/x", default=1))], "step 'b': a reference is"),
        ([step("a"), step("b", texts=[ref("a")] * (MAX_REFERENCES + 1))], "a pipe has at most 1000 references"),
    ],
)
def test_what_makes_no_sense_is_refused_by_the_name_of_its_step(steps: list[PipeStep], sentence: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        find_dependencies(steps)
    assert caught.value.message.startswith(sentence)


RESULT = {
    "text": "hi",
    "files": [{"path": "x/y", "n": 0}, {"path": "z"}],
    "a/b": {"~": True},
    "": "empty",
    "0": "digit",
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("", RESULT),
        ("/text", "hi"),
        ("/files/1/path", "z"),
        ("/files/0/n", 0),
        ("/files/1", {"path": "z"}),
        ("/a~1b/~0", True),
        ("/", "empty"),
        ("/0", "digit"),
    ],
)
def test_a_pointer_finds_its_value_as_it_is(path: str, value: Any) -> None:
    asked = step("b", one=ref("a", path), many=[{"deep": ref("a", path)}, 7], plain={"path": "kept"})
    assert fill_references(asked, {"a": RESULT}, WHOLE) == {
        "one": value,
        "many": [{"deep": value}, 7],
        "plain": {"path": "kept"},
    }


@pytest.mark.parametrize(
    "path", ["/nothing", "/files/2", "/files/-", "/files/01", "/files/x", "/text/0", "/files/0/path/deeper"]
)
def test_a_pointer_to_nothing_is_refused_by_both_names(path: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        fill_references(step("b", one=ref("a", path)), {"a": RESULT}, WHOLE)
    assert caught.value.message == f"step 'b': the result of step 'a' has nothing at {path!r}"


def test_references_together_carry_no_more_than_one_call_may() -> None:
    results = {"a": {"text": "x" * 100, "list": [{"k": "y" * 99}]}}
    asked = step("b", texts=[ref("a", "/text")] * 9 + [ref("a", "/list")])
    assert fill_references(asked, results, 1000)
    with pytest.raises(PayloadTooLarge):
        fill_references(asked, results, 999)
