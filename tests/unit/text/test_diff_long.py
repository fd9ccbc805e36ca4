"""Long texts are compared between the lines that both have once; what the diff says is always true."""

import random
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.text import diff
from holdfast.text.diff import apply_hunks, compute_hunks, find_anchors, split_lines


def test_many_small_changes_in_a_long_text_stay_small_and_quick() -> None:
    old = [f"line {number}\n" for number in range(20_000)]
    new = [f"changed {number}\n" if number % 3 == 1 else line for number, line in enumerate(old)]

    began = time.perf_counter()
    hunks = compute_hunks("".join(old), "".join(new))
    seconds = time.perf_counter() - began

    lines = [line[:1] for hunk in hunks for line in hunk.body.split("\n")]
    assert (lines.count("-"), lines.count("+")) == (6_667, 6_667)
    assert seconds < 5


def test_far_changes_in_a_long_text_are_hunks_of_their_own_with_true_ranges() -> None:
    old = [f"line {number}\n" for number in range(10_000)]
    new = [*old[:100], "added\n", *old[100:5_000], "other\n", *old[5_001:9_990]]

    hunks = compute_hunks("".join(old), "".join(new))

    assert [(hunk.start, hunk.end, hunk.new_start, len(hunk.lines)) for hunk in hunks] == [
        (97, 103, 97, 7),
        (4_997, 5_004, 4_998, 7),
        (9_987, 10_000, 9_988, 3),
    ]


def test_a_text_without_lines_of_its_own_is_one_block() -> None:
    hunks = compute_hunks("a\n" * 2_000, "b\n" * 2_000)

    assert len(hunks) == 1


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_all_hunks_together_make_the_second_text_and_none_the_first(seed: int) -> None:
    rng = random.Random(seed)
    words = [f"w{number}\n" for number in range(rng.choice([5, 40, 400]))]
    old = [rng.choice(words) for _ in range(rng.randrange(120))]
    new = [rng.choice(words) if rng.random() < 0.2 else line for line in old if rng.random() > 0.1]
    before, after = "".join(old), "".join(new)
    limit, diff._MAX_COMPARED = diff._MAX_COMPARED, rng.choice([0, 50, 500])
    try:
        hunks = compute_hunks(before, after)
        assert apply_hunks(before, after, [hunk.hash for hunk in hunks]) == after
        assert apply_hunks(before, after, []) == before
        for hunk in hunks:
            assert tuple(new[hunk.new_start : hunk.new_start + len(hunk.lines)]) == hunk.lines
    finally:
        diff._MAX_COMPARED = limit


@given(st.lists(st.sampled_from("abcdefgh")), st.lists(st.sampled_from("abcdefgh")))
def test_anchors_are_lines_that_both_have_once_in_the_order_of_both(old: list[str], new: list[str]) -> None:
    anchors = find_anchors(old, new)

    assert all(old[left] == new[right] and old.count(old[left]) == new.count(old[left]) == 1 for left, right in anchors)
    assert anchors == sorted(anchors)
    assert [right for _, right in anchors] == sorted(right for _, right in anchors)
    assert split_lines("a\nb") == ["a\n", "b"]
