"""When to say nothing."""

import random

import pytest

from holdfast.organiser.classify.confidence_model import (
    BY_NAME_ALONE,
    FEW_EXAMPLES,
    REVIEW_ONLY,
    ConfidenceModel,
    Trial,
)


def trials(folder: int, right: int, wrong: int, margin: float = 0.5) -> list[Trial]:
    return [Trial(folder, folder, margin, 0.6)] * right + [Trial(folder + 1, folder, margin, 0.6)] * wrong


INSIDE = [0.5 + 0.01 * at for at in range(30)]
OUTSIDE = [0.0 + 0.01 * at for at in range(30)]


def test_a_clear_case_is_surer_than_a_close_one() -> None:
    model = ConfidenceModel.fit([*trials(0, 20, 0), *trials(0, 5, 5, 0.05)], INSIDE, OUTSIDE, [30])
    assert model.confidence(0, 0.6, 0.7) > model.confidence(0, 0.05, 0.7)


def test_a_file_like_no_known_one_is_not_filed() -> None:
    model = ConfidenceModel.fit(trials(0, 30, 0), INSIDE, OUTSIDE, [30])
    assert model.confidence(0, 0.6, 0.7) > 0.8
    assert model.confidence(0, 0.6, 0.05) < 0.3
    assert model.chance_to_belong(0.05) < 0.5


def test_a_folder_that_attracts_wrong_files_is_for_review_only() -> None:
    model = ConfidenceModel.fit([*trials(0, 2, 6), *trials(1, 20, 0)], INSIDE, OUTSIDE, [8, 20, 0])
    assert model.review_only == {0}
    assert model.confidence(0, 5.0, 0.9) <= REVIEW_ONLY
    assert model.precision[1] > 0.9


def test_few_examples_promise_less() -> None:
    model = ConfidenceModel(example_counts=[1, 20], named_folders=frozenset({0, 1}))
    assert model.confidence(0, 9.0, 9.0) < model.confidence(1, 9.0, 9.0) < 1


def test_one_example_promises_more_where_filing_was_rescale_replay_but_never_as_much_as_many_examples() -> None:
    model = ConfidenceModel(example_counts=[1, 20], named_folders=frozenset({0, 1}))
    again = model.rescale_replay([0.4], frozenset())
    assert model.confidence(0, 9.0, 9.0) < again.confidence(0, 9.0, 9.0) == FEW_EXAMPLES < again.confidence(1, 9.0, 9.0)


def test_a_second_example_never_promises_less_than_the_first() -> None:
    most = [
        ConfidenceModel(example_counts=[known], is_replay=known < 2).confidence(0, 9.0, 9.0)
        for known in (1, 2, 3, 5, 20)
    ]
    assert most == sorted(most)


def test_a_folder_known_by_an_uncommon_name_alone_stays_below_the_gate() -> None:
    model = ConfidenceModel(example_counts=[0, 0], named_folders=frozenset({1}))
    assert model.confidence(0, 9.0, 9.0) == BY_NAME_ALONE
    assert model.confidence(1, 9.0, 9.0) == pytest.approx(0.8)


def test_a_crowd_of_strangers_lowers_every_doubtful_case() -> None:
    model = ConfidenceModel.fit(trials(0, 30, 0), INSIDE, OUTSIDE, [30])
    chance = random.Random(3)
    mostly_strangers = [chance.uniform(0.0, 0.3) for _ in range(90)] + [chance.uniform(0.5, 0.8) for _ in range(10)]
    only_known = [chance.uniform(0.5, 0.8) for _ in range(100)]
    doubtful = 0.4
    assert (
        model.adapt_to(mostly_strangers).chance_to_belong(doubtful)
        < model.chance_to_belong(doubtful)
        < model.adapt_to(only_known).chance_to_belong(doubtful)
    )


def test_a_handful_of_files_changes_no_opinion() -> None:
    model = ConfidenceModel.fit(trials(0, 30, 0), INSIDE, OUTSIDE, [30])
    assert model.adapt_to([0.1] * 5) is model
