"""Scores: BM25, and two lists made one."""

import pytest

from holdfast.search.model import Candidate, Statistics
from holdfast.search.scores import (
    Weights,
    average_length,
    fuse,
    inverse_document_frequency,
    normalise,
    score,
    term_weights,
)

HALVES = Weights(0.5, 0.5)


@pytest.mark.req("SE-13.a")
def test_a_chunk_found_by_both_beats_one_found_by_either() -> None:
    fused = fuse(
        [Candidate(1, 0.9), Candidate(2, 0.8), Candidate(3, 0.1)], [Candidate(2, 30.0), Candidate(4, 20.0)], HALVES
    )
    assert [one.chunk_id for one in fused] == [2, 1, 3, 4]
    assert fused[0].score == pytest.approx(0.5 * (0.7 / 0.8) + 0.5)


@pytest.mark.req("SE-13.c")
def test_a_lone_hit_scores_above_0() -> None:
    assert fuse([], [Candidate(1, 1e-9)], HALVES) == [Candidate(1, 0.5)]
    assert normalise([Candidate(1, 2.0), Candidate(2, 2.0)]) == {1: 1.0, 2: 1.0}


@pytest.mark.req("SE-10.c")
def test_equal_scores_keep_the_order_of_ids() -> None:
    assert [one.chunk_id for one in fuse([], [Candidate(9, 1.0), Candidate(3, 1.0)], HALVES)] == [3, 9]


@pytest.mark.req("SE-13.a")
def test_weights_decide_between_the_two() -> None:
    semantic, lexical = [Candidate(1, 1.0), Candidate(2, 0.0)], [Candidate(2, 1.0), Candidate(1, 0.0)]
    assert fuse(semantic, lexical, Weights(0.9, 0.1))[0].chunk_id == 1
    assert fuse(semantic, lexical, Weights(0.1, 0.9))[0].chunk_id == 2


def test_rare_terms_tell_more_and_common_ones_never_less_than_nothing() -> None:
    assert (
        inverse_document_frequency(1, 100)
        > inverse_document_frequency(50, 100)
        > inverse_document_frequency(100, 100)
        > 0
    )
    assert inverse_document_frequency(0, 0) >= 0
    assert inverse_document_frequency(7, 3) > 0, "a count that is not yet up to date"


def test_a_short_piece_with_more_of_a_term_scores_higher() -> None:
    statistics = Statistics(10, 1000, {"flow": 2})
    weight, average = term_weights(["flow"], statistics), average_length(statistics)
    assert score({"flow": 2}, 100, weight, average) > score({"flow": 1}, 100, weight, average)
    assert score({"flow": 1}, 50, weight, average) > score({"flow": 1}, 200, weight, average)
    assert score({"flow": 0}, 50, weight, average) == 0
    assert term_weights(["flow", "flow"], statistics)["flow"] == 2 * weight["flow"]
    assert average_length(Statistics(0, 0, {})) == 0
    assert score({"flow": 1}, 5, weight, 0.0) > 0
