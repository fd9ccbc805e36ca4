"""Many names or lines taken at once come out as if they had been taken one by one."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.text.budget import RESERVED_TOKENS, Page
from holdfast.text.display import are_plain, is_plain

NAMES = st.lists(st.text(st.sampled_from('ab."\\ \n\té\u202e'), min_size=1, max_size=4), min_size=1, max_size=5)
LINES = st.lists(st.text(st.sampled_from("abcdefgé漢"), max_size=30), max_size=20)


@given(NAMES)
def test_names_that_are_plain_at_once_are_plain_each(names: list[str]) -> None:
    assert are_plain(names) == all(is_plain(name) and name.isascii() for name in names)


@given(LINES, st.integers(1, 120))
def test_a_page_takes_as_many_lines_at_once_as_one_by_one(lines: list[str], tokens: int) -> None:
    at_once, singly = Page(RESERVED_TOKENS + tokens), Page(RESERVED_TOKENS + tokens)
    added = at_once.add_all(lines)
    for line in lines:
        if not singly.add(line):
            break
    assert (added, at_once.lines, at_once.left) == (len(singly.lines), singly.lines, singly.left)
