"""Text that no index knows yet: scored as the index would, at a cost that is the text's and not the query's."""

import pytest

from holdfast.search.model import PendingFile, Statistics
from holdfast.search.scores import scan_pending, score, term_weights
from holdfast.search.tokens import tokenize

EMPTY = Statistics(0, 0, {})


def unchecked() -> None:
    return None


def pending(*texts: str) -> list[PendingFile]:
    return [PendingFile("p", f"/{number}", 1, text.encode()) for number, text in enumerate(texts)]


def test_a_piece_scores_as_its_counts_say_and_those_without_a_term_are_left_out() -> None:
    found = scan_pending(pending("reef reef kelp", "kelp", "sand"), ["reef", "kelp"], EMPTY, 10, unchecked)
    weight = term_weights(["reef", "kelp"], Statistics(3, 5, {"reef": 1, "kelp": 2}))
    assert [(one.file.path, one.score) for one in found] == [
        ("/0", score({"reef": 2, "kelp": 1}, 3, weight, 5 / 3)),
        ("/1", score({"kelp": 1}, 1, weight, 5 / 3)),
    ]


def test_what_the_index_holds_counts_too() -> None:
    terms = ["reef", "kelp"]
    found = scan_pending(pending("reef", "kelp"), terms, Statistics(100, 1000, {"reef": 90}), 10, unchecked)
    assert [one.file.path for one in found] == ["/1", "/0"], "the rare word tells more"


def test_the_order_of_words_does_not_change_a_score() -> None:
    words = [f"w{number}" for number in range(50)]
    one, other = scan_pending(pending(" ".join(words), " ".join(reversed(words))), words, EMPTY, 10, unchecked)
    assert one.score == other.score


def test_it_asks_whether_to_go_on_before_every_piece() -> None:
    asked: list[int] = []
    text = "some words that go on and on\n" * 2000
    scan_pending(pending(text), list(tokenize("words")), EMPTY, 10, lambda: asked.append(1))
    assert len(asked) > len(text) / 2000


def test_whoever_says_no_is_heard_at_once() -> None:
    def check() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        scan_pending(pending("words"), ["word"], EMPTY, 10, check)
