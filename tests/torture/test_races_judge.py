"""The judge of races: what it lets pass and what it does not."""

from math import inf

import pytest

from holdfast.search.model import Hit
from tests.torture.races_judge import History, Query, problem_with

OLD, NEW = b"# Part one\n\nold rain\n", b"# Part two\n\nnew rain\n"


def _history() -> History:
    """Return a file /a with its old text from 0 on and its new one from a change sent at 10, acknowledged at 11."""
    history = History()
    history.send({"/a": OLD, "/b": NEW}, 0)
    history.acknowledge(1)
    history.send({"/a": NEW}, 10)
    history.acknowledge(11)
    return history


def _hit(path: str, data: bytes, start: int = 0) -> Hit:
    return Hit("p", path, start, start + len(data), data.decode(), 1.0, is_full_file=start == 0)


@pytest.mark.parametrize(
    ("begun_at", "ended_at", "hits", "expected"),
    [
        (2, 9, [_hit("/a", OLD), _hit("/b", NEW)], None),
        (2, 9, [_hit("/a", NEW)], "old text"),
        (2, 10.5, [_hit("/a", NEW)], None),
        (10.5, 20, [_hit("/a", OLD)], None),
        (10.5, 20, [_hit("/a", NEW), _hit("/b", NEW)], "a mixture"),
        (12, 20, [_hit("/a", NEW)], None),
        (12, 20, [_hit("/a", OLD)], "old text"),
        (12, 20, [_hit("/b", NEW)], "old text"),
        (12, 20, [_hit("/a", NEW[4:], 4)], None),
        (12, 20, [_hit("/a", NEW[4:], 5)], "old text"),
        (12, 20, [], "two stands in a file"),
        (10.5, inf, [], None),
    ],
)
def test_the_judge_tells_right_answers_from_wrong_ones(
    begun_at: float, ended_at: float, hits: list[Hit], expected: str | None
) -> None:
    problem = problem_with(_history(), Query(["two"], begun_at, ended_at), hits)
    assert problem == expected if expected is None else problem is not None and problem.startswith(expected)
