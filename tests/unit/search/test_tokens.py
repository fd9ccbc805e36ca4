"""Words as they are looked up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.search.tokens import MAX_QUERY_TERMS, MAX_TOKEN_CHARS, tokenize, tokenize_query


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Running runners", "run runner"),
        ("camelCase", "camel case camelcas"),
        ("snake_case", "snake case snakecas"),
        ("HTTPServer2", "http server 2 httpserver2"),
        ("src/app.py", "src app py srcapppi"),
        ("p53 and B12", "p53 and b12"),
        ("John's don't", "john dont"),
        ("Café NAÏVE ﬁne", "cafe naiv fine"),
        ("你好世界 字", "你好 好世 世界 字"),
        ("हिन्दी", "हिन्दी"),
        ("x₂ + y", "x2 y"),
        ("s is as", "s is as"),
        ("Straße STRASSE", "strass strass"),
        ("--- \0 ...", ""),
    ],
)
def test_words_become_tokens(text: str, tokens: str) -> None:
    assert list(tokenize(text)) == tokens.split()


@pytest.mark.parametrize("written", ["readFile", "read_file", "read-file", "ReadFile", "READ_FILE"])
def test_an_identifier_is_the_same_however_it_is_written(written: str) -> None:
    assert tokenize(written) == ("read", "file", "readfil")


def test_stop_words_of_a_query_are_cut_unless_nothing_is_left() -> None:
    assert tokenize_query("what is the speed of sound") == ["speed", "sound"]
    assert tokenize_query("to be or not to be") == ["to", "be", "or", "not", "to", "be"]


def test_repeats_in_a_query_stay() -> None:
    assert tokenize_query("flow, flowing flows") == ["flow", "flow", "flow"]


def test_of_very_many_different_tokens_the_first_count_and_their_repeats_stay() -> None:
    words = [f"w{number}" for number in range(MAX_QUERY_TERMS + 50)]
    assert tokenize_query(" ".join([*words, "w0"])) == [*words[:MAX_QUERY_TERMS], "w0"]


def test_blanks_quotes_and_nul_separate_tokens_and_are_in_none() -> None:
    assert tokenize('the\u00a0"red" fox\0 ran') == ("the", "red", "fox", "ran")


@given(st.text())
def test_a_token_of_any_text_is_short_and_holds_no_blank_quote_or_nul(text: str) -> None:
    for token in tokenize(text):
        assert 0 < len(token) <= MAX_TOKEN_CHARS
        assert not any(char.isspace() or char in '"\0' for char in token)
