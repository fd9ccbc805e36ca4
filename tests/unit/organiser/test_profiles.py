"""What each folder is like."""

import numpy
import pytest

from holdfast.organiser.classify import profiles
from holdfast.organiser.classify.profiles import Profiles, find_nearest, leave_one_out, usual_likeness
from holdfast.organiser.classify.word_space import Floats, Space, count_terms, normalise
from tests.helpers.household import KINDS, text_of


def household(count: int, *kinds: str) -> list[str]:
    return [text_of(kind, number) for kind in kinds for number in range(count)]


def test_files_of_a_kind_lie_together() -> None:
    documents = [count_terms(text) for text in household(20, *KINDS)]
    space = Space.learn(documents)
    points = space.points(space.rows(documents))
    similar = points @ points.T
    within = numpy.mean([similar[at * 20 : at * 20 + 20, at * 20 : at * 20 + 20].mean() for at in range(4)])
    across = numpy.mean(
        [similar[at * 20 : at * 20 + 20, (at + 1) % 4 * 20 : (at + 1) % 4 * 20 + 20].mean() for at in range(4)]
    )
    assert within > across + 0.4


def test_the_same_files_always_give_the_same_space() -> None:
    documents = [count_terms(text) for text in household(10, *KINDS)]
    first, again = Space.learn(documents), Space.learn(documents)
    numpy.testing.assert_array_equal(first.directions, again.directions)


def test_a_space_can_be_learned_from_next_to_nothing() -> None:
    for texts in ([], [""], ["one text"], ["", ""], ["a b", "a b"]):
        documents = [count_terms(text) for text in texts]
        space = Space.learn(documents)
        points = space.points(space.rows(documents))
        assert points.shape[0] == len(texts)
        assert numpy.isfinite(points).all()


def points_of(*kinds: str, count: int = 20) -> Floats:
    documents = [count_terms(text) for text in household(count, *kinds)]
    space = Space.learn(documents)
    return space.points(space.rows(documents))


def test_one_known_file_is_enough_when_its_like_are_linked() -> None:
    points = points_of(*KINDS)
    known = numpy.array([0, 20, 40, 60])
    rest = numpy.setdiff1d(numpy.arange(80), known)
    scores = Profiles.build(points[known], numpy.arange(4), 4, points[rest]).scores()
    assert (scores.best == rest // 20).mean() > 0.95


def test_a_folder_may_hold_two_kinds() -> None:
    points = points_of(*KINDS)
    known = numpy.array([0, 1, 2, 20, 21, 22, 40, 41, 42, 60, 61, 62])
    rest = numpy.setdiff1d(numpy.arange(80), known)
    scores = Profiles.build(points[known], known // 40, 2, points[rest]).scores()
    assert (scores.best == rest // 40).mean() > 0.95


def test_a_kind_of_its_own_is_less_like_any_folder() -> None:
    points = points_of("Invoices", "Letters", "Strange")
    known = numpy.array([0, 1, 2, 3, 20, 21, 22, 23])
    rest = numpy.setdiff1d(numpy.arange(60), known)
    nearness = Profiles.build(points[known], known // 20, 2, points[rest]).scores().nearness
    strange = rest >= 40
    assert nearness[strange].max() < nearness[~strange].min()


def test_files_beyond_the_graph_follow_their_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    points = points_of(*KINDS)
    known = numpy.array([0, 1, 20, 21, 40, 41, 60, 61])
    rest = numpy.setdiff1d(numpy.arange(80), known)
    monkeypatch.setattr(profiles, "MAX_NODES", 40)
    scores = Profiles.build(points[known], known // 20, 4, points[rest]).scores()
    assert len(Profiles.build(points[known], known // 20, 4, points[rest]).graph.nodes) <= 40
    assert (scores.best == rest // 20).mean() > 0.95


def test_a_judged_file_does_not_speak_for_itself() -> None:
    points = normalise(numpy.eye(3, dtype=numpy.float32)[[0, 0, 1, 1, 2]])
    labels = numpy.array([0, 0, 1, 1, 0])
    scores = Profiles.build(points, labels, 2, points[:0]).scores_without(numpy.array([4]))
    assert scores.likeness[0].max() < 0.1


def test_a_folder_without_known_files_makes_no_claim() -> None:
    points = points_of("Invoices", "Letters")
    scores = Profiles.build(points[[0, 20]], numpy.array([0, 2]), 4, points[1:20]).scores()
    assert set(scores.best.tolist()) == {0}
    assert (scores.claims[:, [1, 3]] <= -1).all()


def test_the_usual_likeness_needs_a_few_files() -> None:
    points = normalise(numpy.ones((6, 3), dtype=numpy.float32))
    own, foreign = leave_one_out(points, numpy.zeros(6, dtype=numpy.int64), 1)
    assert own == pytest.approx([1.0] * 6)
    assert foreign == []
    assert usual_likeness(own) == pytest.approx(0.6)
    assert usual_likeness(own[:1]) == 0.4


def test_a_file_is_not_compared_with_itself() -> None:
    points = numpy.array([[1, 0], [0, 1], [1, 0]], dtype=numpy.float32)
    own, foreign = leave_one_out(points, numpy.array([0, 0, 1]), 2)
    assert own == pytest.approx([0.0, 0.0])
    assert foreign == pytest.approx([1.0, 0.0, (0.5 + 2**-0.5) / 2])


def test_the_nearest_examples_come_first() -> None:
    examples = numpy.array([[0, 1], [1, 0], [0.7, 0.7]], dtype=numpy.float32)
    assert find_nearest(numpy.array([[1, 0]], dtype=numpy.float32), examples, 2) == [[1, 2]]
    assert find_nearest(numpy.array([[1, 0]], dtype=numpy.float32), examples[:0]) == [[]]
