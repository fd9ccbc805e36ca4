"""What `holdfast search` shows of a passage."""

from holdfast.cli.commands.search import best_line, highlight
from holdfast.search.tokens import tokenize_query

WANTED = frozenset(tokenize_query("harbour of readFile"))


def test_the_lines_around_most_words_are_shown() -> None:
    lines = ["one"] * 10 + ["The harbours", "read_file in the harbour"] + ["two"] * 10
    assert lines[best_line(lines, WANTED)] == "one"
    assert best_line(lines, WANTED) <= 10 < 12 <= best_line(lines, WANTED) + 6
    assert best_line(["a", "b"], WANTED) == 0


def test_words_that_were_asked_for_are_highlighted_in_any_form() -> None:
    assert highlight("Harbours, read_file and more", WANTED).count("\x1b[33m") == 2
    assert highlight("nothing of it", WANTED) == "nothing of it"


def test_a_passage_cannot_speak_to_the_terminal() -> None:
    assert highlight("a\x1b]0;title\x07\tb\u202e", frozenset()) == r"a\x1b]0;title\x07" + "\tb" + r"\x202e"
