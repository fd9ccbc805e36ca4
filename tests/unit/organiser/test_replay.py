"""How sure to be where next to nothing is known."""

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy
import pytest

from holdfast.organiser.classify.cascade import Cascade
from holdfast.organiser.classify.evaluate import calibration_error
from holdfast.organiser.classify.profiles import Profiles
from holdfast.organiser.classify.replay import MIN_FILES, Replay, replay_filing
from holdfast.organiser.classify.word_space import Space, count_terms
from holdfast.organiser.model import Category, Excerpt, ScannedFile, Verdict
from tests.helpers.hash_seed import call_with_other_hash_seed
from tests.helpers.household import COMMON, KINDS, examples, text_of, unfiled

GATE = 0.6
EACH = 30


def played(*folders: str, each: int = EACH) -> Replay | None:
    """Play filing again where each folder has one known file; a kind may stand for several folders."""
    documents = [
        count_terms(text_of(kind, 100 * at + number)) for at, kind in enumerate(folders) for number in range(each)
    ]
    space = Space.learn(documents)
    points = space.points(space.rows(documents))
    known = each * numpy.arange(len(folders))
    profiles = Profiles.build(
        points[known], numpy.arange(len(folders)), len(folders), numpy.delete(points, known, axis=0)
    )
    return replay_filing(profiles, profiles.scores())


def share_right(replay: Replay | None) -> float:
    assert replay is not None
    return float(numpy.mean([trial.is_right for trial in replay.trials]))


def test_folders_that_lie_apart_come_out_the_same_again() -> None:
    assert share_right(played(*KINDS)) > 0.95


def test_folders_that_are_alike_come_out_otherwise() -> None:
    assert share_right(played("Recipes", "Recipes", "Recipes")) < 0.8


def test_files_are_more_like_their_own_folder_than_a_foreign_one() -> None:
    replay = played(*KINDS)
    assert replay is not None
    assert len(replay.inside) == len(replay.outside)
    assert numpy.median(replay.inside) > numpy.median(replay.outside) + 0.2


def test_the_same_files_are_played_the_same_way_in_another_process() -> None:
    replay = played(*KINDS)
    assert replay is not None
    assert call_with_other_hash_seed(played, *KINDS) == replay


def test_a_single_folder_tells_nothing() -> None:
    assert played("Recipes") is None


def test_a_handful_of_files_tells_nothing() -> None:
    assert played("Recipes", "Letters", each=MIN_FILES // 2) is None


def diluted(own: int) -> tuple[list[tuple[ScannedFile, Excerpt]], list[Category]]:
    """Return files and folders with one known file each: in all of them so many telling words among sixty others."""

    def text(kind: str, number: int) -> str:
        chance = random.Random(f"{kind} {number} more")
        return f"{text_of(kind, number, own)} {' '.join(chance.choices(COMMON, k=60))}"

    files = [
        (found, replace(excerpt, text=text(kind, 1_000 + at)))
        for kind in KINDS
        for at, (found, excerpt) in enumerate(unfiled(kind, EACH))
    ]
    folders = [
        Category(kind, kind, tuple(replace(one, name="scan1.txt", text=text(kind, 7)) for one in examples(kind, 1)))
        for kind in KINDS
    ]
    return files, folders


def outcome(verdicts: Sequence[Verdict]) -> tuple[list[float], list[bool]]:
    wanted = [kind for kind in KINDS for _ in range(EACH)]
    right = [verdict.category == kind for verdict, kind in zip(verdicts, wanted, strict=True)]
    return [verdict.confidence for verdict in verdicts], right


@pytest.mark.parametrize(("own", "min_filed"), [(3, 0), (4, 0), (5, 0), (6, 5), (8, 50)])
def test_one_known_file_a_folder_promises_no_more_than_it_keeps(own: int, min_filed: int) -> None:
    sure, right = outcome(Cascade().classify(*diluted(own)))
    assert numpy.mean(sure) < numpy.mean(right) + 0.05
    filed = [good for good, confidence in zip(right, sure, strict=True) if confidence >= GATE]
    assert len(filed) >= min_filed
    assert sum(filed) >= 0.85 * len(filed)


def test_one_known_file_a_folder_is_enough_to_be_sure_where_folders_lie_apart() -> None:
    sure, right = outcome(Cascade().classify(*diluted(40)))
    assert numpy.mean(right) > 0.95
    assert numpy.mean(sure) > 0.8
    assert calibration_error(sure, right) < 0.15


def test_common_names_are_enough_to_be_sure_where_folders_lie_apart() -> None:
    files = [file for kind in KINDS for file in unfiled(kind, EACH)]
    sure, right = outcome(Cascade().classify(files, [Category(kind, kind) for kind in KINDS]))
    assert numpy.mean(sure) > 0.8
    assert calibration_error(sure, right) < 0.15


def test_folders_that_are_alike_are_not_filed_into_by_one_known_file_each() -> None:
    twins = [Category(name, name, examples("Recipes", 1, at)) for at, name in enumerate(("Baking", "Cooking", "Meals"))]
    verdicts = Cascade().classify(unfiled("Recipes", 3 * EACH), twins)
    assert numpy.mean([verdict.confidence >= GATE for verdict in verdicts]) < 0.5
