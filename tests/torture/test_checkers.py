"""The checkers themselves: they accept what can be explained and nothing else."""

from math import inf
from typing import Any

import pytest

from tests.torture.history import Operation
from tests.torture.linear import Verdict, judge
from tests.torture.model import Answer, step
from tests.torture.replay import Replay
from tests.torture.witness import Note

HERE = (0, "p-0")


def did(number: int, start: int, end: float, tool: str, answer: Answer | None, **args: Any) -> Operation:
    return Operation(str(number), HERE, tool, args, start, end, answer)


def wrote(number: int, start: int, end: float, text: str, *, known: bool = True) -> Operation:
    answer = ("ok", len(text)) if known else None
    return did(number, start, end if known else inf, "file_write", answer, path="/a", content=text, mode="APPEND")


def saw(number: int, start: int, end: float, text: str) -> Operation:
    return did(number, start, end, "file_read", ("ok", text), path="/a")


@pytest.mark.parametrize(
    ("calls", "verdict"),
    [
        ([], Verdict.LINEARIZABLE),
        ([wrote(1, 0, 5, "x"), wrote(2, 1, 4, "y"), saw(3, 6, 7, "yx")], Verdict.LINEARIZABLE),
        ([wrote(1, 0, 2, "x"), wrote(2, 3, 4, "y"), saw(3, 6, 7, "yx")], Verdict.IMPOSSIBLE),
        ([wrote(1, 0, 2, "x"), wrote(2, 1, 4, "y"), saw(3, 6, 7, "y")], Verdict.IMPOSSIBLE),
        ([wrote(1, 0, 2, "x"), did(2, 3, 4, "file_read", ("error", "NOT_FOUND"), path="/a")], Verdict.IMPOSSIBLE),
        ([wrote(1, 0, 2, "x", known=False), saw(2, 8, 9, "x")], Verdict.LINEARIZABLE),
        ([wrote(1, 0, 2, "x", known=False), did(2, 8, 9, "file_list", ("ok", ()), path="")], Verdict.LINEARIZABLE),
        ([wrote(1, 9, 9, "x", known=False), saw(2, 1, 2, "x")], Verdict.IMPOSSIBLE),
        ([wrote(1, 0, 2, "x", known=False), wrote(2, 3, 4, "y"), saw(3, 5, 6, "xx")], Verdict.IMPOSSIBLE),
        ([wrote(1, 0, 9, "x"), saw(2, 1, 2, "x"), saw(3, 3, 4, "x")], Verdict.LINEARIZABLE),
        ([wrote(1, 0, 9, "x"), wrote(2, 0, 1, "y"), saw(3, 2, 3, "yx"), saw(4, 4, 5, "y")], Verdict.IMPOSSIBLE),
    ],
    ids=[
        "nothing", "either order", "order of time", "lost", "not there", "unknown and done", "unknown and not done",
        "from the future", "twice", "read while written", "back in time",
    ],
)  # fmt: skip
def test_an_order_is_found_where_there_is_one(calls: list[Operation], verdict: Verdict) -> None:
    assert judge(calls) is verdict


def test_a_rename_that_is_seen_half_done_has_no_order() -> None:
    calls = [
        wrote(1, 0, 1, "x"),
        did(2, 2, 9, "file_rename", ("ok", 1), from_path="/a", to_path="/b"),
        did(3, 3, 4, "file_list", ("ok", ()), path="", depth=9),
    ]
    assert judge(calls) is Verdict.IMPOSSIBLE


def test_a_search_without_end_is_given_up() -> None:
    calls = [wrote(number, 0, 99, f"<{number}>") for number in range(12)]
    assert judge([*calls, saw(99, 100, 101, "nothing of it")], budget=100) is Verdict.UNDECIDED


@pytest.mark.parametrize("order", [["x", "xy"], ["y", "xy"], ["nothing of it"]])
def test_a_way_that_is_told_shortens_the_search_and_is_not_believed(order: list[str]) -> None:
    way = [{"/a": text} for text in order]

    assert judge([wrote(1, 0, 2, "x"), wrote(2, 1, 4, "y"), saw(3, 6, 7, "xy")], way=way) is Verdict.LINEARIZABLE
    assert judge([wrote(1, 0, 2, "x"), wrote(2, 3, 4, "y"), saw(3, 6, 7, "yx")], way=way) is Verdict.IMPOSSIBLE


def test_a_way_leads_through_what_a_search_alone_gives_up() -> None:
    calls = [wrote(number, 0, 99, f"<{number}>") for number in range(12)]
    texts = ["".join(f"<{number}>" for number in reversed(range(first, 12))) for first in reversed(range(12))]
    whole = [*calls, saw(99, 100, 101, texts[-1])]

    assert judge(whole, budget=100) is Verdict.UNDECIDED
    assert judge(whole, budget=100, way=[{"/a": text} for text in texts]) is Verdict.LINEARIZABLE


def test_the_model_keeps_a_state_that_nothing_changed() -> None:
    state = {"/d/x": "1"}
    for tool, args in [
        ("file_write", {"path": "/d", "content": "x", "mode": "APPEND"}),
        ("file_delete", {"path": "/d"}),
        ("file_rename", {"from_path": "/d", "to_path": "/d/e"}),
        ("file_stat", {"path": "/d"}),
    ]:
        assert step(state, tool, args)[1] is state


def write_notes(
    version: int, text: str, *, job: str = "UPSERT", counted: int | None = None, key: str = "1"
) -> list[Note]:
    size = len(text) if counted is None else counted
    return [
        Note("file", version, "/a" if version > 1 else None, "/a", text),
        Note("job", version, "/a", job, None),
        Note("project", version, "1", str(size), None),
        Note("key", None, key, None, None),
    ]


def test_an_account_that_fits_the_calls_has_no_problem() -> None:
    calls = [wrote(1, 0, 1, "x"), wrote(2, 2, 3, "y")]
    accounts = [write_notes(1, "x"), write_notes(2, "xy", key="2")]
    assert list(Replay(calls).problems(accounts, with_keys=True)) == []
    assert list(Replay(calls).problems(accounts, with_keys=False)) == []


@pytest.mark.parametrize(
    ("accounts", "problem"),
    [
        ([write_notes(1, "x"), write_notes(3, "xy", key="2")], "after version 1"),
        ([write_notes(1, "x"), write_notes(2, "y", key="2")], "is not what 2 asked for"),
        ([write_notes(1, "x"), write_notes(2, "xy", job="DELETE", key="2")], "owes the jobs"),
        ([write_notes(1, "x"), write_notes(2, "xy", counted=7, key="2")], "the project counts"),
        ([write_notes(1, "x"), write_notes(2, "xx")], "has a version already"),
        ([write_notes(1, "y", key="2"), write_notes(2, "yx")], "after a call that began when it had ended"),
        ([write_notes(1, "x")], "was acknowledged and has no version"),
        (
            [write_notes(1, "x"), write_notes(2, "xy", key="2")[1:2]],
            "a job of version 2 in the transaction of version 1",
        ),
    ],
)
def test_an_account_that_does_not_fit_is_seen(accounts: list[list[Note]], problem: str) -> None:
    calls = [wrote(1, 0, 1, "x"), wrote(2, 2, 3, "y")]
    assert any(problem in each for each in Replay(calls).problems(accounts, with_keys=True))
