"""The three-way merge: both sides' changes, or nothing."""

import time

from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.text.diff import apply_hunks, compute_hunks, split_lines, unified_diff
from holdfast.text.merge import merge

BASE = "".join(f"line {number}\n" for number in range(1, 10))
lines = st.sampled_from(["a", "b", "c", "", "d\r"])
texts = st.lists(lines, max_size=12).map("\n".join)


def changed(*changes: tuple[int, str]) -> str:
    lines = split_lines(BASE)
    for number, line in changes:
        lines[number - 1] = line
    return "".join(lines)


def test_changes_in_different_places_are_both_kept() -> None:
    assert merge(BASE, changed((2, "ours\n")), changed((7, "theirs\n"))) == changed((2, "ours\n"), (7, "theirs\n"))


def test_changes_of_the_same_line_do_not_merge() -> None:
    assert merge(BASE, changed((4, "ours\n")), changed((4, "theirs\n"))) is None


def test_changes_of_neighbouring_lines_do_not_merge() -> None:
    assert merge(BASE, changed((4, "ours\n")), changed((5, "theirs\n"))) is None


def test_the_same_change_on_both_sides_is_made_once() -> None:
    both = changed((4, "same\n"))
    assert merge(BASE, both + "ours\n", both) == both + "ours\n"


def test_what_one_side_removed_and_the_other_changed_does_not_merge() -> None:
    assert merge(BASE, BASE.replace("line 5\n", ""), changed((5, "theirs\n"))) is None


def test_two_insertions_at_one_place_do_not_merge() -> None:
    assert merge("a\nb\n", "a\nours\nb\n", "a\ntheirs\nb\n") is None


def test_an_insertion_and_a_far_removal_merge() -> None:
    assert merge(BASE, "top\n" + BASE, BASE.replace("line 9\n", "")) == "top\n" + BASE.replace("line 9\n", "")


def test_line_ends_belong_to_their_lines() -> None:
    base = "a\r\nb\r\nc\r\nd\r\n"
    assert merge(base, base.replace("a", "A"), base.replace("d", "D")) == "A\r\nb\r\nc\r\nD\r\n"


def test_a_last_line_without_its_end_merges_too() -> None:
    assert merge("a\nb\nc", "A\nb\nc", "a\nb\nC") == "A\nb\nC"


def test_texts_too_long_to_compare_do_not_merge() -> None:
    ours, theirs = ("".join(f"{side}{number}\n" for number in range(3000)) for side in "xy")
    base = "".join(f"{number}\n" for number in range(3000))
    assert merge(base, ours, theirs) is None


def test_a_small_change_at_each_end_of_a_long_text_merges() -> None:
    base = "".join(f"{number}\n" for number in range(1500))
    assert merge(base, "top\n" + base, base + "end\n") == "top\n" + base + "end\n"


@given(texts, texts)
def test_an_untouched_side_gives_the_other(base: str, other: str) -> None:
    assert merge(base, base, other) == other
    assert merge(base, other, base) == other


@given(texts, texts, texts)
def test_both_orders_of_the_sides_merge_alike(base: str, ours: str, theirs: str) -> None:
    assert merge(base, ours, theirs) == merge(base, theirs, ours)


@given(texts, texts)
def test_a_merge_with_itself_is_itself(base: str, text: str) -> None:
    assert merge(base, text, text) == text


@given(texts, texts, texts, texts)
def test_changes_above_and_below_a_long_unchanged_part_are_both_made(
    top: str, new_top: str, bottom: str, new_bottom: str
) -> None:
    unchanged = "".join(f"\n= {number}" for number in range(20)) + "\n"
    merged = merge(top + unchanged + bottom, new_top + unchanged + bottom, top + unchanged + new_bottom)
    assert merged == new_top + unchanged + new_bottom


@given(st.lists(lines, min_size=4, max_size=12), st.lists(st.integers(0, 11), min_size=2, max_size=2), lines, lines)
def test_no_line_of_a_merge_comes_from_nowhere(base: list[str], places: list[int], ours: str, theirs: str) -> None:
    sides = [list(base), list(base)]
    for side, place, line in zip(sides, places, (ours, theirs), strict=True):
        side[place % len(base)] = line
    texts_of_all = ["\n".join(each) for each in (base, *sides)]
    merged = merge(*texts_of_all)
    assume(merged is not None)
    assert merged is not None
    assert set(split_lines(merged)) <= {line for text in texts_of_all for line in split_lines(text)}


@given(texts, texts)
def test_all_hunks_together_give_the_second_text_and_none_the_first(before: str, after: str) -> None:
    hashes = [hunk.hash for hunk in compute_hunks(before, after)]
    assert len(set(hashes)) == len(hashes)
    assert apply_hunks(before, after, hashes) == after
    assert apply_hunks(before, after, ()) == before


def test_a_chosen_hunk_is_applied_and_the_others_are_not() -> None:
    before = "".join(f"{number}\n" for number in range(40))
    after = before.replace("\n5\n", "\nfive\n").replace("\n30\n", "\nthirty\n")
    first, second = compute_hunks(before, after)
    assert [first.header, second.header] == ["@@ -3,7 +3,7 @@\n", "@@ -28,7 +28,7 @@\n"]
    alone = before.replace("\n30\n", "\nthirty\n")
    assert apply_hunks(before, after, {second.hash}) == alone
    assert [hunk.hash for hunk in compute_hunks(before, alone)] == [second.hash], "the name outlives the other hunk"
    assert unified_diff(before, after, "x").count("@@ -") == 2


def test_texts_of_many_equal_lines_cost_no_minutes() -> None:
    """Aligning these line by line would take some five minutes."""
    many = "a\n" * 1400
    apart = "".join(f"a\n{number}\n" for number in range(1400))
    begun = time.process_time()
    merge(f"x\n{many}x\n", f"y\n{apart}y\n", f"z\n{apart}q\n")
    merge("x\n" + "a\n" * 18_000 + "x\n", f"y\n{apart[:600]}y\n", f"z\n{apart[:600]}q\n")
    assert time.process_time() - begun < 10


def test_a_long_text_with_many_empty_lines_still_merges() -> None:
    lines = [f"line {number}\n" if number % 3 else "\n" for number in range(1900)]
    ours, theirs = ["ours\n", *lines], [*lines, "theirs\n"]
    ours[1000], theirs[1500] = "here\n", "there\n"
    both = ["ours\n", *lines, "theirs\n"]
    both[1000], both[1501] = "here\n", "there\n"
    assert merge("".join(lines), "".join(ours), "".join(theirs)) == "".join(both)
